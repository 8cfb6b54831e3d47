"""Warm-up of joint continuous tempering, and its draws.

    pilot   short rounds of parallel tempering, as for every ladder: they say how many rungs
    warm    half of the steps: rounds of those rungs, which space them by their swaps and estimate
            log Z at each. These are the joint chain's path. A log zeta that is given takes its
            place, and these rounds are left out
    joint   the other half: rounds of the joint chain itself. Between them its factor and its step
            size are renewed, and the path stays: a chain that has not been everywhere says nothing
            of log Z, and a path that follows it keeps it where it is
    draw    nothing adapts

The control u is one more coordinate of the position, with a scale of its own in the factor.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from temperance.engine.loop import start_chains
from temperance.engine.run import Place, Stage
from temperance.ladders.joint import JointLadder, Path
from temperance.moves.move import Params
from temperance.samplers.continuous import JointTempering
from temperance.warmup.adaptation import Adaptation, begin, rounds
from temperance.warmup.rounds import Left, WarmUp, start_anew, tune_params
from temperance.warmup.rung_weights import WeighedRungs

# The standard deviation of u where beta is uniform, pi / sqrt(3).
CONTROL_SCALE = 1.8
# Log zeta, and the path if there is one.
Course = tuple[float, Path | None]


class OnCourse(NamedTuple):
    """Warm-up of the joint chain's moves, and the log zeta and path that they are tuned for."""

    inner: Adaptation
    log_zeta: Float[Array, ""]
    path: Path | None

    def params(self, learning: Bool[Array, ""] | bool = False) -> Params:
        return self.inner.params(learning)

    def after(self, sampler: Any, state: PyTree, info: Any) -> "OnCourse":
        """What is known after one more step of every chain."""
        return self._replace(inner=self.inner.after(sampler, state, info))


class PathWarmUp(WarmUp):
    """Rounds of rungs side by side, for the path; none if log zeta is given."""

    def num_steps(self, shared: WeighedRungs) -> int:
        return 0 if shared.log_zeta is not None else (shared.call.num_warmup + 1) // 2


class JointRounds(Stage):
    """What rounds of the joint chain have in common, whether they learn or draw."""

    def sampler(self, shared: WeighedRungs, place: Place, carry: PyTree) -> JointTempering:
        return joint(shared, carry[1].params(), carry[1].log_zeta, carry[1].path)

    def template(self, shared: WeighedRungs, place: Place) -> PyTree:
        call = shared.call

        def carried() -> PyTree:
            positions = jnp.zeros((call.num_chains, call.dimension))
            dense = call.move.metric == "dense"
            factor = jnp.eye(call.dimension) if dense else jnp.ones((call.dimension,))
            params = Params(call.move.initial_step_sizes(call.dimension), factor)
            bends = shared.log_zeta is None and call.num_warmup > 0
            betas = jnp.asarray(place.rungs.betas)
            course = 0.0, Path(betas, jnp.zeros_like(betas)) if bends else None
            return a_round(shared, widened(shared, params), course, positions)

        return jax.eval_shape(carried)


class JointWarmUp(JointRounds):
    """Rounds of the joint chain, started at the middle rung of those side by side."""

    kinds = ("joint",)

    def applies(self, shared: WeighedRungs) -> bool:
        return shared.call.num_warmup > 0

    def enter(self, shared: WeighedRungs, left: Left | None) -> tuple[Place, PyTree]:
        assert left is not None
        assert left.seen is not None
        before, (state, learning) = left.seen
        course = course_of(shared, np.asarray(before.rungs.betas), learning.log_z())
        middle = len(before.rungs.betas) // 2
        params = jax.tree.map(lambda leaf: leaf[middle], learning.params())
        positions = state.points.position[:, middle]
        place = Place("joint", 0, self._lengths(shared)[0], before.rungs)
        return place, a_round(shared, widened(shared, params), course, positions)

    def after(self, shared: WeighedRungs, place: Place, carry: PyTree) -> tuple[Place | None, Any]:
        state, learning = carry
        lengths = self._lengths(shared)
        if place.round + 1 >= len(lengths):
            return None, Left(place.rungs, learning.params(), state, (place, carry))
        following = Place("joint", place.round + 1, lengths[place.round + 1], place.rungs)
        params, course = tune_params(shared, learning.inner), course_now(learning)
        return following, a_round(shared, params, course, state.point.position)

    def _lengths(self, shared: WeighedRungs) -> list[int]:
        steps = shared.call.num_warmup
        return rounds(max(steps if shared.log_zeta is not None else steps // 2, 1))


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
            course = shared.log_zeta or 0.0, None
            return place, a_round(shared, widened(shared, first), course, positions)
        assert left.params is not None
        assert left.seen is not None
        place = Place("draw", 0, shared.call.num_draws, left.rungs)
        course = course_now(left.seen[1][1])
        return place, a_round(shared, left.params, course, left.state.point.position)


def course_of(shared: WeighedRungs, betas: np.ndarray, log_z: np.ndarray) -> Course:
    """Log zeta and the path through these betas, or the log zeta that is given and no path."""
    if shared.log_zeta is not None:
        return shared.log_zeta, None
    excess = np.asarray(log_z, float) - betas * float(log_z[-1])
    # The ends are where they are, and not nearly there.
    excess[0] = excess[-1] = 0.0
    return float(log_z[-1]), Path(jnp.asarray(betas), jnp.asarray(excess))


def course_now(learning: OnCourse) -> Course:
    """That of a finished round, which is the next one's."""
    return float(learning.log_zeta), learning.path


def joint(
    shared: WeighedRungs, params: Params, log_zeta: Array, path: Path | None
) -> JointTempering:
    """The joint chain's sampler."""
    d = shared.call.densities
    assert d.hot is not None
    ladder = JointLadder(d.hot, d.cold, log_zeta, d.bridge, draw_hot=d.draw, path=path)
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


def a_round(shared: WeighedRungs, params: Params, course: Course, positions: PyTree) -> PyTree:
    """A round from these positions, or from where the last one left them."""
    dtype = params.step_size.dtype
    guess, path = jnp.asarray(course[0], dtype), course[1]
    path = None if path is None else Path(path.betas.astype(dtype), path.excess.astype(dtype))
    sampler = joint(shared, params, guess, path)
    state = restart(sampler, positions)
    return state, OnCourse(begin(sampler, state), guess, path)


def restart(sampler: JointTempering, positions: PyTree) -> PyTree:
    """Chains at positions, half way up, or at pairs of position and control that they were at."""
    if isinstance(positions, jax.Array):
        return start_chains(sampler, positions, False)
    state = start_chains(sampler, positions.x, False)
    points = jax.vmap(lambda p: sampler.ladder.evaluate(p, gradient=sampler.move.uses_gradient))
    return state._replace(point=points(positions))
