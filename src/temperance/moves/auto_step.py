r"""HMC whose step size is chosen anew for every trajectory, from where it starts.

Where the scale of a density changes from place to place (a funnel) no single step size serves. In
the isotropic coordinates of HMC, with a tuned step s, L leapfrog steps of size s 2^j lead from
(x, z) to (x_j, z_j). With log ratios r(i) = log pi(x) - |z|^2/2 after i steps, less that at the
start,

    l_j = r(L)                  e_j = max(r(0), ..., r(L)) - min(r(0), ..., r(L)).

A pair of numbers is uniform on the triangle 0 < a < b < 1, and z ~ N(0, I). A step is *short* if
e_j < |log b| and the angle between z and z_j is below pi/4; it is *large* if e_j > |log a|. Then

    j(x, z) = 0                              if 0 is neither short nor large
              the first j > 0 not short      if 0 is short; the one before it if e_j >= |log b|
              the first j < 0 not large      if 0 is large

and at most `max_doublings` either way. x_j is accepted with probability

    min(1, exp l_j)   if j(x_j, -z_j) = j(x, z),   else 0.

*Why it is exact.* Given a and b the map (x, z) -> (x_j, -z_j) is its own inverse and keeps volume
where both ends choose the same j; elsewhere the chain stays. So the kernel is reversible by any
rule for j. a, b and a jitter of s are drawn whatever the state. A density that is zero or not a
number on the way makes e_j infinite: the step is halved.

*What the check costs.* e_j and the angle are the same for a trajectory and its way back. So j = 0
that is neither short nor large needs no check; j < 0 needs the trajectories j + 1, ..., 0 from the
far end; others need j - 1, ..., 0, and j + 1 if it was tried. The check begins next to j, stops at
the first trajectory that disagrees, and is left out where u >= exp l_j rejects the end already.

The algorithm is AutoStep (Liu and others 2024) with theta = s 2^j and the bounds of autoMALA
(Biron-Lattes and others 2024). Two things are ours. (1) AutoStep compares |l_j| with the bounds. A
chain far out in a tail starts nearly at rest and rolls down; its way back with a doubled step rolls
up and down again to where it began, so that l = 0, the check fails and the chain stays there. The
range e_j includes the error on the way (with L = 1 there is nothing on the way). (2) The angle ends
doublings after an eighth of a Gaussian's period, so that the trajectory chosen is at most about a
quarter; longer ones turn back.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung
from temperance.moves.accept import acceptance_of, choose
from temperance.moves.hmc import DIVERGENCE, hmc
from temperance.moves.move import AbstractMove, Info, Params, slope_at, whiten
from temperance.moves.trajectory import Trajectory, follow, reverse
from temperance.problems.checks import check_count
from temperance.programs.random_numbers import normals_and_uniforms


class Bounds(NamedTuple):
    """|log b| and |log a|."""

    small: Float[Array, ""]
    large: Float[Array, ""]


class Verdict(NamedTuple):
    """What is to be done about a trajectory's step.

    `short`: a step of twice the size is tried. `large`: one of half the size is tried. `too_long`:
    the error is not small, so that a doubled step is not taken.
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

    branches = True  # side by side, every chain and rung would wait for the longest search
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
        agrees = jnp.where(halved, verdict.large, jnp.where(above, verdict.too_long, verdict.short))
        following = jnp.where(halved, trial + 1, jnp.where(above, chosen, trial) - 1)
        last = jnp.where(halved, trial == 0, following < 0)
        return search._replace(trial=following, accepted=agrees & last, done=last | ~agrees)


def judge(begin: Trajectory, end: Trajectory, bounds: Bounds) -> Verdict:
    """The same for a trajectory and its way back."""
    error = jnp.where(jnp.isnan(end.error), jnp.inf, end.error)
    product = jnp.sum(begin.momentum * end.momentum)
    lengths = jnp.sum(begin.momentum**2) * jnp.sum(end.momentum**2)
    straight = product > math.cos(0.25 * math.pi) * jnp.sqrt(lengths)
    small = error < bounds.small
    return Verdict(small & straight, error > bounds.large, ~small)


def auto_step(
    num_steps: int = 8,
    step_size: float | None = None,
    metric: str = "diagonal",
    jitter: float = 0.3,
    target_acceptance: float = 0.8,
    max_doublings: int = 20,
) -> AutoStep:
    """HMC whose tuned step is doubled or halved where each trajectory starts, by AutoStep.

    For densities whose scale changes from place to place. A trajectory has `num_steps` leapfrog
    steps, all of the size that was chosen, at most 2^`max_doublings` times longer or shorter than
    the tuned one. `step_size`, `metric` and `jitter` are those of `hmc`; warm-up tunes the step so
    that without a search `target_acceptance` of the trajectories would be accepted.
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
