"""A model of rows whose rungs can be drawn exactly, independent or not, and its evidence.

    y_i = x + sqrt(c) u + e_i,   x ~ N(0, s^2 I),   u, e_i ~ N(0, I)        in two dimensions

The rows share u, which is integrated out. With c = 0 they are independent; otherwise the term of a
row looks back at the mean of those before it, and their order does not matter. Given n rows of
mean m, x is normal with precision n / (1 + n c) + 1 / s^2.
"""

from itertools import permutations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.prefix import PrefixLadder
from temperance.problems.problem import Problem

SCALE = 1.5


class Terms(eqx.Module):
    """log p(y_i | y_<i, x)."""

    shared: float = eqx.field(static=True)

    def __call__(self, x: Array, rows: Array) -> Array:
        rest = rows - x[None]
        before = jnp.arange(rows.shape[0], dtype=float)[:, None]
        weight = self.shared / (1 + self.shared * before)
        mean = weight * (jnp.cumsum(rest, axis=0) - rest)
        variance = 1 + weight
        squares = (rest - mean) ** 2 / variance + jnp.log(2 * jnp.pi * variance)
        return -0.5 * jnp.sum(squares, axis=1)


def log_prior(x: Array) -> Array:
    return -0.5 * jnp.sum((x / SCALE) ** 2) - 2 * jnp.log(SCALE) - jnp.log(2 * jnp.pi)


def draw_prior(key: Key) -> Array:
    return SCALE * jax.random.normal(key, (2,))


def make_rows(num_rows: int, seed: int = 0) -> np.ndarray:
    """Rows that disagree, so that it matters which of them a subsample holds.

    Four rows disagree less: each of their orders is to have a fair share of the probability.
    """
    rng = np.random.default_rng(seed)
    return rng.normal([0.8, -0.6], 2.5 if num_rows > 4 else 1.2, (num_rows, 2))


def make_problem(num_rows: int, shared: float = 0.0, seed: int = 0) -> Problem:
    return Problem(log_prior, Terms(shared), make_rows(num_rows, seed), draw_prior, shared == 0)


def make_ladder(sizes: tuple[int, ...], shared: float = 0.0, seed: int = 0) -> PrefixLadder:
    return PrefixLadder(
        log_prior, Terms(shared), make_rows(sizes[-1], seed), sizes,
        independent=shared == 0, draw_prior=draw_prior,
    )  # fmt: skip


def draw_rung(key: Key, rows: Array, shared: float) -> Array:
    """Exactly from the prior times the likelihood of `rows`."""
    n = rows.shape[0]
    known = n / (1 + n * shared)
    precision = known + SCALE**-2
    mean = known * jnp.mean(rows, axis=0) / precision if n else jnp.zeros(2)
    return mean + jax.random.normal(key, (2,)) / jnp.sqrt(precision)


def draw_rungs(key: Key, ladder: PrefixLadder, shared: float) -> Array:
    """One exact draw a rung of `ladder`."""
    keys = jax.random.split(key, ladder.num_rungs)
    draws = [draw_rung(k, ladder.data[:n], shared) for k, n in zip(keys, ladder.sizes, strict=True)]
    return jnp.stack(draws)


class AtRung(eqx.Module):
    """An exact draw at one rung, as a point that knows this rung's rows."""

    ladder: PrefixLadder
    rung: int = eqx.field(static=True)

    def __call__(self, key: Key) -> Point:
        x = draw_rungs(key, self.ladder, 0.0)[self.rung]
        return self.ladder.at(self.rung).evaluate(x, gradient=False)


def log_evidence(rows: np.ndarray, shared: float = 0.0) -> float:
    """Log p(rows): each coordinate is normal with variance 1 and covariance c + s^2."""
    n = len(rows)
    covariance = np.eye(n) + (shared + SCALE**2)
    _, log_det = np.linalg.slogdet(2 * np.pi * covariance)
    return float(-0.5 * np.sum(rows * np.linalg.solve(covariance, rows)) - log_det)


def order_law(ladder: PrefixLadder, shared: float) -> tuple[np.ndarray, np.ndarray]:
    """Every order of the rows, and its probability where orders are a part of the state."""
    rows = make_rows(ladder.num_rows)
    orders = np.array(list(permutations(range(len(rows)))))
    logs = np.array(
        [sum(log_evidence(rows[order[:n]], shared) for n in ladder.sizes if n) for order in orders]
    )
    weights = np.exp(logs - logs.max())
    return orders, weights / weights.sum()
