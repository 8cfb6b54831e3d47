"""A few rows whose law with a batch can be drawn exactly, and many whose noise is normal.

    y_i = x + e_i,    l_i(x) = -(y_i - x)^2 / 2,    log p(x) = -(x - a)^2 / (2 s^2)

For a batch S of m rows, log f(x, S) = c mean_S l + w log p, c = m^alpha, is a parabola in x, and so
is the variance of S's terms. So S is drawn from the masses under the parabolas of all batches, and
x given S is normal. Differences l_i(x*) - l_i(x) are linear in y_i: of many rows at the quantiles
of a normal law their mean over a batch is normal to all that can be seen.
"""

from itertools import combinations, product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import stats

from temperance._types import Key, Point
from temperance.ladders.row_sums import RowLadder, Rows
from temperance.moves.minibatch.pseudo_marginal import OwnBatch, PseudoMarginal
from temperance.moves.move import AbstractMove, Params
from temperance.samplers.plain import Plain, PlainState

CENTRE, SCALE = 0.6, 1.1
FEW = np.array([-1.9, -0.4, 0.3, 0.9, 1.6, 2.8])


def log_prior(x: Array) -> Array:
    return -0.5 * jnp.sum(((x - CENTRE) / SCALE) ** 2)


def terms(x: Array, rows: Array) -> Array:
    return -0.5 * (rows - x[0]) ** 2


def many_rows(num_rows: int, scale: float = 1.0) -> np.ndarray:
    """The quantiles of a normal law, in an order that says nothing."""
    places = (np.arange(num_rows) + 0.5) / num_rows
    return np.random.default_rng(3).permutation(scale * stats.norm.ppf(places))


def ladder_of(rows: np.ndarray) -> RowLadder:
    return RowLadder(Rows(log_prior, terms, jnp.asarray(rows), len(rows)))


def sampler_of(move: AbstractMove, rows: np.ndarray, step: float) -> Plain:
    return Plain(ladder_of(rows), move, Params(jnp.array([[step]]), jnp.ones((1, 1))))


class Step(eqx.Module):
    sampler: Plain

    def __call__(self, key: Key, state: PlainState) -> PlainState:
        return self.sampler.step(key, state)[0]


class Pairs(eqx.Module):
    """Exact draws of a position with its batch, as states of a sampler on few rows."""

    ladder: RowLadder
    batches: Array
    log_masses: Array
    means: Array
    deviations: Array

    def __call__(self, key: Key) -> PlainState:
        key_batch, key_order, key_position = jax.random.split(key, 3)
        at = jax.random.categorical(key_batch, self.log_masses)
        x = self.means[at] + self.deviations[at] * jax.random.normal(key_position, (1,))
        # In any order: sums that differ by rounding are to have one law too.
        places = jax.random.permutation(key_order, self.batches[at])
        point = self.ladder.evaluate(x, gradient=False)
        return PlainState(point._replace(memory=OwnBatch(places, self.ladder.rows.at(x, places))))


def pairs_of(move: PseudoMarginal, rows: np.ndarray) -> Pairs:
    """The exact law of `move` on `rows`, by arithmetic of its own."""
    n, m = len(rows), move.batch_size
    c = m**move.alpha
    power = c / n if move.temper_prior else 1.0
    every = product(range(n), repeat=m) if move.replace else combinations(range(n), m)
    batches = np.array(list(every))
    at = np.array([-1.0, 0.0, 1.0])
    values = -0.5 * (rows[batches][:, :, None] - at) ** 2
    logs = c * values.mean(axis=1) - power * 0.5 * ((at - CENTRE) / SCALE) ** 2
    if move.corrected:
        left = 1.0 if move.replace else 1 - m / n
        logs = logs - 0.5 * c**2 * values.var(axis=1, ddof=1) / m * left
    # A parabola from three of its points: k + b x - p x^2 / 2.
    middle = logs[:, 1]
    slope, precision = (logs[:, 2] - logs[:, 0]) / 2, 2 * middle - logs[:, 0] - logs[:, 2]
    assert (precision > 0).all()
    masses = middle + 0.5 * slope**2 / precision - 0.5 * np.log(precision)
    parts = (batches.astype(np.int32), masses, slope / precision, precision**-0.5)
    return Pairs(ladder_of(rows), *map(jnp.asarray, parts))


def pair_statistics(state: PlainState) -> Array:
    """Of the position, of its batch whatever its order, of what is cached, and of them together."""
    rows = jnp.asarray(FEW)
    x = state.point.position[0]
    places, known = state.point.memory
    y = rows[places]
    counts = jnp.sum(places[:, None] == jnp.arange(rows.size)[None], axis=0).astype(float)
    cached = jnp.mean(known) + 0.5 * jnp.mean((y - x) ** 2)
    return jnp.stack([
        x, x**2, jnp.mean(y), x * jnp.mean(y), jnp.tanh(0.3 * jnp.mean(known)), jnp.std(y),
        counts[0], counts[5] * x, jnp.max(counts) + 0.1 * jnp.tanh(x), jnp.tanh(jnp.std(known)),
        x + jnp.tanh(cached), state.point.components[0],
    ])  # fmt: skip


def fixed(state: PlainState) -> Array:
    """Of the position alone, where a move keeps no batch."""
    x = state.point.position[0]
    return jnp.stack([x, x**2, jnp.tanh(3 * x), state.point.components[0]])


class Normal(eqx.Module):
    """Exact draws of the tempered law of many rows, which is normal."""

    ladder: RowLadder
    mean: float = eqx.field(static=True)
    deviation: float = eqx.field(static=True)

    def __call__(self, key: Key) -> PlainState:
        x = self.mean + self.deviation * jax.random.normal(key, (1,))
        point: Point = self.ladder.evaluate(x, gradient=False)
        return PlainState(point)


def tempered_normal(
    rows: np.ndarray, batch_size: int, alpha: float, *, temper_prior: bool = True
) -> Normal:
    c = batch_size**alpha
    power = c / len(rows) if temper_prior else 1.0
    precision = c + power / SCALE**2
    mean = (c * rows.mean() + power * CENTRE / SCALE**2) / precision
    return Normal(ladder_of(rows), float(mean), float(precision**-0.5))
