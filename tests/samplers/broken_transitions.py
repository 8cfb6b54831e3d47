"""Broken twins of tempered transitions, each named after its slip; the tests reject them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from temperance._types import Key
from temperance.moves.combine import Alternate
from temperance.moves.move import AbstractMove
from temperance.samplers.transitions import TemperedTransitions, TransitionState


class AlternateThatLies(Alternate):
    """A fixed order of two moves that declares itself reversible."""

    reversible: bool = eqx.field(static=True, default=True)

    def reversal(self) -> AbstractMove:
        return self


class PrintedTransitions(TemperedTransitions):
    """Paper 1's Algorithm 2: descends with the kernel of the rung it arrives at."""

    def step(self, key: Key, state: TransitionState) -> tuple[TransitionState, Any]:
        top = self.num_rungs - 1
        keys = iter(jax.random.split(key, 2 * top + 2))
        start, _ = self._move(self.ladder, next(keys), state.point, top)
        point, log_rho = start, jnp.zeros(())
        for rung in range(top - 1, -1, -1):
            log_rho = log_rho - self.ladder.increments(point.components)[rung]
            point, _ = self._move(self.ladder, next(keys), point, rung)
        for rung in range(top):
            point, _ = self._move(self.ladder, next(keys), point, rung + 1)
            log_rho = log_rho + self.ladder.increments(point.components)[rung]
        accepted = jnp.log(jax.random.uniform(next(keys))) < log_rho
        kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), point, start)
        return TransitionState(kept), None
