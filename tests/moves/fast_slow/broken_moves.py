"""Moves for fast and slow variables with one slip each; the tests reject them all."""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Scalar
from temperance.ladders.ladder import Rung, weighted
from temperance.moves.fast_slow.dragging import Dragging
from temperance.moves.fast_slow.extra_updates import FastUpdates
from temperance.moves.fast_slow.multiple_try import MultipleTry
from temperance.moves.fast_slow.multiset import Kept, Multiset
from temperance.moves.fast_slow.random_grid import RandomGrid
from temperance.moves.move import AbstractMove, Info, Params
from temperance.moves.single_site import SingleSite


class SingleSiteWithStaleComponents(SingleSite):
    """Refuses a position, and keeps what was known of it."""

    def kept(self, accepted: Array, proposal: Point, point: Point) -> Point:
        kept = super().kept(accepted, proposal, point)
        return kept._replace(components=proposal.components)


class SingleSiteInOneOrderBothWays(SingleSite):
    """Takes its own order for the one that leads back."""

    def reversal(self) -> AbstractMove:
        return self


class FastUpdatesWithStaleComponents(FastUpdates):
    """Moves the fast variables, and keeps what was known of the last ones."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        moved, info = super().step(key, point, rung, params)
        return moved._replace(components=point.components), info


class RandomGridThatForgetsTheSign(RandomGrid):
    """Looks up x1 - i delta where x1 + i delta is kept."""

    def slot(self, index: Array) -> Array:
        return jnp.abs(index)


class RandomGridWithTooFewSlots(RandomGrid):
    """Keeps several grid points in one place."""

    def slot(self, index: Array) -> Array:
        return index % 2


class DraggingByItsEnds(Dragging):
    """Accepts by the densities of the end points."""

    def log_ratio(self, path: Float[Array, "times 2"]) -> Scalar:
        return path[-1, 1] - path[0, 0]


class DraggingWithoutTheFirstTerm(Dragging):
    """Leaves out where the path begins."""

    def log_ratio(self, path: Float[Array, "times 2"]) -> Scalar:
        return super().log_ratio(path[1:])


class MultipleTryWithoutThePoint(MultipleTry):
    """Leaves the current point out of those that stand against the tries."""

    def standing(self, log_against: Float[Array, " n"]) -> Scalar:
        others = log_against[:-1]
        return logsumexp(others) + jnp.log(log_against.size / others.size)


class MultisetChoosingUniformly(Multiset):
    """Takes any member for the position, whatever its weight."""

    def choose(self, key: Key, log_weights: Float[Array, " members"]) -> Array:
        return jax.random.randint(key, (), 0, self.members)


class MultisetWeighedByPi(Multiset):
    """Weighs members by pi, where pi over the base belongs."""

    def _log_weights(self, kept: Kept, rung: Rung) -> Float[Array, " members"]:
        return jax.vmap(weighted, in_axes=(None, 0))(rung.weights, kept.components)
