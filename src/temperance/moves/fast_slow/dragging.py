"""Dragging fast variables along with a big step of the slow ones (Neal 2004).

Slow variables x1* are proposed by a symmetric walk. The fast ones are then dragged from where x1
wants them to where x1* does, by Metropolis updates for densities in between: from f_0 = x2,

    f_i from T_i, reversible for  pi(x1, .)^(1 - i/m) pi(x1*, .)^(i/m),        i = 1 ... m-1
    accept (x1*, f_{m-1}) with    min(1, exp( (1/m) sum_{i=0}^{m-1} a_i )),
                                  a_i = log pi(x1*, f_i) - log pi(x1, f_i)

*Why it is exact.* From (x1*, f_{m-1}) towards x1 the densities in between are the same ones in the
opposite order, so that the way back is f_{m-1}, ..., f_0 by T_{m-1}, ..., T_1. Since T_i is
reversible for its density rho_i, the way back is as likely as the way there times
prod_i rho_i(f_{i-1}) / rho_i(f_i). With pi(x1*, f_{m-1}) / pi(x1, f_0) the exponents of all of them
telescope to 1/m each, which is the ratio above. It asks that T_i depends on the density in between
and on nothing else: one step size for all of them. The ratio of the end points alone is biased.

As m grows the ratio tends to that of the marginals of x1 and x1*, with x2 summed out.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Scalar
from temperance.ladders.ladder import Rung, weighted
from temperance.moves.accept import Tried, accept_or_stay
from temperance.moves.fast_slow.fast_variables import checked_fast
from temperance.moves.fast_slow.random_walk import (
    FAST_TARGET,
    AbstractRemembering,
    Walker,
    fast_update,
    stride,
)
from temperance.moves.move import Info, Params, checked_metric, checked_step
from temperance.problems.checks import check_count
from temperance.problems.layout import Layout
from temperance.programs.random_numbers import normals_and_uniforms


class Dragging(AbstractRemembering):
    """Leaves the rung's density invariant, and is reversible, for any step sizes and factor.

    `times` is the number m of terms in the ratio. The first step size is that of the slow
    variables, the second that of the updates in between.
    """

    fast: tuple[str, ...] = eqx.field(static=True)
    times: int = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    layout: Layout | None = eqx.field(static=True, default=None)
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(0.234, FAST_TARGET))
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    references = ("neal2004",)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        halves = self.halves(point, rung)
        slow = params.step_size[0] * params.factor[halves.fork.slow_index]
        fast = params.step_size[1] * params.factor[halves.fork.fast_index]
        num_updates = self.times - 1
        key_slow, key_fast = jax.random.split(key)
        normals, uniform = normals_and_uniforms(key_slow, slow.shape[-1], 1, halves.slow.dtype)
        aim = halves.slow + stride(slow, normals)
        cache, made = self.known(halves, point)
        aim_cache = halves.prepare(aim)

        def evaluate(fast: Array) -> Float[Array, "2 components"]:
            return jnp.stack([halves.finish(cache, fast), halves.finish(aim_cache, fast)])

        def logs(values: Array) -> Float[Array, "2"]:
            return jnp.stack([weighted(rung.weights, one) for one in values])

        def update(here: Walker, one: tuple[Array, ...]) -> tuple[Walker, tuple[Tried, Array]]:
            share, normals, uniform = one

            def between(values: Array) -> Scalar:
                return jnp.dot(jnp.stack([1 - share, share]), logs(values))

            stepped = here.fast + stride(fast, normals)
            here, tried = fast_update(here, stepped, uniform, evaluate, between)
            return here, (tried, logs(here.values))

        first = jnp.stack([point.components, halves.finish(aim_cache, halves.fast)])
        normals, uniforms = normals_and_uniforms(
            key_fast, num_updates * fast.shape[-1], num_updates, halves.fast.dtype
        )
        shares = jnp.arange(1, self.times, dtype=fast.dtype) / self.times
        each = (shares, normals.reshape(num_updates, -1), uniforms)
        end, (inner, path) = jax.lax.scan(update, Walker(halves.fast, first), each)
        log_ratio = self.log_ratio(jnp.concatenate([logs(first)[None], path]))
        remembers = point.memory is not None
        there = halves.point(aim, end.fast, end.values[1], aim_cache if remembers else None)
        kept, tried = accept_or_stay(
            uniform[0], log_ratio, jnp.zeros_like(log_ratio), there, point._replace(gradients=None)
        )
        count = jnp.asarray(made + 1)
        return kept, Info(
            jnp.stack([tried.acceptance, jnp.mean(inner.acceptance)]),
            tried.accepted,
            jnp.asarray(False),
            count,
            count,
            tried.lost | jnp.any(inner.lost),
        )

    def log_ratio(self, path: Float[Array, "times 2"]) -> Scalar:
        """From log pi(x1, f_i) and log pi(x1*, f_i) along the path."""
        return jnp.mean(path[:, 1] - path[:, 0])


def dragging(
    fast: str | Sequence[str] | None = None,
    times: int = 20,
    scale: float | None = None,
    fast_scale: float | None = None,
    metric: str = "diagonal",
) -> Dragging:
    """Steps of the slow variables, with the fast ones dragged along by `times` - 1 updates.

    `fast` names leaves of the position (default: those that the problem says are fast). `scale` is
    that of the slow variables' walk, `fast_scale` that of the updates in between; None is tuned in
    warm-up. A step prepares the slow variables once for `times` evaluations of the fast ones, at
    either end; with `times=1` there would be nothing to drag.
    """
    return Dragging(
        fast=checked_fast(fast),
        times=check_count("times", times, 2),
        step_sizes=(checked_step(scale, "scale"), checked_step(fast_scale, "fast_scale")),
        metric=checked_metric(metric),
    )
