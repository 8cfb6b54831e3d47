"""One rung of the equi-energy sampler, with the rings of the next hotter one frozen.

It is what `sample` fills rings with, one rung after the other, and draws with. A step costs one
move, however many rungs there are, and each rung's chain is Markov from its beginning
(all_rungs.py has the step).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from temperance._types import Key, Point, Position
from temperance.ladders.energies import EnergyLadder
from temperance.moves.move import AbstractMove, Params, step_at
from temperance.samplers.equi_energy.all_rungs import (
    EquiEnergyInfo,
    at_one_rung,
    check_parts,
    jumps_told,
    moves_told,
)
from temperance.samplers.equi_energy.jumps import maybe_jump
from temperance.samplers.equi_energy.reservoir import Reservoir, add, empty


class EquiEnergyRungState(NamedTuple):
    """The point, the frozen rings of the next hotter rung, and the rung's own if it fills them."""

    point: Point
    hotter: Reservoir
    own: Reservoir | None
    num_steps: Int[Array, ""]


class EquiEnergyRung(eqx.Module):
    """The chain of rung `rung`, with the rings of the next hotter one frozen.

    `params` are those of all rungs. With `fills` the chain's own states go to its own rings, after
    `burn_in` steps. The law of the chain is that of its rung up to an error of order one over the
    root of the frozen rings' effective size; at the hottest rung, which has none to jump into, it
    is exact.
    """

    ladder: EnergyLadder
    move: AbstractMove
    params: Params
    rung: Int[Array, ""]
    burn_in: Int[Array, ""]
    jump_probability: float = eqx.field(static=True, default=0.1)
    capacity: int = eqx.field(static=True, default=500)
    fills: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        check_parts(self.ladder, self.move, self.jump_probability, self.capacity)

    @property
    def num_rungs(self) -> int:
        return self.ladder.num_rungs

    def init(self, position: Position) -> EquiEnergyRungState:
        """At `position`, with no rings to jump into."""
        point = self.ladder.evaluate(position, gradient=self.move.uses_gradient)
        rings = empty(point, self.ladder.num_rings, self.capacity)
        return EquiEnergyRungState(point, rings, rings if self.fills else None, jnp.zeros((), int))

    def step(
        self, key: Key, state: EquiEnergyRungState
    ) -> tuple[EquiEnergyRungState, EquiEnergyInfo]:
        """A move, perhaps a jump, and what is remembered of them."""
        key_move, key_jump = jax.random.split(key)
        params = jax.tree.map(lambda leaf: leaf[self.rung], self.params)
        point, info = step_at(self.move, self.ladder.at(self.rung), key_move, state.point, params)
        # The hottest rung's rings to jump into are empty, and the rung below it does not exist.
        colder = jnp.maximum(self.rung, 1)
        point, tried, jumped = maybe_jump(
            key_jump, point, state.hotter, self.ladder, colder, self.jump_probability, self.rung > 0
        )
        own = state.own
        if own is not None:
            ring = self.ladder.ring(point.components)
            own = add(own, ring, point, state.num_steps >= self.burn_in)
        told = [
            at_one_rung(value.astype(info.acceptance.dtype), self.rung, self.num_rungs)
            for value in (*moves_told(info), tried, *jumps_told(jumped))
        ]
        state = EquiEnergyRungState(point, state.hotter, own, state.num_steps + 1)
        return state, EquiEnergyInfo._make([*told, None, None])

    def positions(self, state: EquiEnergyRungState) -> Position:
        """Where the chain is, with a rung axis of one."""
        return jax.tree.map(lambda leaf: leaf[None], state.point.position)

    def trail(self, state: EquiEnergyRungState) -> dict[str, Array]:
        """Nothing is kept between draws."""
        return {}

    def snapshot(self, state: EquiEnergyRungState) -> dict[str, Any]:
        """What a draw keeps."""
        lp = self.ladder.at(self.rung).log_density(state.point)
        return {"position": state.point.position, "lp": lp}
