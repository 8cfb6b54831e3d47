"""Ensembles with the slips that are easily made."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point, Scalar
from temperance.ladders.ladder import Rung
from temperance.moves.fast_slow.base_measures import Exchangeable, Grid, Independent, Members, side
from temperance.moves.fast_slow.ensemble import Ensemble
from temperance.moves.move import Info, Params, Weigh


class WeighedByTheTarget(Independent):
    """Members are selected by pi, and not by pi / xi."""

    def log_marginals(self, members: Members) -> Array:
        return jnp.zeros(members.shape[:1])

    def log_joint(self, members: Members) -> Scalar:
        return jnp.sum(jax.vmap(self.base)(members))


class ShiftedForNothing(Independent):
    """A shift of all members is accepted as if xi did not change with it."""

    def log_joint(self, members: Members) -> Scalar:
        return jnp.zeros(())


class AroundTheCurrentOne(Exchangeable):
    """The others are drawn around the current value, and not around a centre drawn given it."""

    def spread(self, key: Key, fast: Array, scale: Array, num_members: int) -> Members:
        assert self.scale is not None
        noise = jax.random.normal(key, (num_members - 1, fast.size))
        return jnp.concatenate([fast[None], fast[None] + self.scale[None] * noise])


class AlwaysTheSameCell(Grid):
    """The current value is always the lowest corner of its grid."""

    def spread(self, key: Key, fast: Array, scale: Array, num_members: int) -> Members:
        members = super().spread(key, fast, scale, num_members)
        assert side(num_members, fast.size) > 1
        return members + (fast - members[0])[None]


class StaleCache(Ensemble):
    """The cache of the slow variables from before the update is kept after it."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        landed, info = super().step(key, point, rung, params)
        return landed._replace(memory=landed.memory._replace(cache=point.memory.cache)), info


class UniformSelection(Ensemble):
    """Any member is taken, as likely as another."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        landed, info = super().step(key, point, rung, params)
        halves = self.halves(landed, rung)
        chosen = jax.random.randint(key, (), 0, self.num_members)
        fast = landed.memory.members[chosen]
        components = halves.finish(landed.memory.cache, fast)
        return halves.point(halves.slow, fast, components, landed.memory), info


class KeptAcrossASwap(Ensemble):
    """On a ladder a draw keeps the members of whatever rung its replica came from."""

    @property
    def gathers(self) -> bool:
        return False


class WeighedAsOne(Ensemble):
    """Where draws are weighted every member counts for what the selected one does."""

    def keepsakes(self, point: Point, weigh: Weigh | None = None) -> dict[str, Array]:
        assert weigh is not None
        return super().keepsakes(point, lambda _: weigh(point.components))


def slipped(move: Ensemble, kind: type[Ensemble]) -> Ensemble:
    """`move` with the slip of `kind`."""
    fields = {name: getattr(move, name) for name in move.__dataclass_fields__}
    return kind(**fields)


def measured(move: Ensemble, measure: Independent | Exchangeable | Grid) -> Ensemble:
    return replace(move, measure=measure)
