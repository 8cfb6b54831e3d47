"""A rung with a slow and a fast leaf that can be drawn exactly, for tests of moves.

    e^u ~ Gamma(2, rate),      v_j ~ N(c_j u^2, 1 / precision),      j = 1, 2

with u slow and v fast; rate and precision change along the bridge, linearly in beta, so that every
rung is of the same kind. The fast leaf comes first, so that places and names do not agree by luck.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import temperance as tp
from temperance._types import Key, Point, Position
from temperance.moves.fast_slow.multiset import Multiset
from temperance.moves.move import AbstractMove, Params
from temperance.testing import Verdict

RATES, PRECISIONS, BENDS = (1.0, 4.0), (0.5, 3.0), np.array([0.5, -0.3])
BETA = 0.6


class Bent(eqx.Module):
    """The log density at one end of the bridge."""

    rate: float
    precision: float

    def __call__(self, position: Position) -> Array:
        u, v = position["shape"], position["level"]
        # What costs time in earnest, and depends on the slow leaf alone.
        mean = BENDS * u[0] ** 2
        slow = 2 * u[0] - self.rate * jnp.exp(u[0])
        return slow - 0.5 * self.precision * jnp.sum((v - mean) ** 2)


LADDER = tp.GeometricLadder(
    *(Bent(r, p) for r, p in zip(RATES, PRECISIONS, strict=True)), [0.1, BETA, 1.0], bridge=True
)
RUNG = LADDER.at(1)
# Laid out as one vector the fast leaf is first.
DIAGONAL = jnp.array([0.9, 0.8, 0.8])
DENSE = jnp.array([[0.9, 0.0, 0.0], [-0.2, 0.8, 0.0], [-0.3, 0.1, 0.7]])


def params(*sizes: float, factor: Array = DIAGONAL) -> Params:
    return Params(jnp.asarray(sizes), factor)


def draw(key: Key) -> Position:
    """One exact draw at the rung."""
    key_u, key_v = jax.random.split(key)
    rate, precision = ((1 - BETA) * a + BETA * b for a, b in (RATES, PRECISIONS))
    # A gamma variable of whole shape is a sum of exponentials.
    u = jnp.log(jnp.sum(jax.random.exponential(key_u, (2,))) / rate)[None]
    v = BENDS * u**2 + jax.random.normal(key_v, (2,)) / jnp.sqrt(precision)
    return {"level": v, "shape": u}


class Exact(eqx.Module):
    """An exact draw at the rung, as a point, with what a move keeps beside it as exact."""

    multiset: Multiset | None = None
    gradient: bool = eqx.field(static=True, default=False)

    def __call__(self, key: Key) -> Point:
        key_draw, key_memory = jax.random.split(key)
        point = RUNG.evaluate(draw(key_draw), gradient=self.gradient)
        if self.multiset is None:
            return point
        return self.multiset.begun(key_memory, point, self.multiset.halves(point, RUNG))


class Kernel(eqx.Module):
    """A move at the rung, as the kit wants it; perhaps there and back."""

    move: AbstractMove
    params: Params
    back: AbstractMove | None = None

    def __call__(self, key: Key, point: Point) -> Point:
        if self.back is None:
            return self.move.step(key, point, RUNG, self.params)[0]
        key_there, key_back = jax.random.split(key)
        there, _ = self.move.step(key_there, point, RUNG, self.params)
        return self.back.step(key_back, there, RUNG, self.params)[0]


def statistics(point: Point) -> Array:
    """Bounded, of each leaf, of both, and of what is cached about them."""
    u = jnp.tanh(point.position["shape"][0] + 0.3)
    v, w = jnp.tanh(point.position["level"] - jnp.array([0.4, -0.2]))
    known = jnp.tanh(0.5 * (RUNG.log_density(point) + 3.0))
    return jnp.stack([u, v, w, u * v, v * w, u * w**2, v**2, known])


def run(
    test: Callable[..., Verdict], move: AbstractMove, tuned: Params, seed: int, **kw: Any
) -> Verdict:
    back = kw.pop("back", None)
    exact = Exact(move if isinstance(move, Multiset) else None, move.uses_gradient)
    return test(Kernel(move, tuned, back), exact, statistics, seed=seed, **kw)
