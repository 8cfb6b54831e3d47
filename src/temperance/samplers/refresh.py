"""Refreshing the subsamples of parallel tempering, by exchanging rows.

With rows in the order sigma, the rung of size n sees sigma_0 ... sigma_{n-1}. On the space of
(x_0, ..., x_{K-1}, sigma) the law

    f(x, sigma)  proportional to  prod_k p(x_k) exp(sum_{j < n_k} l_{sigma_j}(x_k))

has the posterior as the marginal of x_{K-1}, which is independent of everything else, because the
target sees all rows. Under it sigma is *not* uniform: its marginal is proportional to the product
of the subsamples' evidences. So a redraw of sigma with x kept is wrong, and an exchange of the rows
at positions a < b is right if it is accepted with min(1, r),

    log r = sum over rungs with a < n_k <= b of  l_{sigma_b}(x_k) - l_{sigma_a}(x_k):

those are the rungs that lose the one row and gain the other. Paper 1 leaves this open (section 5).

As a function of sigma, log f is a sum over positions j of sum_{k: n_k > j} l_{sigma_j}(x_k). Pairs
that share no position change different summands, so they are accepted or refused each for itself,
all at once. Which pairs may be left to chance, but not to x or sigma.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def exchange_log_ratios(
    at_first: Float[Array, "rungs pairs"],
    at_second: Float[Array, "rungs pairs"],
    sizes: tuple[int, ...],
    first: Int[Array, " pairs"],
    second: Int[Array, " pairs"],
) -> Float[Array, " pairs"]:
    """Log ratios of exchanging the rows at positions `first` < `second`, counted from 0.

    `at_first[k, p]` is the log likelihood, at the point of rung k, of the row that stands at
    position `first[p]`, and `at_second` of the one at `second[p]`. What stands there for a rung
    that an exchange leaves alone is not looked at, and may be infinite.
    """
    size = jnp.asarray(sizes)[:, None]
    affected = (first[None, :] < size) & (size <= second[None, :])
    return jnp.sum(jnp.where(affected, at_second - at_first, 0.0), axis=0)
