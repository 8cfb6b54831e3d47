"""Random walks of some of a position's coordinates, and what a chain remembers for them.

Coordinates in a set I are proposed at x_I + s F_I z with F_I the rows of the rung's factor, so that
with a dense factor they walk by their own covariance, and with a diagonal one by their own scales.
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array, Float

from temperance._types import Point, Scalar
from temperance.ladders.ladder import Rung
from temperance.moves.accept import Tried, accept_or_stay
from temperance.moves.fast_slow.fast_variables import AbstractFastSlow, Fast, Halves
from temperance.moves.fast_slow.two_stage import Cache

# Fast variables are few, and few are best moved farther than many.
FAST_TARGET = 0.35


class Walker(NamedTuple):
    """Values of the fast variables, and what is evaluated there."""

    fast: Fast
    values: Array


class AbstractRemembering(AbstractFastSlow):
    """A move that starts from the cache of its point's slow variables, where the point has it.

    A chain that is asked to `remember` carries it along. Others prepare it once more at each step.
    """

    def remember(self, point: Point, rung: Rung) -> Point:
        halves = self.halves(point, rung)
        return point._replace(memory=halves.prepare(halves.slow))

    def known(self, halves: Halves, point: Point) -> tuple[Cache, int]:
        """The cache of the point, and how many slow evaluations that took."""
        if point.memory is None:
            return halves.prepare(halves.slow), 1
        return point.memory, 0


def stride(rows: Array, normals: Float[Array, " n"]) -> Float[Array, " some"]:
    """The step of some coordinates, from their rows of a factor."""
    return rows * normals if rows.ndim == 1 else rows @ normals


def fast_update(
    here: Walker,
    stepped: Fast,
    uniform: Scalar,
    evaluate: Callable[[Fast], Array],
    log_density: Callable[[Array], Scalar],
) -> tuple[Walker, Tried]:
    """One Metropolis update of the fast variables, proposed at `stepped`."""
    there = Walker(stepped, evaluate(stepped))
    return accept_or_stay(uniform, log_density(there.values), log_density(here.values), there, here)
