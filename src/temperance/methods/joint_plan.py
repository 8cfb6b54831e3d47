"""What a run of joint continuous tempering does, in order.

    pilot   short rounds of parallel tempering, as for every ladder: they tune moves at every
            temperature and guess log Z
    warm    rounds of the joint chain itself. Between them its factor, its step size and log zeta
            are renewed, the last from the round's own weights: + log sum w_1 - log sum w_0
    draw    nothing adapts

The control u is one more coordinate of the position, with a scale of its own in the factor.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, PyTree

from temperance.ladders.joint import JointLadder
from temperance.samplers.inverse_temperature import log_base_weight, log_target_weight
from temperance.moves.move import Params
from temperance.methods.plan import ends_pilot, start_chains
from temperance.samplers.continuous import JointTempering
from temperance.engine.stage import Stage
from temperance.warmup.adaptation import Adaptation, begin, rounds
from temperance.warmup.rung_weights import Weighing, WeighingPlan

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


@dataclass(frozen=True)
class JointPlan(WeighingPlan):
    """How to make the stages of one call of `joint-ct`."""

    def sampler_of(self, stage: Stage, carry: PyTree) -> Any:
        if stage.kind == "pilot":
            return super().sampler_of(stage, carry)
        return self._joint(carry[1].params(), carry[1].log_zeta)

    def _joint(self, params: Params, log_zeta: Array) -> JointTempering:
        d = self.densities
        assert d.hot is not None
        ladder = JointLadder(d.hot, d.cold, log_zeta, d.bridge, draw_hot=d.draw)
        return JointTempering(ladder, self.move, params)

    # -- stages ----------------------------------------------------------------------------------

    def after(self, stage: Stage, carry: PyTree) -> tuple[Stage, PyTree]:
        state, learnt = carry
        if stage.kind == "pilot":
            return self._after_joint_pilot(stage, state, learnt)
        log_zeta = self.log_zeta if self.log_zeta is not None else learnt.guess()
        lengths = rounds(self.num_warmup)
        settles = stage.index + 1 >= len(lengths)
        params = learnt.params() if settles else self._learnt(learnt.inner)
        following = replace(stage, kind="draw", index=0, length=self.num_draws)
        if not settles:
            following = replace(stage, index=stage.index + 1, length=lengths[stage.index + 1])
        return following, self._round(params, log_zeta, state.point.position)

    def _after_joint_pilot(
        self, stage: Stage, state: PyTree, learnt: Weighing
    ) -> tuple[Stage, PyTree]:
        measured, params = self._learn(stage, learnt.inner)
        if not ends_pilot(measured):
            return self._after_pilot(measured, params, state)
        following = replace(measured, kind="warm", index=0, length=rounds(self.num_warmup)[0])
        log_zeta = float(learnt.log_z()[-1]) if self.log_zeta is None else self.log_zeta
        # Half way along the ladder replicas know of both ends.
        middle = len(stage.betas) // 2
        params = jax.tree.map(lambda leaf: leaf[middle], learnt.params())
        positions = state.points.position[:, middle]
        return following, self._round(self._widened(params), log_zeta, positions)

    def _fresh(self, stage: Stage, params: Params | None) -> tuple[Stage, PyTree]:
        following, carried = super()._fresh(stage, params)
        if following.kind == "pilot":
            return following, carried
        state, learnt = carried
        first = jax.tree.map(lambda leaf: leaf[-1], learnt.params())
        positions = state.points.position[:, -1]
        return following, self._round(self._widened(first), self.log_zeta or 0.0, positions)

    # -- what a stage carries --------------------------------------------------------------------

    def _widened(self, params: Params) -> Params:
        """A rung's parameters, with a scale for the control, and a rung axis of one."""
        factor = jnp.asarray(params.factor)
        scale = jnp.ones(()) if self.move.metric == "unit" else jnp.asarray(CONTROL_SCALE)
        if factor.ndim == 1:
            wide = jnp.append(factor, scale)
        else:
            wide = jnp.pad(factor, ((0, 1), (0, 1))).at[-1, -1].set(scale)
        return Params(params.step_size[None], wide[None])

    def _round(self, params: Params, log_zeta: float, positions: PyTree) -> PyTree:
        """A round from these positions, or from where the last one left them."""
        guess = jnp.asarray(log_zeta, params.step_size.dtype)
        sampler = self._joint(params, guess)
        state = restart(sampler, positions)
        nothing = jnp.full((), -jnp.inf, guess.dtype)
        return state, Guessing(begin(sampler, state), guess, nothing, nothing)

    def carried(self, stage: Stage) -> PyTree:
        if stage.kind == "pilot":
            return super().carried(stage)
        dimension = self.densities.layout.dimension
        positions = jnp.zeros((self.num_chains, dimension))
        dense = self.move.metric == "dense"
        factor = jnp.eye(dimension) if dense else jnp.ones((dimension,))
        params = Params(self.move.initial_step_sizes(dimension), factor)
        return self._round(self._widened(params), 0.0, positions)


def restart(sampler: JointTempering, positions: PyTree) -> PyTree:
    """Chains at positions, half way up, or at pairs of position and control that they were at."""
    if isinstance(positions, jax.Array):
        return start_chains(sampler, positions, False)
    state = start_chains(sampler, positions.x, False)
    points = jax.vmap(lambda p: sampler.ladder.evaluate(p, gradient=sampler.move.uses_gradient))
    return state._replace(point=points(positions))
