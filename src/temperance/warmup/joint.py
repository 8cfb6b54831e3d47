"""Warm-up of joint continuous tempering, and its draws.

    pilot   short rounds of parallel tempering, as for every ladder: they tune moves at every
            temperature and guess log Z
    warm    rounds of the joint chain itself. Between them its factor, its step size and log zeta
            are renewed, the last from the round's own weights: + log sum w_1 - log sum w_0
    draw    nothing adapts

The control u is one more coordinate of the position, with a scale of its own in the factor.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, PyTree

from temperance.engine.loop import start_chains
from temperance.engine.run import Place, Stage
from temperance.ladders.joint import JointLadder
from temperance.moves.move import Params
from temperance.samplers.continuous import JointTempering
from temperance.samplers.inverse_temperature import log_base_weight, log_target_weight
from temperance.warmup.adaptation import Adaptation, begin, rounds
from temperance.warmup.rounds import Left, start_anew, tune_params
from temperance.warmup.rung_weights import WeighedRungs

# The standard deviation of u where beta is uniform, pi / sqrt(3).
CONTROL_SCALE = 1.8
# How far log zeta may go after one round: a chain at one end says little of the other.
MOST_STEP = 10.0


class Guessing(NamedTuple):
    """Warm-up of the joint chain, log zeta, and the sums of its weights at both ends."""

    inner: Adaptation
    log_zeta: Float[Array, ""]
    log_target: Float[Array, ""]
    log_base: Float[Array, ""]

    def params(self, learning: Bool[Array, ""] | bool = False) -> Params:
        return self.inner.params(learning)

    def after(self, sampler: Any, state: PyTree, info: Any) -> "Guessing":
        """What is known after one more step of every chain."""
        tilts = state.point.components[:, 1]
        return self._replace(
            inner=self.inner.after(sampler, state, info),
            log_target=jnp.logaddexp(self.log_target, logsumexp(log_target_weight(tilts))),
            log_base=jnp.logaddexp(self.log_base, logsumexp(log_base_weight(tilts))),
        )

    def guess(self) -> float:
        """Log Z by the weights of the round."""
        step = float(self.log_target) - float(self.log_base)
        return float(self.log_zeta) + float(np.clip(np.nan_to_num(step), -MOST_STEP, MOST_STEP))


class JointRounds(Stage):
    """What rounds of the joint chain have in common, whether they learn or draw."""

    def sampler(self, shared: WeighedRungs, place: Place, carry: PyTree) -> JointTempering:
        return joint(shared, carry[1].params(), carry[1].log_zeta)

    def template(self, shared: WeighedRungs, place: Place) -> PyTree:
        call = shared.call

        def carried() -> PyTree:
            positions = jnp.zeros((call.num_chains, call.dimension))
            dense = call.move.metric == "dense"
            factor = jnp.eye(call.dimension) if dense else jnp.ones((call.dimension,))
            params = Params(call.move.initial_step_sizes(call.dimension), factor)
            return a_round(shared, widened(shared, params), 0.0, positions)

        return jax.eval_shape(carried)


class JointWarmUp(JointRounds):
    """Rounds of the joint chain, started at the middle rung of a pilot's ladder."""

    kinds = ("warm",)

    def applies(self, shared: WeighedRungs) -> bool:
        return shared.call.num_warmup > 0

    def enter(self, shared: WeighedRungs, left: Left | None) -> tuple[Place, PyTree]:
        assert left is not None
        assert left.seen is not None
        pilot, (state, learning) = left.seen
        log_zeta = shared.log_zeta
        log_zeta = float(learning.log_z()[-1]) if log_zeta is None else log_zeta
        middle = len(pilot.rungs.betas) // 2
        params = jax.tree.map(lambda leaf: leaf[middle], learning.params())
        positions = state.points.position[:, middle]
        place = Place("warm", 0, rounds(shared.call.num_warmup)[0], pilot.rungs)
        return place, a_round(shared, widened(shared, params), log_zeta, positions)

    def after(self, shared: WeighedRungs, place: Place, carry: PyTree) -> tuple[Place | None, Any]:
        state, learning = carry
        lengths = rounds(shared.call.num_warmup)
        if place.round + 1 >= len(lengths):
            return None, Left(place.rungs, learning.params(), state, (place, carry))
        following = Place("warm", place.round + 1, lengths[place.round + 1], place.rungs)
        params, log_zeta = tune_params(shared, learning.inner), guessed(shared, learning)
        return following, a_round(shared, params, log_zeta, state.point.position)


class JointDraw(JointRounds):
    """Draws of the joint chain."""

    kinds = ("draw",)
    draws = True

    def enter(self, shared: WeighedRungs, left: Left | None) -> tuple[Place, PyTree]:
        if left is None:
            place = Place("draw", 0, shared.call.num_draws, shared.initial())
            state, learning = start_anew(shared, place, None)
            first = jax.tree.map(lambda leaf: leaf[-1], learning.params())
            positions = state.points.position[:, -1]
            log_zeta = shared.log_zeta or 0.0
            return place, a_round(shared, widened(shared, first), log_zeta, positions)
        assert left.params is not None
        assert left.seen is not None
        place = Place("draw", 0, shared.call.num_draws, left.rungs)
        log_zeta = guessed(shared, left.seen[1][1])
        return place, a_round(shared, left.params, log_zeta, left.state.point.position)


def guessed(shared: WeighedRungs, learning: Guessing) -> float:
    """Log zeta as it is given, or as the round's weights say."""
    return learning.guess() if shared.log_zeta is None else shared.log_zeta


def joint(shared: WeighedRungs, params: Params, log_zeta: Array) -> JointTempering:
    """The joint chain's sampler."""
    d = shared.call.densities
    assert d.hot is not None
    ladder = JointLadder(d.hot, d.cold, log_zeta, d.bridge, draw_hot=d.draw)
    return JointTempering(ladder, shared.call.move, params)


def widened(shared: WeighedRungs, params: Params) -> Params:
    """A rung's parameters, with a scale for the control, and a rung axis of one."""
    factor = jnp.asarray(params.factor)
    unit = shared.call.move.metric == "unit"
    scale = jnp.ones(()) if unit else jnp.asarray(CONTROL_SCALE)
    if factor.ndim == 1:
        wide = jnp.append(factor, scale)
    else:
        wide = jnp.pad(factor, ((0, 1), (0, 1))).at[-1, -1].set(scale)
    return Params(params.step_size[None], wide[None])


def a_round(shared: WeighedRungs, params: Params, log_zeta: float, positions: PyTree) -> PyTree:
    """A round from these positions, or from where the last one left them."""
    guess = jnp.asarray(log_zeta, params.step_size.dtype)
    sampler = joint(shared, params, guess)
    state = restart(sampler, positions)
    nothing = jnp.full((), -jnp.inf, guess.dtype)
    return state, Guessing(begin(sampler, state), guess, nothing, nothing)


def restart(sampler: JointTempering, positions: PyTree) -> PyTree:
    """Chains at positions, half way up, or at pairs of position and control that they were at."""
    if isinstance(positions, jax.Array):
        return start_chains(sampler, positions, False)
    state = start_chains(sampler, positions.x, False)
    points = jax.vmap(lambda p: sampler.ladder.evaluate(p, gradient=sampler.move.uses_gradient))
    return state._replace(point=points(positions))
