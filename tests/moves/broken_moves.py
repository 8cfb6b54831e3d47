"""Broken twins of moves, each named after its slip; the tests reject them all."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung
from temperance.moves.accept import acceptance_of
from temperance.moves.auto_step import AutoStep, Search, Verdict
from temperance.moves.blackjax import BlackjaxMove
from temperance.moves.hmc import Hmc
from temperance.moves.mala import Mala
from temperance.moves.metropolis import Metropolis
from temperance.moves.move import Info, Params, colour, whiten
from temperance.moves.trajectory import Trajectory
from temperance.programs.random_numbers import normals_and_uniforms


class DriftingMetropolis(Metropolis):
    """An asymmetric proposal, accepted as if it were symmetric."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        step, uniform = normals_and_uniforms(key, point.position.size, 1, point.position.dtype)
        proposed = point.position + params.step_size[0] * colour(params.factor, 0.3 + step)
        return _choose(
            uniform[0], rung, point, rung.evaluate(proposed, gradient=False), jnp.zeros(())
        )


class MalaWithoutReverse(Mala):
    """The proposal's own density is left out of the ratio."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        size = params.step_size[0]
        forth, uniform = normals_and_uniforms(key, point.position.size, 1, point.position.dtype)
        slope = whiten(params.factor, rung.gradient(point))
        proposed = point.position + size * colour(params.factor, forth + 0.5 * size * slope)
        return _choose(
            uniform[0], rung, point, rung.evaluate(proposed, gradient=True), jnp.zeros(())
        )


class _LooseHmc(Hmc):
    """HMC with its parts exposed to slips."""

    def size(self, params: Params, flat: Array) -> Array:
        return params.step_size[0]

    def last_kick(self) -> float:
        return 0.5

    def kinetic(self, last: Array, first: Array) -> Array:
        return 0.5 * jnp.sum(first**2) - 0.5 * jnp.sum(last**2)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, unravel = ravel_pytree(point.position)
        first, uniform = normals_and_uniforms(key, flat.size, 2, flat.dtype)
        size = self.size(params, flat)

        def leapfrog(carry: Any, _: None) -> tuple[Any, None]:
            flat, momentum, point = carry
            momentum = momentum + 0.5 * size * whiten(params.factor, rung.gradient(point))
            flat = flat + size * colour(params.factor, momentum)
            point = rung.evaluate(unravel(flat), gradient=True)
            kick = self.last_kick() * size
            momentum = momentum + kick * whiten(params.factor, rung.gradient(point))
            return (flat, momentum, point), None

        (_, last, proposal), _ = jax.lax.scan(leapfrog, (flat, first, point), length=self.num_steps)
        return _choose(uniform[0], rung, point, proposal, self.kinetic(last, first))


class HmcWithoutKineticTerm(_LooseHmc):
    """Accepts on the density alone."""

    def kinetic(self, last: Array, first: Array) -> Array:
        return jnp.zeros(())


class HmcWithKineticSignFlipped(_LooseHmc):
    """Adds the kinetic energy it should subtract."""

    def kinetic(self, last: Array, first: Array) -> Array:
        return 0.5 * jnp.sum(last**2) - 0.5 * jnp.sum(first**2)


class HmcWithoutLastHalfStep(_LooseHmc):
    """The momentum is left half a step behind."""

    def last_kick(self) -> float:
        return 0.0


class HmcWithStepSizeByPosition(_LooseHmc):
    """Steps as long as the place it starts from suggests, which the way back does not repeat."""

    def size(self, params: Params, flat: Array) -> Array:
        return params.step_size[0] * (0.5 + jax.nn.sigmoid(2 * flat[0]))


class AutoStepWithoutCheck(AutoStep):
    """Does not ask whether the end would choose the same step size."""

    def _after_check(self, search: Search, verdict: Verdict) -> Search:
        return search._replace(accepted=jnp.asarray(True), done=jnp.asarray(True))


class AutoStepWithoutRatio(AutoStep):
    """Accepts whatever the energy error, since the step was chosen to make it small."""

    def _after_try(
        self, search: Search, found: Trajectory, verdict: Verdict, uniform: Array
    ) -> Search:
        return super()._after_try(search, found, verdict, jnp.zeros_like(uniform))


class StaleBlackjax(BlackjaxMove):
    """Keeps the kernel's state from the rung before, with that rung's density inside."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        hotter = Rung(rung.ladder, rung.ladder.weights(0))
        stale = self._kernel(hotter, params).init(point.position)
        state, info = self._kernel(rung, params).step(key, stale)
        landed = rung.evaluate(state.position, gradient=False)
        return landed, Info(
            info.acceptance_rate[None], info.is_accepted, info.is_divergent, jnp.asarray(1)
        )


def _choose(
    uniform: Array, rung: Rung, point: Point, proposal: Point, kinetic: Array
) -> tuple[Point, Info]:
    acceptance, log_ratio = acceptance_of(
        rung.log_density(proposal) - rung.log_density(point) + kinetic
    )
    accepted = jnp.log(uniform) < log_ratio
    kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, point)
    return kept, Info(acceptance[None], accepted, jnp.asarray(False), jnp.asarray(1))
