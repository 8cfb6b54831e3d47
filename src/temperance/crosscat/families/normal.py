"""Real numbers: each cluster is normal, with a normal-inverse-chi-squared prior.

    variance ~ scaled inverse chi-squared(nu, sigma2),   mean | variance ~ N(mu, variance / kappa).

A cluster with n values, mean m and sum of squares M2 about it has

    kappa_n = kappa + n,    nu_n = nu + n,    mu_n = (kappa mu + n m) / kappa_n,
    nu_n sigma2_n = nu sigma2 + M2 + (n kappa / kappa_n) (m - mu)^2.

    log p(values) = log Gamma(nu_n / 2) - log Gamma(nu / 2) + (1/2) log(kappa / kappa_n)
                    + (nu / 2) log(nu sigma2) - (nu_n / 2) log(nu_n sigma2_n) - (n / 2) log pi

and its next value is Student's t with nu_n degrees of freedom, location mu_n and squared scale
sigma2_n (1 + 1 / kappa_n). Values are standardised, and NaN is missing.

**The grids.** mu: 33 points over the range of the data, evenly spaced in asinh(mu): they are close
where the bulk is and still reach a far value. kappa: 25 log-spaced points from 10^-3 to 10^3.
nu: 21 from 1/4, tails heavier than Cauchy's, to 256, all but normal. sigma2: 41 log-spaced points
from the floor to the square of half the range. The floor is the variance of the noise that stands
for the data's resolution: no cluster is believed to be narrower than what the data can tell apart,
so densities are bounded. Each is drawn given the other three.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from temperance.crosscat.compilation import compiled, inner
from temperance.crosscat.families.grid import FloatArray, draw_index, log_spaced

IntArray = npt.NDArray[np.int64]

MU, KAPPA, NU, SIGMA2 = range(4)
# Where the resolution is unknown or far below double precision, relative to a variance of one.
_LEAST_VARIANCE = 1e-12


class NormalGrids(NamedTuple):
    """Where each hyperparameter may stand."""

    mu: FloatArray
    kappa: FloatArray
    nu: FloatArray
    sigma2: FloatArray


def grids(low: float, high: float, floor: float = 0.0) -> NormalGrids:
    """The grids of a column whose standardised values lie between `low` and `high`.

    `floor` is the least variance a cluster may be believed to have: (resolution / scale)^2 / 12.
    """
    least = max(floor, _LEAST_VARIANCE)
    most = max(1.0, (0.5 * (high - low)) ** 2, 2.0 * least)
    return NormalGrids(
        mu=np.sinh(np.linspace(math.asinh(low), math.asinh(high), 33)),
        kappa=log_spaced(1e-3, 1e3, 25),
        nu=log_spaced(0.25, 256.0, 21),
        sigma2=log_spaced(least, most, 41),
    )


@compiled
def gather(
    cells: FloatArray, place: int, labels: npt.NDArray[np.int32], rows: IntArray, num: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Number, mean and sum of squares about it, cluster by cluster, of column `place` in `rows`."""
    n = np.zeros(num, dtype=np.int64)
    mean = np.zeros(num)
    m2 = np.zeros(num)
    for i in range(rows.size):
        x = cells[rows[i], place]
        if x == x:
            k = labels[i]
            n[k] += 1
            step = x - mean[k]
            mean[k] += step / n[k]
            m2[k] += step * (x - mean[k])
    return n, mean, m2


@compiled
def log_marginal(
    n: IntArray, mean: FloatArray, m2: FloatArray, num: int, hyper: FloatArray
) -> float:
    """Log p(values | partition, hyper) of the first `num` clusters."""
    mu, kappa, nu, sigma2 = hyper[0], hyper[1], hyper[2], hyper[3]
    prior = 0.5 * nu * math.log(nu * sigma2) - math.lgamma(0.5 * nu) + 0.5 * math.log(kappa)
    log_pi = math.log(math.pi)
    total = 0.0
    for k in range(num):
        if n[k] > 0:
            kappa_n = kappa + n[k]
            nu_n = nu + n[k]
            away = mean[k] - mu
            spread = nu * sigma2 + m2[k] + n[k] * kappa / kappa_n * away * away
            total += prior + math.lgamma(0.5 * nu_n) - 0.5 * math.log(kappa_n)
            total -= 0.5 * (nu_n * math.log(spread) + n[k] * log_pi)
    return total


@inner
def log_weights(
    n: IntArray,
    mean: FloatArray,
    m2: FloatArray,
    num: int,
    hyper: FloatArray,
    which: int,
    grid: FloatArray,
) -> FloatArray:
    """Log weights of hyperparameter `which` on its grid, the others as they are in `hyper`."""
    here = hyper.copy()
    weights = np.empty(grid.size)
    for i in range(grid.size):
        here[which] = grid[i]
        weights[i] = log_marginal(n, mean, m2, num, here)
    return weights


@compiled
def draw_hyper(
    n: IntArray,
    mean: FloatArray,
    m2: FloatArray,
    num: int,
    hyper: FloatArray,
    grids: NormalGrids,
    rng: np.random.Generator,
) -> None:
    """One sweep of (mu, kappa, nu, sigma2), in place, each given the others."""
    for which in range(4):
        grid = grids.mu
        if which == 1:
            grid = grids.kappa
        elif which == 2:
            grid = grids.nu
        elif which == 3:
            grid = grids.sigma2
        hyper[which] = grid[draw_index(log_weights(n, mean, m2, num, hyper, which, grid), rng)]


@compiled
def draw_prior(hyper: FloatArray, grids: NormalGrids, rng: np.random.Generator) -> None:
    """Hyperparameters before anything is seen, in place."""
    hyper[0] = grids.mu[int(rng.random() * grids.mu.size)]
    hyper[1] = grids.kappa[int(rng.random() * grids.kappa.size)]
    hyper[2] = grids.nu[int(rng.random() * grids.nu.size)]
    hyper[3] = grids.sigma2[int(rng.random() * grids.sigma2.size)]
