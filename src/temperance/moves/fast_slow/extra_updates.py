"""Extra updates of the fast variables, after each update of all of them (Lewis and Bridle 2002).

With the slow variables x1 as they are, and what depends on them alone prepared once,

    x2* = x2 + s F2 z,      accept with min(1, pi(x1, x2*) / pi(x1, x2)),       many times.

Powers of a reversible kernel are reversible. Alone these never change x1, so that they come after a
move that does; in this order the two are not reversible, and backwards they run in the other.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.errors import MoveError
from temperance.ladders.ladder import Rung, weighted
from temperance.moves.accept import Tried
from temperance.moves.combine import alternate
from temperance.moves.fast_slow.fast_variables import AbstractFastSlow, checked_fast
from temperance.moves.fast_slow.random_walk import (
    FAST_TARGET,
    Walker,
    fast_update,
    stride,
)
from temperance.moves.move import AbstractMove, Info, Params, checked_step, info_of
from temperance.problems.checks import check_count
from temperance.problems.layout import Layout
from temperance.programs.random_numbers import normals_and_uniforms


class FastUpdates(AbstractFastSlow):
    """`times` Metropolis updates of the fast variables for one preparation of the slow ones.

    Leaves the rung's density invariant and is reversible. It never changes the slow variables, so
    that a chain of these alone stays where it starts.
    """

    fast: tuple[str, ...] = eqx.field(static=True)
    times: int = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    layout: Layout | None = eqx.field(static=True, default=None)
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(FAST_TARGET,))
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    references = ("lewis2002",)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        halves = self.halves(point, rung)
        rows = params.step_size[0] * params.factor[halves.fork.fast_index]
        normals, uniforms = normals_and_uniforms(
            key, self.times * rows.shape[-1], self.times, halves.fast.dtype
        )
        cache = halves.prepare(halves.slow)

        def update(here: Walker, one: tuple[Array, Array]) -> tuple[Walker, Tried]:
            return fast_update(
                here,
                here.fast + stride(rows, one[0]),
                one[1],
                lambda fast: halves.finish(cache, fast),
                lambda values: weighted(rung.weights, values),
            )

        start = Walker(halves.fast, point.components)
        each = (normals.reshape(self.times, -1), uniforms)
        end, tried = jax.lax.scan(update, start, each)
        moved = halves.point(halves.slow, end.fast, end.values, point.memory)
        return moved, info_of(tried, jnp.asarray(1))


def extra_updates(
    move: AbstractMove,
    fast: str | Sequence[str] | None = None,
    times: int = 49,
    scale: float | None = None,
) -> AbstractMove:
    """A step of `move`, and then `times` Metropolis updates of the fast variables alone.

    `fast` names leaves of the position (default: those that the problem says are fast). The updates
    change all fast leaves at once, and together cost one evaluation of the density and `times` of
    what depends on the fast leaves. They have a step size of their own, the move's last; `scale`
    fixes it. Exact if `move` is.
    """
    if not isinstance(move, AbstractMove):
        raise MoveError(f"move: wanted a move for all variables, such as tp.metropolis(): {move!r}")
    more = FastUpdates(
        fast=checked_fast(fast),
        times=check_count("times", times, 1),
        step_sizes=(checked_step(scale, "scale"),),
        metric=move.metric,
    )
    return alternate(move, more)
