"""What a random number of rows decides exactly: the law of TunaMH (Zhang, Cooper, De Sa 2020).

A row's log likelihood may change between x and x* by at most c_i M,

    |l_i(x*) - l_i(x)| <= c_i M(x, x*),        M(x, x*) = M(x*, x),        C = sum c_i.

With the share w_i = (l_i(x*) - l_i(x)) / (c_i M) in [-1, 1] and t = C M, let row i be counted

    s_i ~ Poisson(c_i M (chi t + (1 - w_i) / 2)),

independently over rows, and accept with

    log r = 2 sum_i s_i artanh(w_i / (1 + 2 chi t)) + everything about x and x* that is no row's.

*Why it is exact.* On the way back w_i changes its sign. The rates then add up to sum_i l_i(x*) -
l_i(x) more than on the way forth, so that the exponentials of the two Poisson laws differ by just
the factor that the likelihoods do, and cancel it. What is left is the rates' ratio to the power
s_i, which is exp(2 artanh(...)). Nothing was assumed of chi but that it is the same both ways.

*How it is drawn.* No rate is above c_i M (chi t + 1). So B ~ Poisson(t + chi t^2) rows are drawn
with probabilities c_i / C, and each is counted with probability (chi t + (1 - w_i) / 2) /
(chi t + 1).

*What chi does.* The noise in log r has the variance

    V = sum_i E[s_i] 4 artanh(...)^2 ~ 2 t E[w^2] / (1 + 2 chi t),

with the mean over rows in proportion to c_i: below E[w^2] / chi, however long the step. Rows are
t + chi t^2. With chi = E[w^2] the noise never has a variance above one, and no row is read for a
noise that is small already.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array


class PoissonLaw(eqx.Module):
    """The decision, apart from its draws; `total` is t = C M and `share` is w_i."""

    chi: float = eqx.field(static=True)

    def mean_rows(self, total: Array) -> Array:
        """The mean of B, the number of rows drawn."""
        return total + self.chi * total**2

    def counted(self, share: Array, total: Array) -> Array:
        """The probability with which a drawn row is counted."""
        return (self.chi * total + 0.5 * (1.0 - share)) / (self.chi * total + 1.0)

    def log_factor(self, share: Array, total: Array) -> Array:
        """What a row adds to the log ratio each time it is counted."""
        return 2.0 * jnp.arctanh(share / (1.0 + 2.0 * self.chi * total))
