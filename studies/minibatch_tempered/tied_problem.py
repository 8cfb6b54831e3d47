"""Tied means: two normals a distance theta_2 apart, and the exact tempered law on a grid.

    theta_1 ~ N(0, 10), theta_2 ~ N(0, 1),  x_i ~ 1/2 N(theta_1, 2) + 1/2 N(theta_1 + theta_2, 2)

10^6 rows drawn with (0, 1). The likelihood does not change under (theta_1, theta_2) ->
(theta_1 + theta_2, -theta_2), so its modes come in pairs of equal height. The prior does: it has
theta_1 = 0 at one of them and theta_1 = 1 at the other, and the posterior's modes have the ratio
exp(1/20) = 1.051 where the paper says 1.00. Three laws, with L the log likelihood and p the prior:

    posterior            L + log p            ratio exp(1/20)
    prior tempered       (L + log p) / T      ratio exp(1 / (20 T)) = 1.0000
    prior not tempered   L / T + log p        one mode: 31.6 rows' worth does not outweigh the prior

With batches of m rows T = n / m^alpha; m = 1000 and alpha = 1/2 make T = 31623, and 10^6 rows are worth 31.6.
"""

import functools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from nodes import nodes_of
from scipy.optimize import minimize
from scipy.special import logsumexp

import temperance as tp

SEED = 20170804
TRUTH = (0.0, 1.0)
VARIANCE = 2.0
PRIOR_VARIANCES = np.array([10.0, 1.0])
BATCH, ALPHA = 1000, 0.5
WIDTH = 0.02
# The tempered law is this wide; what lies outside is a cell of its own.
BOX = ((-3.0, 4.0), (-5.0, 5.0))
# A side of the grid has so many points, and a side of the histograms so many cells.
FINE, COARSE = 200, 25
LAWS = ("posterior", "prior tempered", "prior not tempered")
LOG_NORM = -0.5 * np.log(2 * np.pi * VARIANCE) - np.log(2.0)


class TiedTerms(eqx.Module):
    """Log density of each row under the two tied normals.

    Without the usual guard, which costs more than all else: both exponentials are zero only if a
    row lies more than 54 from either mean.
    """

    def __call__(self, theta: Array, rows: Array) -> Array:
        first = -((rows - theta[0]) ** 2) / (2 * VARIANCE)
        second = -((rows - theta[0] - theta[1]) ** 2) / (2 * VARIANCE)
        return jnp.log(jnp.exp(first) + jnp.exp(second)) + LOG_NORM


@functools.cache
def data(num_rows: int) -> np.ndarray:
    """Rows drawn with theta = (0, 1)."""
    generator = np.random.default_rng(SEED)
    second = generator.uniform(size=num_rows) < 0.5
    noise = np.sqrt(VARIANCE) * generator.normal(size=num_rows)
    return TRUTH[0] + TRUTH[1] * second + noise


@functools.cache
def tied_means(num_rows: int) -> tp.Problem:
    """The posterior of the two means."""
    prior = tp.Gaussian(np.zeros(2), PRIOR_VARIANCES)
    return tp.Problem(prior, TiedTerms(), data(num_rows), prior.draw)


def temperature(num_rows: int) -> float:
    """T = n / m^alpha."""
    return num_rows / BATCH**ALPHA


def log_likelihood(theta: np.ndarray, rows: np.ndarray, weights: Any = 1.0) -> np.ndarray:
    """The log likelihood at points (..., 2), of rows or of weighted nodes."""
    flat = np.reshape(theta, (-1, 2))
    sums = np.empty(len(flat))
    for i, (one, two) in enumerate(flat):
        first = -((rows - one) ** 2) / (2 * VARIANCE)
        step = two * (2 * (rows - one) - two) / (2 * VARIANCE)
        sums[i] = np.sum(weights * (first + np.logaddexp(0.0, step) + LOG_NORM))
    return sums.reshape(np.shape(theta)[:-1])


def log_prior(theta: np.ndarray) -> np.ndarray:
    """The log prior at points (..., 2)."""
    return -0.5 * np.sum(theta**2 / PRIOR_VARIANCES + np.log(2 * np.pi * PRIOR_VARIANCES), axis=-1)


def log_law(law: str, num_rows: int, likelihood: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The log density of a law, from the log likelihood."""
    heat = temperature(num_rows)
    if law == "posterior":
        return likelihood + log_prior(theta)
    if law == "prior tempered":
        return (likelihood + log_prior(theta)) / heat
    return likelihood / heat + log_prior(theta)


def middles(num_points: int) -> np.ndarray:
    """Centres of a grid's cells (theta_1, theta_2, 2) over the box."""
    sides = [low + (high - low) * (np.arange(num_points) + 0.5) / num_points for low, high in BOX]
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1)


@functools.cache
def grid(num_rows: int, law: str = "prior tempered") -> np.ndarray:
    """Masses of the fine grid's cells under a tempered law, by the density at their centres."""
    theta = middles(FINE)
    log_mass = log_law(
        law, num_rows, log_likelihood(theta, *nodes_of(data(num_rows), WIDTH)), theta
    )
    return np.exp(log_mass - logsumexp(log_mass))


def error_of_nodes(num_rows: int, num_points: int = 8) -> float:
    """The largest error of the nodes' tempered log likelihood at random points of the box."""
    generator = np.random.default_rng(0)
    low, high = np.transpose(BOX)
    theta = low + (high - low) * generator.uniform(size=(num_points, 2))
    rows = data(num_rows)
    wrong = log_likelihood(theta, *nodes_of(rows, WIDTH)) - log_likelihood(theta, rows)
    return float(np.max(np.abs(wrong))) / temperature(num_rows)


def mass_outside(num_rows: int, stretch: float = 3.0) -> float:
    """About how much of the tempered law lies outside the box: a coarser grid on a larger one."""
    low, high = np.transpose(BOX)
    middle = 0.5 * (low + high)
    theta = middle + stretch * (middles(FINE) - middle)
    log_mass = log_law(
        "prior tempered", num_rows, log_likelihood(theta, *nodes_of(data(num_rows), WIDTH)), theta
    )
    inside = np.all((theta > low) & (theta < high), axis=-1)
    return float(np.exp(logsumexp(log_mass[~inside]) - logsumexp(log_mass)))


def modes(num_rows: int, law: str) -> tuple[np.ndarray, float]:
    """A law's two modes, that with theta_2 > 0 first, and the ratio of their heights."""
    nodes = nodes_of(data(num_rows), WIDTH)

    def energy(theta: np.ndarray) -> float:
        return -float(log_law(law, num_rows, log_likelihood(theta, *nodes), theta))

    def mode(start: tuple[float, float]) -> Any:
        return minimize(
            energy, np.array(start), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9}
        )

    found = [mode((0.0, 1.0)), mode((1.0, -1.0))]
    return np.array([one.x for one in found]), float(np.exp(found[1].fun - found[0].fun))
