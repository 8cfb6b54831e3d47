"""Broken twins of MINTEE's steps, each named after its slip."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.energies import truncated
from temperance.samplers.equi_energy.minibatch_rung import MinibatchRung


class WithOneEnergyForBothRungs(MinibatchRung):
    """The energy of the colder rung's batch, used for the hotter rung's density too."""

    def jump_log_ratio(self, here: Array, there: Array) -> Array:
        def increment(components: Array) -> Array:
            k, ladder = self.rung, self.ladder
            colder = truncated(components[0], ladder.levels[k], ladder.betas[k])
            hotter = truncated(components[0], ladder.levels[k - 1], ladder.betas[k - 1])
            return colder - hotter

        return increment(there) - increment(here)


class WithoutARatio(MinibatchRung):
    """Every jump accepted."""

    def jump_log_ratio(self, here: Array, there: Array) -> Array:
        return jnp.zeros_like(super().jump_log_ratio(here, there))


class WithEveryNewBatchTaken(MinibatchRung):
    """A new batch for the same position, whatever it says of it."""

    def _refreshed(self, key: Key, point: Point) -> tuple[Point, Array]:
        other = self._at(point.position, jax.random.bits(key, (2,), jnp.uint32))
        return other, jnp.ones(())


class WithTheRingOfItsOwnBatch(MinibatchRung):
    """As printed: the ring by the energy of the colder rung's own batch."""

    def ring_to_jump_into(self, components: Array) -> Array:
        return self.ladder.ring(components[:1])
