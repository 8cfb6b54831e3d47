"""HMC in position order with one slip each; the tests reject them all."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung
from temperance.moves.accept import acceptance_of
from temperance.moves.hmc import Hmc
from temperance.moves.move import Info, Params, colour, whiten
from temperance.programs.random_numbers import normals_and_uniforms


class LoosePositionHmc(Hmc):
    """Each step as it is written, half a drift, a kick and half a drift, exposed to slips."""

    uses_gradient: bool = eqx.field(static=True, default=False)

    def first_drift(self) -> float:
        """Of the first step."""
        return 0.5

    def last_drift(self) -> float:
        """Of the last step."""
        return 0.5

    def kick_from(self, begin: Array, middle: Array) -> Array:
        """Where a step takes its gradient."""
        return middle

    def kinetic(self, last: Array, first: Array) -> Array:
        return 0.5 * jnp.sum(first**2) - 0.5 * jnp.sum(last**2)

    def path(
        self, flat: Array, momentum: Array, size: Array, slope: Any, params: Params
    ) -> tuple[Array, Array]:
        """Where a trajectory ends, and its momentum there."""
        for step in range(self.num_steps):
            before = self.first_drift() if step == 0 else 0.5
            after = self.last_drift() if step == self.num_steps - 1 else 0.5
            middle = flat + before * size * colour(params.factor, momentum)
            kick = whiten(params.factor, slope(self.kick_from(flat, middle)))
            momentum = momentum + size * kick
            flat = middle + after * size * colour(params.factor, momentum)
        return flat, momentum

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, unravel = ravel_pytree(point.position)
        first, uniforms = normals_and_uniforms(key, flat.size, 2, flat.dtype)
        size = params.step_size[0]
        flat, last = self.path(flat, first, size, lambda x: rung.slope(unravel(x)), params)
        end = rung.evaluate(unravel(flat), gradient=False)
        acceptance, log_ratio = acceptance_of(
            rung.log_density(end) - rung.log_density(point) + self.kinetic(last, first)
        )
        accepted = jnp.log(uniforms[0]) < log_ratio
        kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), end, point)
        return kept, Info(acceptance[None], accepted, jnp.asarray(False), jnp.asarray(1))


class WithoutTheHalfDriftTakenBack(LoosePositionHmc):
    """Drifts run together into whole ones, and the last is left whole."""

    def last_drift(self) -> float:
        return 1.0


class WithAWholeFirstDrift(LoosePositionHmc):
    """Drifts run together into whole ones, the first included."""

    def first_drift(self) -> float:
        return 1.0


class WithGradientsOfTheStart(LoosePositionHmc):
    """Kicks by the gradient of where a step begins, as the velocity order does."""

    def kick_from(self, begin: Array, middle: Array) -> Array:
        return begin


class WithoutMomentumInTheRatio(LoosePositionHmc):
    """Accepts on the density alone."""

    def kinetic(self, last: Array, first: Array) -> Array:
        return jnp.zeros(())
