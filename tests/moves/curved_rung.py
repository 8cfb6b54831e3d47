"""A rung of a skewed and bent target that can be drawn exactly, for tests of moves.

It stands in the middle of its ladder, so that both components have a weight that is neither zero
nor one.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung
from temperance.moves.move import AbstractMove, Params
from temperance.testing import CurvedGamma, Verdict

TARGET = CurvedGamma()
LADDER = TARGET.ladder([0.1, 0.6, 1.0])
RUNG, BETA = LADDER.at(1), 0.6
DIAGONAL = jnp.array([0.8, 0.9])
DENSE = jnp.array([[0.8, 0.0], [-0.5, 0.7]])


def params(*sizes: float, factor: Array = DIAGONAL) -> Params:
    return Params(jnp.asarray(sizes), factor)


class Kernel(eqx.Module):
    """A move at a rung, as the kit wants it."""

    move: AbstractMove
    params: Params
    rung: Rung

    def __call__(self, key: Key, point: Point) -> Point:
        return self.move.step(key, point, self.rung, self.params)[0]


class Exact(eqx.Module):
    """An exact draw at the rung, as a point."""

    rung: Rung
    gradient: bool = eqx.field(static=True)

    def __call__(self, key: Key) -> Point:
        return self.rung.evaluate(TARGET.draw(key, BETA), gradient=self.gradient)


def statistics(point: Point) -> Array:
    """Bounded, of each coordinate, of both, and of what is cached about them."""
    u, v = jnp.tanh(point.position + jnp.array([0.3, -0.5]))
    return jnp.stack([u, v, u * v, u**2, v**2, jnp.tanh(RUNG.log_density(point) + 2.5)])


def run(test: Callable[..., Verdict], move: AbstractMove, tuned: Params, seed: int, **kw: Any):
    exact = Exact(RUNG, move.uses_gradient)
    return test(Kernel(move, tuned, RUNG), exact, statistics, seed=seed, **kw)


def volume(both: Callable[..., tuple[Array, Array]], x: Array, z: Array) -> float:
    """By how much a map of positions and momenta stretches, at one of them."""
    jacobian = jax.jacfwd(lambda s: jnp.concatenate(both(s[:2], s[2:])))(jnp.concatenate([x, z]))
    return float(jnp.abs(jnp.linalg.det(jacobian)))
