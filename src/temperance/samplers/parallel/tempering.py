"""Parallel tempering: one replica a rung, moved there and exchanged with its neighbours.

The joint law of the replicas is prod_k pi_k(x_k). One sweep is

    explore       x_k <- T_k(x_k) for every rung, the target's included
    communicate   exchange neighbours by a swap scheme, once or several times. On powers (swaps.py)
                  this evaluates nothing; on nested subsamples (`lifted_swaps` there) it evaluates
                  the rows by which the two rungs differ
    refresh       on nested subsamples, if asked: exchange rows between them (refresh.py)

and each of the three leaves that law invariant, so the target's marginal is exact. Where the
hottest rung is a normalised density with a sampler, its replica is drawn afresh instead of moved.

Paper 1's Algorithm 1 updates m = 1..M, which leaves out the target, and exchanges x_m with x_{m+1}
after computing the ratio of x_m and x_{m-1}; as printed the target chain never moves. Here every
rung is updated, and the pair that was compared is the pair that is exchanged.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from temperance._types import Key, Keys, Point, Position
from temperance.errors import ArgumentError, MoveError, unknown_name
from temperance.ladders.ladder import AbstractLadder, AbstractUniformLadder, Rung, map_rungs
from temperance.ladders.prefix import PrefixLadder
from temperance.moves.move import AbstractMove, Info, Params, refuse_few_rows, step_at
from temperance.programs.random_streams import Sweep, stream
from temperance.samplers.parallel.refresh import exchange_rows
from temperance.samplers.parallel.swaps import (
    SCHEMES,
    SwapOutcome,
    lifted_swaps,
    swap,
    swap_rounds,
)

UPWARD, DOWNWARD = 1, 2


class ParallelState(NamedTuple):
    """The points by rung, whose replica each is, and how far its round trip has come.

    `order` is the order of the rows, where subsamples are refreshed.
    """

    points: Point
    replica: Int[Array, " rungs"]
    heading: Int[Array, " rungs"]
    round_trips: Int[Array, ""]
    parity: Int[Array, ""]
    order: Int[Array, " n"] | None = None


class ParallelInfo(NamedTuple):
    """What a sweep did at each rung and between rungs.

    `swap_tried` says how often each pair was compared, where that is not always; then an
    acceptance that is not known counts as zero. `refreshed` is the share of row exchanges done.
    """

    acceptance: Float[Array, "rungs parts"]
    diverging: Float[Array, " rungs"]
    num_evaluations: Float[Array, " rungs"]
    num_values: Float[Array, " rungs"]
    impossible: Float[Array, " rungs"]
    swap_acceptance: Float[Array, " pairs"]
    swapped: Float[Array, " pairs"]
    swap_tried: Float[Array, " pairs"] | None
    refreshed: Float[Array, ""] | None
    slope: Float[Array, "rungs d"] | None
    batch_rows: Float[Array, " rungs"] | None = None


class ParallelTempering(eqx.Module):
    """A sampler for the product of the ladder's densities; its target rung's marginal is exact.

    `params` are the move's, with a leading rung axis. Any exact move will do, reversible or not.
    An inexact move biases every rung it is used on and, through the swaps, the target.
    `refresh` is the number of exchanges of rows between nested subsamples in each sweep. `complete`
    evaluates every replica at every rung once a draw, for log evidence from nested subsamples,
    whose replicas otherwise know only their own rows.
    """

    ladder: AbstractLadder
    move: AbstractMove
    params: Params
    scheme: str = eqx.field(static=True, default="deo")
    swaps_per_sweep: int = eqx.field(static=True, default=1)
    refresh: int = eqx.field(static=True, default=0)
    complete: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if self.scheme not in SCHEMES:
            raise unknown_name("swap scheme", self.scheme, SCHEMES)
        refuse_few_rows(self.move)
        self.move.check_ladder(self.ladder)
        if self.move.keeps_memory:
            raise MoveError(
                f"{type(self.move).__name__} keeps more than its position between steps, which a "
                "swap between rungs would have to weigh too: run it alone, with method='plain'"
            )
        if not self.move.exact:
            raise MoveError("parallel tempering needs an exact move: swaps spread a rung's bias")
        uniform = isinstance(self.ladder, AbstractUniformLadder)
        if not uniform and type(self).swap_once is not ParallelTempering.swap_once:
            raise ArgumentError(
                f"{type(self).__name__}: swap_once is a rule for ladders of powers; on nested "
                "subsamples a swap evaluates rows, and swap_replicas has to be overridden"
            )
        if self.refresh and not isinstance(self.ladder, PrefixLadder):
            raise ArgumentError("refresh: only nested subsamples, a PrefixLadder, can be refreshed")
        if self.refresh and isinstance(self.ladder, PrefixLadder) and self.ladder.ordered:
            raise ArgumentError(
                "refresh: the likelihood depends on the order of the rows, so that they cannot "
                "change places"
            )
        if self.refresh and self.complete:
            raise ArgumentError(
                "refresh and complete: log evidence needs the subsamples to stay as they are, "
                "because a product of ratios between changing subsamples does not telescope"
            )

    @property
    def num_rungs(self) -> int:
        return self.ladder.num_rungs

    @property
    def _gradient(self) -> bool:
        return self.move.uses_gradient and self.ladder.keeps_gradients

    def init(self, position: Position) -> ParallelState:
        """Every replica at `position`."""
        k = self.num_rungs
        return self.init_replicas(
            jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (k, *jnp.shape(leaf))), position)
        )

    def init_replicas(self, positions: Position) -> ParallelState:
        """Replica k at `positions[k]`."""
        over = jax.vmap if isinstance(self.ladder, AbstractUniformLadder) else _one_by_one
        points = over(lambda x: self._seen(self.ladder.evaluate, x))(positions)
        rungs = jnp.arange(self.num_rungs)
        zero = jnp.zeros((), int)
        order = None
        if self.refresh:
            assert isinstance(self.ladder, PrefixLadder)
            order = jnp.arange(self.ladder.num_rows, dtype=jnp.int32)
        return ParallelState(points, rungs, jnp.zeros_like(rungs), zero, zero, order)

    def step(self, key: Key, state: ParallelState) -> tuple[ParallelState, ParallelInfo]:
        """One sweep."""
        keys = jax.random.split(key, self.num_rungs + 1)
        ladder = self.ladder
        if state.order is not None:
            assert isinstance(ladder, PrefixLadder)
            ladder = ladder.reordered(state.order)
        refreshed = None
        if self.move.gathers:
            # Such a move stores values beside the target's point, so it has to come after the swap.
            points, swaps = self.swap_replicas(ladder, keys[-1], state.points, state.parity)
            points, infos = self._explore(ladder, keys[:-1], points)
        else:
            points, infos = self._explore(ladder, keys[:-1], state.points)
            points, swaps = self.swap_replicas(ladder, keys[-1], points, state.parity)
        state = self._communicate(state, points, swaps)
        if state.order is not None:
            assert isinstance(ladder, PrefixLadder)
            key_refresh = stream(key, Sweep.ROWS)
            points, places, refreshed = exchange_rows(
                key_refresh, ladder, state.points, self.refresh
            )
            state = state._replace(points=points, order=state.order[places])
        dtype = infos.acceptance.dtype
        return state, ParallelInfo(
            infos.acceptance,
            infos.diverging.astype(dtype),
            infos.num_evaluations.astype(dtype),
            jnp.asarray(infos.num_values, dtype),
            jnp.asarray(infos.impossible, dtype),
            swaps.acceptance,
            swaps.swapped.astype(dtype),
            None if swaps.tried is None else swaps.tried.astype(dtype),
            refreshed,
            infos.slope,
            None if infos.batch is None else infos.batch.num_rows,
        )

    def _explore(self, ladder: AbstractLadder, keys: Keys, points: Point) -> tuple[Point, Info]:
        draw = ladder.draw_hottest()
        first = 0 if draw is None else 1
        moved = map_rungs(
            ladder,
            partial(step_at, self.move),
            first,
            keys[first:],
            *jax.tree.map(lambda leaf: leaf[first:], (points, self.params)),
            in_turn=self.move.branches,
        )
        if draw is None:
            return moved
        fresh = self._seen(ladder.at(0).evaluate, draw(keys[0]))
        info = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), moved[1])._replace(
            acceptance=jnp.ones_like(moved[1].acceptance[0]),
            accepted=jnp.asarray(True),
            # What the move keeps beside a point is prepared from its position once more.
            num_evaluations=jnp.asarray(1 if fresh.memory is None else 2),
        )
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), (fresh, info), moved)

    def _seen(self, evaluate: Any, position: Position) -> Point:
        """A new point, with what the move keeps beside it."""
        point = evaluate(position, gradient=self._gradient)
        return self.move.remember(point, self.ladder.at(0))

    def swap_replicas(
        self, ladder: AbstractLadder, key: Key, points: Point, parity: Int[Array, ""]
    ) -> tuple[Point, SwapOutcome]:
        """The points at their new rungs, and where each of them comes from."""
        if not isinstance(ladder, AbstractUniformLadder):
            return lifted_swaps(self.scheme, key, ladder, points, parity, self.swaps_per_sweep)
        increments = jax.vmap(ladder.increments)(points.components)
        swaps = swap_rounds(self.swap_once, key, increments, parity, self.swaps_per_sweep)
        return jax.tree.map(lambda leaf: leaf[swaps.order], points), swaps

    def swap_once(
        self, key: Key, increments: Float[Array, "rungs pairs"], parity: Int[Array, ""]
    ) -> SwapOutcome:
        """One round of swaps on a ladder of powers, by the scheme.

        `increments[i, k]` is log pi_{k+1} - log pi_k at the point of rung i, and `parity` the
        number of rounds before. A subclass overrides it for a rule of its own, which may use
        `swap_pairs` (swaps.py).
        """
        return swap(self.scheme, key, increments, parity)

    def _communicate(
        self, state: ParallelState, points: Point, swaps: SwapOutcome
    ) -> ParallelState:
        replica, heading = state.replica[swaps.order], state.heading[swaps.order]
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
            state.order,
        )

    def positions(self, state: ParallelState) -> Position:
        """Where the replicas are, by rung."""
        return state.points.position

    def gradients(self, state: ParallelState) -> Float[Array, "rungs d"] | None:
        """Each rung's own gradient at its replica, where points keep gradients."""
        if state.points.gradients is None:
            return None
        return jax.vmap(lambda w, p: Rung(self.ladder, w).gradient(p))(
            self.ladder.weight_table(), state.points
        )

    def trail(self, state: ParallelState) -> dict[str, Array]:
        """What every sweep leaves behind: each rung's components, for evidence."""
        if not isinstance(self.ladder, AbstractUniformLadder):
            return {}
        return {"components": state.points.components}

    def snapshot(self, state: ParallelState) -> dict[str, Any]:
        """What a draw keeps."""
        target = jax.tree.map(lambda leaf: leaf[-1], state.points)
        record = {
            "position": target.position,
            "lp": self.ladder.at(self.num_rungs - 1).log_density(target),
            "replica": state.replica,
            "round_trips": state.round_trips,
        } | self.move.keepsakes(target)
        if self.complete and not isinstance(self.ladder, AbstractUniformLadder):
            whole = _one_by_one(lambda x: self.ladder.evaluate(x, gradient=False))
            # One record a draw, with the axis on which others have several sweeps.
            record["components"] = whole(state.points.position).components[None]
        return record


def _one_by_one(function: Any) -> Any:
    """`vmap`, with one evaluation in memory at a time."""
    return lambda batch: jax.lax.map(function, batch)
