"""Prediction averaged over the members of ensembles, one matrix for all members of a draw.

Members of a draw share the slow variables and differ in the fast ones; member m has weight w_m. In
the notation of `temperance.models.gaussian_process.fast_likelihood`, with k_* the covariances a^2 + k of a new input with
the rows, mean and variance given one member are

    mu_m = k_*' (A + (r^2 + psi_m^2) I)^{-1} y,
    v_m = eta_m^2 (a^2 + 1 - k_*' (A + (r^2 + psi_m^2) I)^{-1} k_*),

and a noisy observation has eta_m^2 r^2 + sigma_m^2 more. Those of the draw are sum_m w_m mu_m and
sum_m w_m (v_m + mu_m^2) less its square.

    eta fast           psi is one and the same, so is mu_m, and v_m is linear in eta_m^2: a member
                       with eta^2 = sum_m w_m eta_m^2 stands for all
    eta, sigma fast    A = U diag(lambda) U': with h = U' k_* and u = U' y the forms are sums of
                       h_i u_i and h_i^2, each divided by lambda_i + r^2 + psi_m^2
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance.errors import ResultError
from temperance.models.gaussian_process.covariance import scaled_alike, squared_distances
from temperance.models.gaussian_process.fast_regression import FastGaussianProcessTerms
from temperance.models.gaussian_process.regression import LEAVES

GROUP, WEIGHT = "ensemble", "log_weight"
# What rounding takes from a variance that is next to nothing, in units of the squared scale.
LEAST = 1e-10

Members = Float[Array, "draws members"]


class Ensembles(NamedTuple):
    """The fast variables of every member and their log weights, draw by draw.

    Where only the scale is fast there is no `log_noise`.
    """

    log_weight: Any
    log_scale: Any
    log_noise: Any = None


def members_of(tree: Any, terms: FastGaussianProcessTerms) -> Ensembles | None:
    """The members of all draws, if the tree has a group of them."""
    group = getattr(tree, GROUP, None)
    if group is None:
        return None
    names = (WEIGHT, *sorted(terms.fast, reverse=True))
    missing = [name for name in names if name not in group]
    if missing:
        raise ResultError(
            f"tree: there is no {' or '.join(missing)} in its group {GROUP!r}; wanted what sample "
            "gave for this problem, whose route says which variables are fast"
        )
    flat = []
    for name in names:
        values = group[name].transpose("chain", "draw", "member").values
        flat.append(values.reshape(-1, values.shape[-1]))
    num_draws = int(np.prod(tree.posterior[LEAVES[1]].shape))
    if len(flat[0]) != num_draws:
        raise ResultError(
            f"tree: its group {GROUP!r} has members of {len(flat[0])} draws, and its posterior has "
            f"{num_draws} draws; keep or leave out the same draws in both"
        )
    return Ensembles(*flat)


def in_one(leaves: list[Array], members: Ensembles) -> list[Array]:
    """Positions whose eta^2 is the mean over members, at the same psi."""
    log_length, log_scale, log_noise = leaves
    log_weight, scales = (jnp.asarray(part, float) for part in members[:2])
    log_weight = jax.nn.log_softmax(log_weight, axis=1)
    scales = jnp.where(jnp.isfinite(log_weight), scales, 0.0)
    mean = 0.5 * jax.nn.logsumexp(log_weight + 2.0 * scales, axis=1)
    return [log_length, mean, log_noise - log_scale + mean]


@functools.partial(jax.jit, static_argnames="noisy")
def over_members(
    terms: FastGaussianProcessTerms,
    log_length: Float[Array, "draws inputs"],
    members: Ensembles,
    rows: dict[str, Array],
    chunks: Float[Array, "chunks some inputs"],
    noisy: bool,
) -> tuple[Array, Array]:
    """Mean and variance of each draw at every new input, (draws, chunks * some)."""
    kernel, level = terms.raised, 1.0 + terms.constant**2

    members = jax.tree.map(lambda part: jnp.asarray(part, float), members)

    def of_one(given: tuple[Array, Ensembles]) -> tuple[Array, Array]:
        log_length, (log_weight, log_scale, log_noise) = given
        amplitude, noise = jnp.exp(2.0 * log_scale), jnp.exp(2.0 * log_noise)
        weight = jax.nn.softmax(log_weight)
        added = terms.nugget**2 * amplitude + noise
        x, points = scaled_alike(log_length, rows["inputs"], chunks.reshape(-1, chunks.shape[2]))
        values, vectors = jnp.linalg.eigh(kernel(squared_distances(x, x)))
        shrunk = 1.0 / (values[:, None] + (added / amplitude)[None, :])
        along = vectors.T @ rows["y"]

        def of_some(some: Array) -> tuple[Array, Array]:
            across = kernel(squared_distances(some, x)) @ vectors
            means = (across * along[None, :]) @ shrunk
            left = jnp.maximum(level - across**2 @ shrunk, LEAST)
            variances = amplitude[None, :] * left + noisy * added[None, :]
            # A member without weight may have no covariance at all.
            counts = weight[None, :] > 0
            means, variances = (jnp.where(counts, part, 0.0) for part in (means, variances))
            mean = means @ weight
            return mean, (variances + (means - mean[:, None]) ** 2) @ weight

        mean, variance = jax.lax.map(of_some, points.reshape(chunks.shape))
        return mean.reshape(-1), variance.reshape(-1)

    return jax.lax.map(of_one, (log_length, members))
