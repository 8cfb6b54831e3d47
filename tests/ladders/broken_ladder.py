"""Broken twins of ladders, each named after its slip; the tests reject them all."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Point, Position
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import Rungs


class WithThePrintedSign(GeometricLadder):
    """Paper 1, equation (1): a minus before the power of the likelihood, in the density alone."""

    def log_density(self, rung: Rungs, position: Position) -> Array:
        hot, cold = self.evaluate(position, gradient=False).components
        return hot - self.betas[rung] * cold


class WithIncrementsOfTheWrongStep(GeometricLadder):
    """I_k read off one rung too high."""

    def log_increment(self, rung: Rungs, position: Position) -> Array:
        return super().log_increment(min(int(rung) + 1, self.num_rungs - 2), position)


class WithZeroTimesInfinity(GeometricLadder):
    """Weights times components, without a thought for 0 * (-inf)."""

    def log_density(self, rung: Rungs, position: Position) -> Array:
        return jnp.dot(self.weights(rung), self.evaluate(position, gradient=False).components)


class WithGradientsOfTheOtherComponent(GeometricLadder):
    """Gradients stacked in the wrong order."""

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        point = super().evaluate(position, gradient=gradient)
        return point if point.gradients is None else point._replace(gradients=point.gradients[::-1])


class WithIncrementsReversed(GeometricLadder):
    """The swap ratio upside down."""

    def increments(self, components: Float[Array, " components"]) -> Array:
        return -super().increments(components)


def terms_that_look_ahead(x: Array, data: Array) -> Array:
    """Rows centred by the mean of all rows, those to come included."""
    return -0.5 * (data - jnp.mean(data) - x[0]) ** 2
