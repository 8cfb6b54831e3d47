"""Parallel tempering: one replica a rung, moved there and exchanged with its neighbours.

The joint law of the replicas is prod_k pi_k(x_k). One sweep is

    explore       x_k <- T_k(x_k) for every rung, the target's included
    communicate   exchange neighbours by a swap scheme (samplers/swaps.py), once or several times:
                  swaps evaluate nothing, so more of them travel farther for the same price

and each of the two leaves that law invariant, so the target's marginal is exact. Where the
hottest rung is a normalised density with a sampler, its replica is drawn afresh instead of moved.

Paper 1's Algorithm 1 updates m = 1..M, which leaves out the target, and exchanges x_m with x_{m+1}
after computing the ratio of x_m and x_{m-1}; as printed the target chain never moves. Here every
rung is updated, and the pair that was compared is the pair that is exchanged.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from temperance._types import Key, Keys, Point, Position
from temperance.errors import MoveError, unknown_name
from temperance.ladder import AbstractLadder, Rung, map_rungs
from temperance.move import AbstractMove, Info, Params
from temperance.samplers.swaps import SCHEMES, Swaps, swap_rounds

UPWARD, DOWNWARD = 1, 2


class ParallelState(NamedTuple):
    """The points by rung, whose replica each is, and how far its round trip has come."""

    points: Point
    replica: Int[Array, " rungs"]
    heading: Int[Array, " rungs"]
    round_trips: Int[Array, ""]
    parity: Int[Array, ""]


class ParallelInfo(NamedTuple):
    """What a sweep did at each rung and between rungs."""

    acceptance: Float[Array, "rungs parts"]
    diverging: Float[Array, " rungs"]
    num_evaluations: Float[Array, " rungs"]
    swap_acceptance: Float[Array, " pairs"]
    swapped: Float[Array, " pairs"]


class ParallelTempering(eqx.Module):
    """A sampler for the product of the ladder's densities; its target rung's marginal is exact.

    `params` are the move's, with a leading rung axis. Any exact move will do, reversible or not.
    An inexact move biases every rung it is used on and, through the swaps, the target.
    """

    ladder: AbstractLadder
    move: AbstractMove
    params: Params
    scheme: str = eqx.field(static=True, default="deo")
    swaps_per_sweep: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if self.scheme not in SCHEMES:
            raise unknown_name("swap scheme", self.scheme, SCHEMES)
        if not self.move.exact:
            raise MoveError("parallel tempering needs an exact move: swaps spread a rung's bias")

    @property
    def num_rungs(self) -> int:
        return self.ladder.num_rungs

    def init(self, position: Position) -> ParallelState:
        """Every replica at `position`."""
        k = self.num_rungs
        return self.init_replicas(
            jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (k, *jnp.shape(leaf))), position)
        )

    def init_replicas(self, positions: Position) -> ParallelState:
        """Replica k at `positions[k]`."""
        gradient = self.move.uses_gradient
        points = jax.vmap(lambda x: self.ladder.evaluate(x, gradient=gradient))(positions)
        rungs = jnp.arange(self.num_rungs)
        zero = jnp.zeros((), int)
        return ParallelState(points, rungs, jnp.zeros_like(rungs), zero, zero)

    def step(self, key: Key, state: ParallelState) -> tuple[ParallelState, ParallelInfo]:
        """One sweep."""
        keys = jax.random.split(key, self.num_rungs + 1)
        points, infos = self._explore(keys[:-1], state.points)
        swaps = swap_rounds(
            self.scheme,
            keys[-1],
            jax.vmap(self.ladder.increments)(points.components),
            state.parity,
            self.swaps_per_sweep,
        )
        return self._communicate(state, points, swaps), ParallelInfo(
            infos.acceptance,
            infos.diverging.astype(infos.acceptance.dtype),
            infos.num_evaluations.astype(infos.acceptance.dtype),
            swaps.acceptance,
            swaps.swapped.astype(infos.acceptance.dtype),
        )

    def _explore(self, keys: Keys, points: Point) -> tuple[Point, Info]:
        draw = self.ladder.draw_hottest()
        first = 0 if draw is None else 1
        moved = map_rungs(
            self.ladder,
            lambda rung, key, point, params: self._move(rung, key, point, params),
            first,
            keys[first:],
            *jax.tree.map(lambda leaf: leaf[first:], (points, self.params)),
        )
        if draw is None:
            return moved
        fresh = self.ladder.evaluate(draw(keys[0]), gradient=self.move.uses_gradient)
        info = Info(
            jnp.ones_like(moved[1].acceptance[0]),
            jnp.asarray(True),
            jnp.asarray(False),
            jnp.asarray(1),
        )
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), (fresh, info), moved)

    def _move(self, rung: Rung, key: Key, point: Point, params: Params) -> tuple[Point, Info]:
        return self.move.step(key, point, rung, params)

    def _communicate(self, state: ParallelState, points: Point, swaps: Swaps) -> ParallelState:
        points, replica, heading = jax.tree.map(
            lambda leaf: leaf[swaps.order], (points, state.replica, state.heading)
        )
        # A round trip is hot, target, hot again; each replica carries how far it has come.
        done = heading[0] == DOWNWARD
        heading = heading.at[0].set(UPWARD)
        heading = heading.at[-1].set(jnp.where(heading[-1] == UPWARD, DOWNWARD, heading[-1]))
        return ParallelState(
            points,
            replica,
            heading,
            state.round_trips + done.astype(int),
            state.parity + self.swaps_per_sweep,
        )

    def positions(self, state: ParallelState) -> Position:
        """Where the replicas are, by rung."""
        return state.points.position

    def gradients(self, state: ParallelState) -> Float[Array, "rungs d"] | None:
        """Each rung's own gradient at its replica, where the move keeps gradients."""
        if state.points.gradients is None:
            return None
        return jax.vmap(lambda w, p: Rung(self.ladder, w).gradient(p))(
            self.ladder.weight_table(), state.points
        )

    def trail(self, state: ParallelState) -> dict[str, Array]:
        """What every sweep leaves behind: each rung's components, for evidence."""
        return {"components": state.points.components}

    def snapshot(self, state: ParallelState) -> dict[str, Any]:
        """What a draw keeps."""
        target = jax.tree.map(lambda leaf: leaf[-1], state.points)
        return {
            "position": target.position,
            "lp": self.ladder.at(self.num_rungs - 1).log_density(target),
            "replica": state.replica,
            "round_trips": state.round_trips,
        }
