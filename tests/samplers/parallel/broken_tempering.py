"""Broken twins of parallel tempering, each named after its slip; the tests reject them all."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.ladder import AbstractLadder
from temperance.samplers.parallel.swaps import SwapOutcome, swap
from temperance.samplers.parallel.tempering import ParallelState, ParallelTempering


class ParallelWithTheWrongPair(ParallelTempering):
    """Compares rungs k and k+1 and exchanges k and k-1, as paper 1's Algorithm 1 does."""

    def swap_replicas(
        self, ladder: AbstractLadder, key: Key, points: Point, parity: Array
    ) -> tuple[Point, SwapOutcome]:
        _, swaps = super().swap_replicas(ladder, key, points, parity)
        shift = jnp.pad(swaps.swapped.astype(int)[1:], (0, 1))
        rungs = jnp.arange(self.num_rungs)
        order = rungs + jnp.pad(shift, (0, 1)) - jnp.pad(shift, (1, 0))
        return jax.tree.map(lambda leaf: leaf[order], points), swaps._replace(order=order)


class ParallelWithStaleComponents(ParallelTempering):
    """Exchanges positions and leaves their cached components behind."""

    def swap_replicas(
        self, ladder: AbstractLadder, key: Key, points: Point, parity: Array
    ) -> tuple[Point, SwapOutcome]:
        moved, swaps = super().swap_replicas(ladder, key, points, parity)
        return moved._replace(components=points.components), swaps


class ParallelWithStaleRounds(ParallelTempering):
    """A second round of swaps that decides by who sat where before the first."""

    def step(self, key: Key, state: ParallelState) -> tuple[ParallelState, Any]:
        after, info = super().step(key, state)
        increments = jax.vmap(self.ladder.increments)(state.points.components)
        again = swap(self.scheme, jax.random.fold_in(key, 7), increments, state.parity + 1)
        points = jax.tree.map(lambda leaf: leaf[again.order], after.points)
        return self._communicate(after, points, again), info
