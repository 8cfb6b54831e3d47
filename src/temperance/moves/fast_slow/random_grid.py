"""Random-grid Metropolis: many updates on a grid of slow variables, each point prepared once.

A displacement delta of the slow variables is drawn, and then many updates propose

    (x1, x2) -> (x1 + delta, x2 + s F2 z)  or  (x1 - delta, x2 + s F2 z),     either sign half the
    time, accepted with min(1, pi(x1*, x2*) / pi(x1, x2)).

All slow variables on the way are x1 + i delta with i a whole number. What is computed from them is
kept, so that coming back to an i, with other fast variables, costs no slow evaluation.

Given delta every update is a Metropolis update with a symmetric proposal, the same one each time,
and a power of a reversible kernel is reversible. delta does not look at the state, and a mixture of
kernels that are reversible is. The cache changes nothing of this.

*Where i is kept.* Updates step to a neighbour, so that the indices looked at are all those between
the least and the greatest. At most one is new in each update: n updates look at n + 1 at most, and
no two of them are the same modulo n + 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung, weighted
from temperance.moves.accept import accept_or_stay
from temperance.moves.fast_slow.fast_variables import checked_fast
from temperance.moves.fast_slow.random_walk import (
    AbstractRemembering,
    Walker,
    stride,
)
from temperance.moves.move import Info, Params, checked_metric, checked_step, info_of
from temperance.problems.checks import check_count
from temperance.problems.layout import Layout
from temperance.programs.random_numbers import normals_and_uniforms


class Seen(NamedTuple):
    """What has been prepared: caches by slot, and the least and greatest index among them."""

    slots: PyTree
    least: Int[Array, ""]
    greatest: Int[Array, ""]


class RandomGrid(AbstractRemembering):
    """Leaves the rung's density invariant, and is reversible, for any step size and factor.

    A step decides as it goes what to prepare, so that chains and rungs run one after another.
    """

    fast: tuple[str, ...] = eqx.field(static=True)
    times: int = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    layout: Layout | None = eqx.field(static=True, default=None)
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(0.234,))
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    branches = True
    references = ("neal2010",)

    def slot(self, index: Int[Array, ""]) -> Int[Array, ""]:
        """Where the cache of a grid index is."""
        return index % (self.times + 1)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        halves = self.halves(point, rung)
        factor = params.step_size[0] * params.factor
        slow, fast = factor[halves.fork.slow_index], factor[halves.fork.fast_index]
        key_grid, key_walk = jax.random.split(key)
        normals, _ = normals_and_uniforms(key_grid, slow.shape[-1], 0, halves.slow.dtype)
        delta = stride(slow, normals)
        normals, uniforms = normals_and_uniforms(
            key_walk, self.times * fast.shape[-1], 2 * self.times, halves.fast.dtype
        )
        cache, made = self.known(halves, point)
        slots = jax.tree.map(
            lambda leaf: jnp.zeros((self.times + 1, *leaf.shape), leaf.dtype).at[0].set(leaf), cache
        )
        zero = jnp.zeros((), int)

        def update(carry: tuple[Array, Walker, Seen], one: tuple[Array, ...]):
            index, here, seen = carry
            normals, sign, uniform = one
            aim = index + jnp.where(sign < 0.5, -1, 1)
            new = (aim < seen.least) | (aim > seen.greatest)
            place = self.slot(aim)
            entry = jax.lax.cond(
                new,
                lambda: halves.prepare(halves.slow + aim.astype(delta.dtype) * delta),
                lambda: jax.tree.map(lambda leaf: leaf[place], seen.slots),
            )
            seen = Seen(
                jax.tree.map(lambda all_, one: all_.at[place].set(one), seen.slots, entry),
                jnp.minimum(seen.least, aim),
                jnp.maximum(seen.greatest, aim),
            )
            stepped = here.fast + stride(fast, normals)
            there = Walker(stepped, halves.finish(entry, stepped))
            log_there, log_here = (weighted(rung.weights, w.values) for w in (there, here))
            (index, here), tried = accept_or_stay(
                uniform, log_there, log_here, (aim, there), (index, here)
            )
            return (index, here, seen), tried

        start = (zero, Walker(halves.fast, point.components), Seen(slots, zero, zero))
        each = (normals.reshape(self.times, -1), *uniforms.reshape(2, self.times))
        (index, end, seen), tried = jax.lax.scan(update, start, each)
        memory = point.memory
        if memory is not None:
            memory = jax.tree.map(lambda leaf: leaf[self.slot(index)], seen.slots)
        slow_end = halves.slow + index.astype(delta.dtype) * delta
        count = made + seen.greatest - seen.least
        return halves.point(slow_end, end.fast, end.values, memory), info_of(tried, count)


def random_grid(
    fast: str | Sequence[str] | None = None,
    times: int = 20,
    scale: float | None = None,
    metric: str = "diagonal",
) -> RandomGrid:
    """`times` Metropolis updates on a random grid of the slow variables, each point prepared once.

    `fast` names leaves of the position (default: those that the problem says are fast). `scale` is
    that of the displacement and of the fast variables' walk alike; None is tuned in warm-up.
    """
    return RandomGrid(
        fast=checked_fast(fast),
        times=check_count("times", times, 1),
        step_sizes=(checked_step(scale, "scale"),),
        metric=checked_metric(metric),
    )
