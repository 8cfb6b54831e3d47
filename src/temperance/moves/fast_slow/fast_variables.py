"""What moves of fast and slow variables share: which is which, and the density in two stages.

A position is x = (x1, x2), slow and fast. The components of a ladder at x are

    c(x1, x2) = finish(prepare(x1), x2)                                          (two_stage.py)

so that a move that tries many x2 at one x1 runs `prepare` once. Whoever runs a move by the name of
a method works on vectors, and tells it by `placed` how leaves lie in them. A chain that is asked to
`remember` keeps the cache of its own x1 with its point, and the next step starts from it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Point
from temperance.problems.slow_fast_vector import Fork, fast_leaves
from temperance.errors import ArgumentError, MoveError
from temperance.ladders.ladder import AbstractLadder, Rung
from temperance.problems.layout import Layout
from temperance.moves.move import AbstractMove
from temperance.ladders.prefix import PrefixLadder
from temperance.problems.problem import Problem, Target
from temperance.moves.fast_slow.two_stage import Cache, stages

Slow = Float[Array, " slow"]
Fast = Float[Array, " fast"]


class Halves(NamedTuple):
    """A point's slow and fast coordinates, and the components as a function of each in turn."""

    fork: Fork
    slow: Slow
    fast: Fast
    prepare: Callable[[Slow], Cache]
    finish: Callable[[Cache, Fast], Float[Array, " components"]]

    def finish_all(self, cache: Cache, members: Float[Array, "members fast"]) -> Array:
        """The components of every member, (members, components)."""
        return jax.vmap(self.finish, in_axes=(None, 0))(cache, members)

    def point(self, slow: Slow, fast: Fast, components: Array, memory: Any) -> Point:
        """The point at (slow, fast)."""
        return Point(self.fork.whole(slow, fast), components, None, memory)


class AbstractFastSlow(AbstractMove):
    """A move that knows which leaves of the position are fast.

    `fast` names them. Naming the wrong ones costs time and nothing else: every value is that of
    the density as it was given.
    """

    fast: eqx.AbstractVar[tuple[str, ...]]
    layout: eqx.AbstractVar[Layout | None]

    def placed(self, problem: Problem | Target, layout: Layout) -> "AbstractFastSlow":
        names = self.fast or said_fast(problem)
        fast_leaves(layout, names)
        return replace(self, fast=names, layout=layout)

    def check_ladder(self, ladder: AbstractLadder) -> None:
        if isinstance(ladder, PrefixLadder):
            raise MoveError(
                f"{type(self).__name__} looks at many values of the fast variables for one of the "
                "slow ones, and on nested subsamples every rung has rows of its own to prepare: "
                "heat by powers with method='pt', 'tt', 'st' or 'gibbs-ct'"
            )

    def halves(self, point: Point, rung: Rung) -> Halves:
        """The point and its density, taken apart."""
        fork = Fork.of(point.position, self.fast, self.layout)
        slow, fast = fork.split(point.position)

        def components(slow: Slow, fast: Fast) -> Array:
            return rung.evaluate(fork.join(slow, fast), gradient=False).components

        both = stages(components, slow, fast)
        return Halves(fork, slow, fast, both.prepare, both.finish)


def said_fast(problem: Problem | Target) -> tuple[str, ...]:
    """The leaves that a problem says are fast."""
    for part in ("terms", "log_likelihood", "log_density"):
        names = getattr(getattr(problem, part, None), "fast", ())
        if names:
            return tuple(names)
    raise ArgumentError(
        "fast: name the leaves of the position that are quick to change, such as "
        "fast='log_scale'; this problem does not say which they are"
    )


def checked_fast(fast: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of leaves; none means what the problem says."""
    names = (fast,) if isinstance(fast, str) else tuple(fast or ())
    if not all(isinstance(name, str) and name for name in names):
        raise ArgumentError(f"fast: wanted names of leaves of the position, got {fast!r}")
    return names


def scales_of(factor: Array, index: Any) -> Float[Array, " some"]:
    """The standard deviations of some coordinates, from a root of the covariance."""
    if factor.ndim == 1:
        return factor[index]
    return jnp.sqrt(jnp.sum(factor[index] ** 2, axis=1))
