"""Simulated tempering: one chain that walks the rungs of a ladder.

    rung    k <- drawn from P(k | x) = softmax_k(log pi_k(x) + w_k)       over all rungs at once
    move    x <- T_k(x)

The joint law is P(x, k) proportional to exp(w_k) pi_k(x) (paper 4, equation 7). A point carries the
components of all rungs' densities, so that P(k | x) evaluates nothing. Every x counts for the
target with weight P(K-1 | x), whatever rung it was drawn at, and for the hottest rung with P(0 | x)
(Carlson et al. 2016), which leaves

    log Z_{K-1} / Z_0 = w_0 - w_{K-1} + log E[P(K-1 | x)] - log E[P(0 | x)]

(equations 8 and 9). The rungs are visited equally often where w_k = -log Z_k, which warm-up learns.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from temperance._types import Key, Point, Position
from temperance.errors import ArgumentError
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import AbstractLadder, AbstractUniformLadder, weighted
from temperance.moves.move import AbstractMove, Params, refuse_few_rows
from temperance.programs.random_streams import Sweep, stream
from temperance.samplers.base_jump import check_jumps, jump_from_base
from temperance.samplers.plain import PlainInfo, info_of_one
from temperance.samplers.round_trips import Trips, none_yet, travelled


class SimulatedState(NamedTuple):
    """The point with log P(k | x), the rung of its last move, and how far it has travelled."""

    point: Point
    log_probabilities: Float[Array, " rungs"]
    rung: Int[Array, ""]
    trips: Trips


class SimulatedTempering(eqx.Module):
    """One chain on all rungs of `ladder`, drawn to rung k by `log_weights[k]`; draws are weighted.

    Exact if the move is, whatever the weights are; weights far from -log Z_k leave the chain on a
    few rungs. They must not change while draws are kept. `jumps` proposes a draw of the base before
    each move (base_jump.py).
    """

    ladder: AbstractLadder
    move: AbstractMove
    params: Params
    log_weights: Float[Array, " rungs"]
    jumps: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        refuse_few_rows(self.move)
        if self.jumps:
            check_jumps(self.ladder)
        if not isinstance(self.ladder, AbstractUniformLadder):
            raise ArgumentError(
                "ladder: simulated tempering goes to any rung at any step, and on nested "
                "subsamples each rung is a program of its own: heat by powers (GeometricLadder), "
                "or use method='spt'"
            )

    @property
    def num_rungs(self) -> int:
        return 1

    def init(self, position: Position) -> SimulatedState:
        point = self.ladder.evaluate(position, gradient=self.move.uses_gradient)
        if self.move.gathers:
            point = self.move.remember(point, self.ladder.at(0))
        logs = self.log_probabilities(point.components)
        return SimulatedState(point, logs, jnp.zeros((), int), none_yet())

    def log_probabilities(self, components: Float[Array, " components"]) -> Float[Array, " rungs"]:
        """Log P(k | x) for every rung."""
        densities = jax.vmap(weighted, in_axes=(0, None))(self.ladder.weight_table(), components)
        return jax.nn.log_softmax(densities + self.log_weights)

    def step(self, key: Key, state: SimulatedState) -> tuple[SimulatedState, PlainInfo]:
        key_rung, key_move = jax.random.split(key)
        # One number for the whole table: a categorical draw would take one for each rung.
        below = jnp.cumsum(jnp.exp(state.log_probabilities))
        uniform = jax.random.uniform(key_rung, dtype=below.dtype)
        rung = jnp.sum(below < uniform * below[-1])
        rung = jnp.minimum(rung, self.ladder.num_rungs - 1)
        params = jax.tree.map(lambda leaf: leaf[rung], self.params)
        point = state.point
        if self.jumps:
            assert isinstance(self.ladder, GeometricLadder)
            key_jump = stream(key, Sweep.JUMP)
            point = jump_from_base(key_jump, self.ladder, self.ladder.betas[rung], point, self.move)
        point, info = self.move.step(key_move, point, self.ladder.at(rung), params)
        info = info._replace(num_evaluations=info.num_evaluations + int(self.jumps))
        height = rung / (self.ladder.num_rungs - 1)
        trips = travelled(state.trips, height.astype(below.dtype))
        logs = self.log_probabilities(point.components)
        return SimulatedState(point, logs, rung, trips), info_of_one(info)

    def weigh(self, components: Float[Array, " components"]) -> dict[str, Array]:
        """What a state counts for, under the target and under the base."""
        return _at_the_ends(self.log_probabilities(components))

    def trail(self, state: SimulatedState) -> dict[str, Array]:
        """What every step leaves behind: its weights."""
        return _at_the_ends(state.log_probabilities)

    def snapshot(self, state: SimulatedState) -> dict[str, Any]:
        """What a draw keeps."""
        return {
            "position": state.point.position,
            "lp": self.ladder.at(self.ladder.num_rungs - 1).log_density(state.point),
            "rung": state.rung,
            "round_trips": state.trips.finished,
        } | self.move.keepsakes(state.point, self.weigh)


def _at_the_ends(logs: Float[Array, " rungs"]) -> dict[str, Array]:
    return {"log_weight": logs[-1], "log_weight_base": logs[0]}
