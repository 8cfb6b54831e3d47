"""The inner move alone: the baseline that every tempered method is measured against."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Position
from temperance.ladders.ladder import AbstractLadder, Rung
from temperance.moves.move import AbstractMove, Info, Params


class PlainState(NamedTuple):
    """The point at the target."""

    point: Point


class PlainInfo(NamedTuple):
    """What the move did, with a rung axis of one so that all samplers read alike.

    The last ones are of mini-batches (`BatchInfo`), and None where all rows are looked at.
    """

    acceptance: Float[Array, "1 parts"]
    diverging: Float[Array, "1"]
    num_evaluations: Float[Array, "1"]
    num_values: Float[Array, "1"]
    impossible: Float[Array, "1"]
    slope: Float[Array, "1 d"] | None
    batch_rows: Float[Array, ""] | None = None
    batch_variance: Float[Array, ""] | None = None
    batch_raised: Float[Array, ""] | None = None
    batch_trusted: Float[Array, ""] | None = None


def info_of_one(info: Info) -> PlainInfo:
    """What a move says, with a rung axis of one."""
    dtype = info.acceptance.dtype

    def row(value: Array | int | bool) -> Array:
        return jnp.asarray(value, dtype)[None]

    return PlainInfo(
        info.acceptance[None],
        row(info.diverging),
        row(info.num_evaluations),
        row(info.num_values),
        row(info.impossible),
        None if info.slope is None else info.slope[None],
        *(info.batch or ()),
    )


class Plain(eqx.Module):
    """`move` at the top rung of `ladder`, and nothing else; exact if the move is."""

    ladder: AbstractLadder
    move: AbstractMove
    params: Params

    def __check_init__(self):
        self.move.check_ladder(self.ladder)

    @property
    def num_rungs(self) -> int:
        return 1

    def init(self, position: Position) -> PlainState:
        gradient = self.move.uses_gradient and self.ladder.keeps_gradients
        point = self.ladder.evaluate(position, gradient=gradient)
        return PlainState(self.move.remember(point, self._top))

    @property
    def _top(self) -> Rung:
        return self.ladder.at(self.ladder.num_rungs - 1)

    def step(self, key: Key, state: PlainState) -> tuple[PlainState, PlainInfo]:
        params = jax.tree.map(lambda leaf: leaf[-1], self.params)
        point, info = self.move.step(key, state.point, self._top, params)
        return PlainState(point), info_of_one(info)

    def positions(self, state: PlainState) -> Position:
        """Where the chain is, with a rung axis of one."""
        return jax.tree.map(lambda leaf: leaf[None], state.point.position)

    def gradients(self, state: PlainState) -> Float[Array, "1 d"] | None:
        """The target's gradient there, where the move keeps gradients."""
        if state.point.gradients is None:
            return None
        return self._top.gradient(state.point)[None]

    def trail(self, state: PlainState) -> dict[str, Array]:
        """Nothing is kept between draws."""
        return {}

    def snapshot(self, state: PlainState) -> dict[str, Any]:
        """What a draw keeps."""
        record = {"position": state.point.position} | self.move.keepsakes(state.point)
        # Where rows are read a few at a time, nobody knows the log density of a draw.
        if not self.move.reads_rows:
            record["lp"] = self._top.log_density(state.point)
        return record
