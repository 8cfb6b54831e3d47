r"""HMC whose step size is chosen anew for every trajectory, from where it starts.

Where the scale of a density changes from place to place (a funnel, a ridge that bends) no single
step size serves. With a tuned step s, L leapfrog steps of size s 2^j take (x, z) to (x_j, z_j), and

    l_j(x, z) = log pi(x_j) - log pi(x) - |z_j|^2/2 + |z|^2/2.

A pair of bounds is uniform on the triangle 0 < a < b < 1, and z ~ N(0, I). The exponent is

    j(x, z) = 0                                               if |log b| <= |l_0| <= |log a|
              the last j >= 0 with |l_0|, ..., |l_j| < |log b|     if |l_0| < |log b|
              the first j < 0 with |l_j| <= |log a|                if |l_0| > |log a|

and at most `max_doublings` either way. The end (x_j, z_j) is accepted with probability

    min(1, exp l_j)   if j(x_j, -z_j) = j(x, z),   else 0.

*Why it is exact.* Given a and b the map (x, z) -> (x_j, -z_j) is its own inverse and keeps volume
wherever both ends choose the same j; elsewhere the chain stays. So the kernel is reversible
whatever rule chooses j, as long as both ends are asked. a, b and a jitter of s are drawn whatever
the state. A proposal where the density is zero or not a number has |l| = infinity: the step is
halved.

*What the check costs.* |l_j| is the same from both ends, since the way back has l_j with the
opposite sign. So j = 0 between the bounds is sure; j < 0 needs the trajectories 0, -1, ..., j + 1
from the far end, and j >= 0 by doubling needs 0, ..., j - 1 and j + 1. The check is skipped where
u >= exp l_j refuses the end already, stops at the first trajectory that disagrees, and begins with
the exponents beside j, which disagree most often. Trajectories from both ends are rounds of one
loop, so that chains and rungs that run side by side wait for the longest sum alone.

The algorithm is that of Liu and others (2024), whose step size theta is s here, with the bounds of
autoMALA (Biron-Lattes and others 2024), which are one-sided there. L = 1 is autoMALA.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Key, Point
from temperance.errors import ArgumentError
from temperance.ladders.ladder import Rung
from temperance.moves.accept import acceptance_of, choose
from temperance.moves.hmc import DIVERGENCE, hmc
from temperance.moves.move import AbstractMove, Info, Params, colour, slope_at, whiten
from temperance.problems.checks import check_count
from temperance.programs.random_numbers import normals_and_uniforms


import os
RANGE = int(os.environ.get("RANGE", "1"))
STRAIGHT = float(os.environ.get("STRAIGHT", "0.7071"))


class Trajectory(NamedTuple):
    """Where a trajectory ends: the point, the momentum and the gradient there, both of y.

    `log_ratio` is the log of the acceptance ratio, `error` the range of the energy on the way.
    """

    end: Point
    momentum: Float[Array, " d"]
    slope: Float[Array, " d"]
    log_ratio: Float[Array, ""]
    error: Float[Array, ""]


class Bounds(NamedTuple):
    """|log b| and |log a|: errors below the first are small, those above the second large."""

    small: Float[Array, ""]
    large: Float[Array, ""]


class Verdict(NamedTuple):
    """What is to be done about a trajectory's step.

    `short`: its error is small and its momentum has turned little, so that a step of twice the size
    is tried. `large`: half of it is tried. `too_long`: a doubled step that is not taken.
    """

    short: Bool[Array, ""]
    large: Bool[Array, ""]
    too_long: Bool[Array, ""]


class Search(NamedTuple):
    """Where the search stands: the next exponent to try, and what is known.

    `chosen` is the exponent that is kept so far, `kept` its trajectory. `checking` says that it is
    final and that trajectories start from its end. `first` is the log ratio of the tuned step.
    """

    trial: Int[Array, ""]
    chosen: Int[Array, ""]
    kept: Trajectory
    first: Float[Array, ""]
    checking: Bool[Array, ""]
    accepted: Bool[Array, ""]
    done: Bool[Array, ""]
    num_tries: Int[Array, ""]


class AutoStep(AbstractMove):
    """Leaves the rung's density invariant, and is reversible, for any step size and factor.

    The `acceptance` it reports, which warm-up tunes, is that of the tuned step before the search:
    after the search acceptance is nearly the same for every tuned step.
    """

    num_steps: int = eqx.field(static=True)
    jitter: float = eqx.field(static=True)
    max_doublings: int = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    uses_gradient: bool = eqx.field(static=True, default=True)
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)

    references = ("liu2024", "biron2024", "duane1987")

    def sees_gradients(self) -> bool:
        return True

    def longest_steps(self) -> tuple[float, ...]:
        """A quarter period of a Gaussian, as for HMC."""
        return (0.5 * math.pi / self.num_steps,)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, _ = ravel_pytree(point.position)
        momentum, uniforms = normals_and_uniforms(key, flat.size, 4, flat.dtype)
        size = params.step_size[0] * (1 + self.jitter * (2 * uniforms[1] - 1))
        # The larger and the smaller of two uniforms are uniform on the triangle.
        bounds = Bounds(-jnp.log(jnp.max(uniforms[2:])), -jnp.log(jnp.min(uniforms[2:])))
        slope = slope_at(rung, point)
        zero, no = jnp.zeros_like(size), jnp.asarray(False)
        origin = Trajectory(point, momentum, whiten(params.factor, slope), zero, zero)

        def once(search: Search) -> Search:
            begin: Trajectory = choose(search.checking, reverse(search.kept), origin)
            stretched = size * jnp.exp2(search.trial.astype(size.dtype))
            found = follow(begin, stretched, self.num_steps, rung, params)
            verdict = judge(begin, found, bounds)
            back = self._after_check(search, verdict)
            forth = self._after_try(search, found, verdict, uniforms[0])
            after: Search = choose(search.checking, back, forth)
            return after._replace(num_tries=search.num_tries + 1)

        none = jnp.asarray(0)
        start = Search(none, none, origin, zero, no, no, no, none)
        end = jax.lax.while_loop(lambda search: ~search.done, once, start)
        bare = int(point.gradients is None)  # then a value and a gradient are evaluated apart
        num_steps = end.num_tries * self.num_steps
        return choose(end.accepted, end.kept.end, point), Info(
            acceptance_of(end.first)[0][None],
            end.accepted,
            acceptance_of(end.kept.log_ratio)[1] < -DIVERGENCE,
            num_steps * (1 + bare) + bare,
            num_steps * bare,
            ~jnp.isfinite(rung.log_density(end.kept.end)),
            slope if bare else None,
        )

    def _after_try(
        self, search: Search, found: Trajectory, verdict: Verdict, uniform: Array
    ) -> Search:
        """The search after a trajectory from the start."""
        trial = search.trial
        is_first = trial == 0
        keep = (trial <= 0) | ~verdict.too_long
        kept: Trajectory = choose(keep, found, search.kept)
        chosen = jnp.where(keep, trial, search.chosen)
        longer, shorter = verdict.short & (trial >= 0), verdict.large & (trial <= 0)
        more = (longer | shorter) & (jnp.abs(trial) < self.max_doublings)
        # What the way back has to try first: the next exponent up, unless it was not tried here.
        above = (chosen < 0) | ~keep
        nothing = is_first & ~longer & ~shorter
        refused = ~(jnp.log(uniform) < acceptance_of(kept.log_ratio)[1])
        return Search(
            jnp.where(more, trial + jnp.where(longer, 1, -1), chosen + jnp.where(above, 1, -1)),
            chosen,
            kept,
            jnp.where(is_first, found.log_ratio, search.first),
            ~more,
            nothing & ~refused,
            ~more & (nothing | refused),
            search.num_tries,
        )

    def _after_check(self, search: Search, verdict: Verdict) -> Search:
        """The search after a trajectory from the end that was chosen."""
        trial, chosen = search.trial, search.chosen
        halved, above = chosen < 0, trial > chosen
        agrees = jnp.where(
            halved, verdict.large, jnp.where(above, verdict.too_long, verdict.short)
        )
        following = jnp.where(halved, trial + 1, jnp.where(above, chosen, trial) - 1)
        last = jnp.where(halved, trial == 0, following < 0)
        return search._replace(trial=following, accepted=agrees & last, done=last | ~agrees)


def follow(
    begin: Trajectory, size: Array, num_steps: int, rung: Rung, params: Params
) -> Trajectory:
    """`num_steps` leapfrog steps of `size` from where another trajectory ends."""
    flat, unravel = ravel_pytree(begin.end.position)
    before = rung.log_density(begin.end) - 0.5 * jnp.sum(begin.momentum**2)

    def leapfrog(carry: tuple[Any, ...], _: None) -> tuple[tuple[Any, ...], None]:
        flat, now, low, high = carry
        momentum = now.momentum + 0.5 * size * now.slope
        flat = flat + size * colour(params.factor, momentum)
        point = rung.evaluate(unravel(flat), gradient=True)
        slope = whiten(params.factor, slope_at(rung, point))
        momentum = momentum + 0.5 * size * slope
        ratio = rung.log_density(point) - 0.5 * jnp.sum(momentum**2) - before
        low, high = jnp.minimum(low, ratio), jnp.maximum(high, ratio)
        return (flat, Trajectory(point, momentum, slope, ratio, high - low), low, high), None

    zero = jnp.zeros_like(before)
    (_, end, *_), _ = jax.lax.scan(leapfrog, (flat, begin, zero, zero), length=num_steps)
    return end if RANGE else end._replace(error=jnp.abs(end.log_ratio))


def reverse(trajectory: Trajectory) -> Trajectory:
    """Where a trajectory ends, ready to go back."""
    return trajectory._replace(momentum=-trajectory.momentum)


def judge(begin: Trajectory, end: Trajectory, bounds: Bounds) -> Verdict:
    """The same for a trajectory and its way back."""
    error = jnp.where(jnp.isnan(end.error), jnp.inf, end.error)
    product = jnp.sum(begin.momentum * end.momentum)
    lengths = jnp.sum(begin.momentum**2) * jnp.sum(end.momentum**2)
    straight = product > STRAIGHT * jnp.sqrt(lengths)
    small = error < bounds.small
    return Verdict(small & straight, error > bounds.large, ~small)


def auto_step(
    num_steps: int = 5,
    step_size: float | None = None,
    metric: str = "diagonal",
    jitter: float = 0.3,
    target_acceptance: float = 0.8,
    max_doublings: int = 10,
) -> AutoStep:
    """HMC whose tuned step is doubled or halved where each trajectory starts, by AutoStep.

    """
    trajectory = hmc(num_steps, step_size, metric, jitter, target_acceptance)
    return AutoStep(
        num_steps=trajectory.num_steps,
        jitter=trajectory.jitter,
        max_doublings=check_count("max_doublings", max_doublings, 1),
        step_sizes=trajectory.step_sizes,
        metric=trajectory.metric,
        target_acceptance=trajectory.target_acceptance,
    )
