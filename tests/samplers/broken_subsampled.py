"""Samplers on nested subsamples with one slip each; the tests reject them all."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.ladder import AbstractLadder, Rungs
from temperance.ladders.prefix import PrefixLadder
from temperance.rows.nested_subsamples import permutation
from temperance.samplers.parallel.swaps import SwapOutcome
from temperance.samplers.parallel.tempering import ParallelState, ParallelTempering
from temperance.samplers.transitions import TemperedTransitions, TransitionState


class LadderThatForgetsToLift(PrefixLadder):
    """Compares a hot point with a colder rung by rows that it has not evaluated."""

    def lift(self, rung: Rungs, point: Point) -> Point:
        return point


class LadderThatTakesRowsForIndependent(PrefixLadder):
    """Evaluates only the new rows, though their terms look back."""

    def block_sums(self, position: Any, rows: Any, first: int, last: int) -> list[Array]:
        low, high = self.bounds[first], self.bounds[last] if last > first else 0
        if last <= first + 1:
            return [jnp.sum(self.terms(position, rows[low:high]))] if last > first else []
        return super().block_sums(position, rows, first, last)


class ParallelWithANaiveRedraw(ParallelTempering):
    """Redraws the subsamples uniformly and leaves the replicas where they are."""

    def step(self, key: Key, state: ParallelState) -> tuple[ParallelState, Any]:
        state, info = super().step(key, state)
        assert isinstance(self.ladder, PrefixLadder)
        order = permutation(jax.random.fold_in(key, 2), self.ladder.num_rows)
        return placed(self.ladder, state, order), info


class ParallelWithStaleBlocks(ParallelTempering):
    """Exchanges rows and keeps the sums over the blocks as they were."""

    def step(self, key: Key, state: ParallelState) -> tuple[ParallelState, Any]:
        after, info = super().step(key, state)
        assert isinstance(self.ladder, PrefixLadder)
        assert state.order is not None
        return after._replace(points=placed(self.ladder, after, state.order).points), info


class ParallelThatSwapsUnlifted(ParallelTempering):
    """Lets a hot point into a colder rung without the rows it lacks there."""

    def swap_replicas(
        self, ladder: AbstractLadder, key: Key, points: Point, parity: Array
    ) -> tuple[Point, SwapOutcome]:
        moved, swaps = super().swap_replicas(ladder, key, points, parity)
        return moved._replace(components=points.components[swaps.order]), swaps


class TransitionsOnOtherRowsDownwards(TemperedTransitions):
    """Draws new subsamples at the top, and comes down on those."""

    def _hottest(self, ladder: AbstractLadder, key: Key, point: Point) -> tuple[Point, Any]:
        point, info = super()._hottest(ladder, key, point)
        assert isinstance(ladder, PrefixLadder)
        other = eqx.tree_at(lambda one: one.prefixes, ladder, None)
        other = other.reordered(jnp.arange(ladder.num_rows)[::-1])
        return other.at(0).evaluate(point.position, gradient=False), info


class TransitionsDownThePrintedWay(TemperedTransitions):
    """Paper 1's Algorithm 2 on subsamples: descends with the kernel of the rung it arrives at."""

    def step(self, key: Key, state: TransitionState) -> tuple[TransitionState, Any]:
        top = self.num_rungs - 1
        assert isinstance(self.ladder, PrefixLadder)
        ladder = self.ladder.reshuffled(jax.random.fold_in(key, 1))
        keys = iter(jax.random.split(key, 2 * top + 2))
        start = ladder.evaluate(state.point.position, gradient=False)
        start, _ = self._move(ladder, next(keys), start, top)
        point, log_rho = start, jnp.zeros(())
        for rung in range(top - 1, -1, -1):
            log_rho = log_rho - ladder.increments(point.components)[rung]
            point, _ = self._move(ladder, next(keys), point, rung)
        for rung in range(top):
            point = ladder.lift(rung, point)
            point, _ = self._move(ladder, next(keys), point, rung + 1)
            log_rho = log_rho + ladder.increments(point.components)[rung]
        accepted = jnp.log(jax.random.uniform(next(keys))) < log_rho
        kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), point, start)
        return TransitionState(kept), None


def placed(ladder: PrefixLadder, state: ParallelState, order: Array) -> ParallelState:
    """The same replicas on rows in another order, everything they know being of that order."""
    ladder = ladder.reordered(order)
    points = [
        ladder.at(k).evaluate(jax.tree.map(lambda leaf, k=k: leaf[k], state.points.position),
                              gradient=False)
        for k in range(ladder.num_rungs)
    ]  # fmt: skip
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *points)
    return state._replace(points=stacked, order=order)
