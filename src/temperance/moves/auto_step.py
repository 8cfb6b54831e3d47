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
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Key, Point
from temperance.errors import ArgumentError
from temperance.ladders.ladder import Rung
from temperance.moves.accept import acceptance_of, choose
from temperance.moves.hmc import DIVERGENCE, Hmc, Trajectory, hmc
from temperance.moves.move import AbstractMove, Info, Params
from temperance.problems.checks import check_count
from temperance.programs.random_numbers import normals_and_uniforms


class Bounds(NamedTuple):
    """|log b| and |log a|: errors below the first are small, those above the second large."""

    small: Float[Array, ""]
    large: Float[Array, ""]


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

    trajectory: Hmc
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
        return self.trajectory.longest_steps()

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, _ = ravel_pytree(point.position)
        momentum, uniforms = normals_and_uniforms(key, flat.size, 4, flat.dtype)
        size = params.step_size[0] * (1 + self.trajectory.jitter * (2 * uniforms[1] - 1))
        # The larger and the smaller of two uniforms are uniform on the triangle.
        bounds = Bounds(-jnp.log(jnp.max(uniforms[2:])), -jnp.log(jnp.min(uniforms[2:])))

        def follow(start: Point, momentum: Array, exponent: Array) -> Trajectory:
            stretched = size * jnp.exp2(exponent.astype(size.dtype))
            return self.trajectory.follow(start, momentum, stretched, rung, params)

        def once(search: Search) -> Search:
            start = choose(search.checking, search.kept.end, point)
            begin = jnp.where(search.checking, -search.kept.momentum, momentum)
            found = follow(start, begin, search.trial)
            forth, back = self._search(search, found, bounds, uniforms[0]), self._check(
                search, found, bounds
            )
            return choose(search.checking, back, forth)._replace(num_tries=search.num_tries + 1)

        none = Trajectory(
            point,
            momentum,
            jnp.zeros_like(bounds.small),
            None if point.gradients is not None else jnp.zeros_like(flat),
        )
        zero, no = jnp.asarray(0), jnp.asarray(False)
        start = Search(zero, zero, none, none.log_ratio, no, no, no, zero)
        end = jax.lax.while_loop(lambda search: ~search.done, once, start)
        bare = int(point.gradients is None)
        return choose(end.accepted, end.kept.end, point), Info(
            acceptance_of(end.first)[0][None],
            end.accepted,
            acceptance_of(end.kept.log_ratio)[1] < -DIVERGENCE,
            end.num_tries * (self.trajectory.num_steps + bare),
            end.num_tries * bare,
            ~jnp.isfinite(rung.log_density(end.kept.end)),
            end.kept.slope,
        )

    def _search(
        self, search: Search, found: Trajectory, bounds: Bounds, uniform: Array
    ) -> Search:
        """The search after a trajectory from the start."""
        trial = search.trial
        small, large = self._sizes(found.log_ratio, bounds)
        is_first = trial == 0
        keep = small | (trial <= 0)
        kept: Trajectory = choose(keep, found, search.kept)
        if found.slope is not None:
            kept = kept._replace(slope=jnp.where(is_first, found.slope, search.kept.slope))
        chosen = jnp.where(keep, trial, search.chosen)
        more = (small & (trial >= 0)) | (large & (trial <= 0))
        more &= jnp.abs(trial) < self.max_doublings
        onward = trial + jnp.where(small & (trial >= 0), 1, -1)
        likely = jnp.log(uniform) < acceptance_of(kept.log_ratio)[1]
        # Between the bounds the way back chooses the tuned step, too.
        sure = is_first & ~small & ~large
        beside = jnp.where((chosen < 0) | (chosen < self.max_doublings), chosen + 1, chosen - 1)
        return Search(
            jnp.where(more, onward, beside),
            chosen,
            kept,
            jnp.where(is_first, found.log_ratio, search.first),
            ~more,
            likely & sure,
            ~more & (sure | ~likely),
            search.num_tries,
        )

    def _check(self, search: Search, found: Trajectory, bounds: Bounds) -> Search:
        """The search after a trajectory from the end that was chosen."""
        trial, chosen = search.trial, search.chosen
        small, large = self._sizes(found.log_ratio, bounds)
        agrees = jnp.where(chosen < 0, large, small ^ (trial > chosen))
        last = jnp.where(chosen < 0, trial == 0, (trial == 0) | ((trial > chosen) & (chosen == 0)))
        following = jnp.where(
            chosen < 0, trial + 1, jnp.where(trial > chosen, chosen - 1, trial - 1)
        )
        return search._replace(trial=following, accepted=agrees & last, done=last | ~agrees)

    @staticmethod
    def _sizes(log_ratio: Array, bounds: Bounds) -> tuple[Array, Array]:
        """Whether an energy error is small, and whether it is large; not a number is large."""
        error = jnp.abs(acceptance_of(log_ratio)[1])
        return error < bounds.small, error > bounds.large


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
        trajectory=trajectory,
        max_doublings=check_count("max_doublings", max_doublings, 1),
        step_sizes=trajectory.step_sizes,
        metric=trajectory.metric,
        target_acceptance=trajectory.target_acceptance,
    )
