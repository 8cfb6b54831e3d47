"""A logistic regression whose posterior can be drawn exactly, for tests of exact mini-batches.

Every row looks at one of two coordinates u, so that they are independent given the data, and each
is drawn by inverting its distribution function on a fine grid. Positions are x = MIX u: to a kernel
they are correlated, and every row looks at both. Few and one-sided labels make it far from
Gaussian.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import temperance as tp
from temperance._types import Key

MIX = np.array([[1.2, 0.0], [-0.7, 0.6]])
COORDINATE = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
SLOPE = np.array([0.5, -1.0, 1.5, 0.8, -0.6, 1.0, 0.7, 1.4, -0.3])
LABEL = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
SPREAD = 1.5
NUM_ROWS = LABEL.size
DESIGN = np.eye(2)[COORDINATE] * SLOPE[:, None] @ np.linalg.inv(MIX)
GRID = np.linspace(-9.0, 11.0, 40_001)


def log_prior(x):
    return -0.5 * jnp.sum((jnp.asarray(np.linalg.inv(MIX)) @ x / SPREAD) ** 2)


def terms(x, rows):
    design, label = rows
    return label * (design @ x) - jax.nn.softplus(design @ x)


def draw_prior(key):
    return jnp.asarray(MIX) @ (SPREAD * jax.random.normal(key, (2,)))


def make_problem() -> tp.Problem:
    return tp.Problem(log_prior, terms, (DESIGN, LABEL), draw_prior)


def _distribution(coordinate: int, power: float) -> np.ndarray:
    mine = coordinate == COORDINATE
    eta = GRID[:, None] * SLOPE[mine]
    log_density = power * (LABEL[mine] * eta - np.logaddexp(0.0, eta)).sum(1)
    log_density -= 0.5 * (GRID / SPREAD) ** 2
    density = np.exp(log_density - log_density.max())
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    return below / below[-1]


class Law(eqx.Module):
    """The posterior with its likelihood to a power; draws are positions."""

    below: Array

    def __init__(self, power: float = 1.0):
        self.below = jnp.asarray([_distribution(j, power) for j in range(2)])

    def __call__(self, key: Key) -> Array:
        heights = jax.random.uniform(key, (2,))
        u = jnp.stack([jnp.interp(heights[j], self.below[j], jnp.asarray(GRID)) for j in range(2)])
        return jnp.asarray(MIX) @ u


def statistics_of(x: Array) -> Array:
    """Bounded, of each coordinate, and of both."""
    a, b = jnp.tanh(0.8 * (jnp.asarray(np.linalg.inv(MIX)) @ x - jnp.array([0.1, 1.2])))
    return jnp.stack([a, b, a * b, a**2, b**2])
