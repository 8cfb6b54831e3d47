"""Broken twins of energy ladders, each named after its slip."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Point
from temperance.ladders.energies import EnergyLadder, EnergyRung
from temperance.ladders.ladder import Rungs


class WithTheTargetTruncated(EnergyLadder):
    """The target flat below some energy that somebody has seen, as paper 2 sets its H_0."""

    def at(self, rung: Rungs) -> EnergyRung:
        level = jnp.where(jnp.asarray(rung) == self.num_rungs - 1, 1.0, self.levels[rung])
        return EnergyRung(self, self.weights(rung), level)


class WithTheIncrementOfWholeEnergies(EnergyLadder):
    """Increments linear in the energy, as if nothing were truncated."""

    def increments(self, components: Float[Array, " components"]) -> Array:
        return jnp.diff(self.betas) * components[0]


class WithASlopeBelowTheLevel(EnergyLadder):
    """The gradient of the energy where the density is flat."""

    def at(self, rung: Rungs) -> EnergyRung:
        return _Sloping(self, self.weights(rung), self.levels[rung])


class _Sloping(EnergyRung):
    def gradient(self, point: Point) -> Array:
        assert point.gradients is not None
        return self.weights[0] * point.gradients[0]
