"""Slips in anneals, which the tests must reject."""

import jax
import jax.numpy as jnp
import numpy as np

from temperance._types import Key, Point, Scalar
from temperance.ladders.ladder import AbstractLadder, Rungs
from temperance.ladders.prefix import PrefixLadder
from temperance.samplers.annealing.importance import AnnealedImportance, AnnealedInfo


class UnliftedLadder(PrefixLadder):
    """The rows that a rung adds are never looked at: its increment is that of no rows."""

    def lift(self, rung: Rungs, point: Point) -> Point:
        return point


def unconditional_ess(increments: np.ndarray) -> float:
    """The share of the effective size as if particles had no weights before the step."""
    return float(np.mean(increments) ** 2 / np.mean(increments**2))


class ShiftedState(AnnealedImportance):
    """The increment of rung k taken before its move, at the state of rung k - 1."""

    def forward(self, key: Key, ladder: AbstractLadder) -> tuple[Point, Scalar, AnnealedInfo]:
        key_start, key_moves = jax.random.split(key)
        draw = ladder.draw_hottest()
        assert draw is not None
        point = ladder.evaluate(draw(key_start), gradient=False)
        log_weight = jnp.zeros_like(point.components[0])
        info = None
        for rung in range(1, ladder.num_rungs):
            params = jax.tree.map(lambda leaf, r=rung: leaf[r], self.params)
            key_moves, key_move = jax.random.split(key_moves)
            point, told = self.move.step(key_move, point, ladder.at(rung), params)
            log_weight = log_weight + ladder.increments(point.components)[rung - 1]
            info = told
        assert info is not None
        one = info.acceptance[None]
        none = jnp.zeros((1,))
        return point, log_weight, AnnealedInfo(one, none, none, none, none, jnp.zeros(()))
