"""The law that a mini-batch stands for, and what its noise does to it.

Of n rows with terms l_i(x), a batch S of m rows gives mu_S(x) = mean_S l. With lambda = alpha tau
and m = n^tau the tempered log likelihood is estimated as

    n^lambda mu_S(x) = m^alpha mu_S(x),       T = n^(1 - lambda) = n / m^alpha,    beta = 1/T,

so that what is meant is  log pi(x) = beta sum_i l_i(x) + w log p(x),  with w = beta (the posterior
to the power 1/T) or w = 1 (the likelihood alone is tempered). At alpha = 1 a batch of m rows stands
for the heat at which all rows are worth m; beyond it, up to T = 1, a row counts more than once, and
noise grows with m^(2 alpha - 1).

**One batch for both ends.** With d_i = l_i(x*) - l_i(x) the log ratio is estimated by c mean_S d,
c = m^alpha, with the variance V = c^2 s_d^2 / q (1 - q/n) from q rows. Normal noise of known
variance is made good exactly by accepting with min(1, exp(log r - u)), u = V/2 (Ceperley and
Dewing 1999); with V estimated from the same q rows the series

    u = V/2 + V^2 / (4 (q+1)) + V^3 / (3 (q+1)(q+3))

leaves less than 1e-3 of the log ratio for V <= q/20. Uncorrected, the mean acceptance is

    a(D, V) = Phi(D/sqrt V) + e^(D + V/2) Phi(-sqrt V - D/sqrt V),

and log a(D)/a(-D) = kappa(V) D + O(D^3): a further flattening by kappa = 2g/(1/2 + g), with
g = e^(V/2) Phi(-sqrt V), that depends on the length of the step.

**A batch of its own for each state.** The pair (x, S) has the law f(x, S) ~ exp(c mu_S(x)) p(x)^w
exactly, and x alone E_S[exp(c mu_S(x))] p(x)^w, which is the tempered law times about
exp(c^2 Var(mu_S(x)) / 2). Subtracting c^2 s_S^2 / (2m) (1 - m/n) from log f takes most of that
away.
"""

import math

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from temperance._types import Scalar
from temperance.errors import ArgumentError
from temperance.rows.batches import Batches

Count = Int[Array, ""] | int
# Of an alpha that was computed to make T = 1.
ROUNDING = 1e-9


def implied_beta(num_rows: int, batch_size: int, alpha: float = 0.5) -> float:
    """1/T = m^alpha / n: the power to which `batch_size` and `alpha` temper the posterior."""
    if not 1 <= batch_size <= num_rows:
        raise ArgumentError(
            f"batch_size: wanted 1 to {num_rows}, the number of rows, got {batch_size}"
        )
    most = math.log(num_rows) / math.log(batch_size) if batch_size > 1 else math.inf
    if not 0 < alpha <= most * (1 + ROUNDING):
        raise ArgumentError(
            f"alpha: wanted a number above 0 and, for batches of {batch_size} of {num_rows} rows, "
            f"at most {most:.4g}, where T = n / batch_size^alpha is 1; got {alpha!r}"
        )
    return min(1.0, batch_size**alpha / num_rows)


class BatchLaw(eqx.Module):
    """What batches of `batch_size` rows stand for: beta = batch_size^alpha / n.

    Everything that a kernel decides by is here and not in the kernel, so that tests can sum over
    batches what a run only draws.
    """

    batches: Batches
    batch_size: int = eqx.field(static=True)
    alpha: float = eqx.field(static=True, default=0.5)
    temper_prior: bool = eqx.field(static=True, default=True)

    @property
    def scale(self) -> float:
        """C = m^alpha, the factor before a mean over rows."""
        return self.batch_size**self.alpha

    @property
    def beta(self) -> float:
        return implied_beta(self.batches.num_rows, self.batch_size, self.alpha)

    @property
    def prior_power(self) -> float:
        return self.beta if self.temper_prior else 1.0

    def log_density(self, mean: Array, log_prior: Array) -> Array:
        """C mu + w log p."""
        return self.scale * mean + self.prior_power * log_prior

    def variance(self, spread: Array, count: Count) -> Array:
        """V of c times a mean over `count` rows whose terms vary by `spread`."""
        return self.scale**2 * spread / count * self.batches.left(count)

    def log_ratio(self, mean: Array, prior: Array, variance: Array, count: Count) -> Array:
        """The penalised log ratio, from the means of differences: log r - u(V)."""
        return self.log_density(mean, prior) - penalty(variance, count)

    def log_weight(self, terms: Float[Array, " m"], log_prior: Scalar, corrected: bool) -> Scalar:
        """Log f(x, S) of a state with a batch of its own, from the batch's terms."""
        value = self.log_density(jnp.mean(terms), log_prior)
        if not corrected:
            return value
        return value - 0.5 * self.variance(jnp.var(terms, ddof=1), terms.shape[0])


def penalty(variance: Array, count: Count) -> Array:
    """U(V) of Ceperley and Dewing, for a variance estimated from `count` rows."""
    q = jnp.asarray(count, float)
    second = variance**2 / (4 * (q + 1))
    return 0.5 * variance + second + variance**3 / (3 * (q + 1) * (q + 3))


def mean_acceptance(log_ratio: Array, variance: Array) -> Array:
    """The mean of min(1, r) where log r is normal about `log_ratio`."""
    root = jnp.sqrt(variance)
    over = log_ratio + 0.5 * variance + norm.logcdf(-root - log_ratio / root)
    return norm.cdf(log_ratio / root) + jnp.exp(over)


def flattening(variance: Array | float) -> Array:
    """Kappa(V): what uncorrected noise does to a small log ratio."""
    variance = jnp.asarray(variance)
    root = jnp.sqrt(variance)
    g = jnp.exp(0.5 * variance + norm.logcdf(-root))
    return 2 * g / (0.5 + g)
