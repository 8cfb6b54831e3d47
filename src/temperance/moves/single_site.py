"""One-at-a-time Metropolis: every coordinate in turn.

    x_i* = x_i + s F_i z,  z ~ N(0, 1),       accept with min(1, pi(x*) / pi(x)),      i = 1 ... d

with s the step size and F_i the standard deviation of coordinate i at the rung. A coordinate on
which the others depend little can be moved much farther alone than all of them together. One
density for each coordinate, no gradient.

Each update is reversible and their fixed order is not: run backwards it is the other order.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.errors import MoveError
from temperance.ladders.ladder import Rung
from temperance.moves.accept import Tried, choose, decide
from temperance.moves.fast_slow.fast_variables import scales_of
from temperance.moves.move import AbstractMove, Info, Params, checked_metric, checked_step, info_of
from temperance.programs.random_numbers import normals_and_uniforms


class SingleSite(AbstractMove):
    """Leaves the rung's density invariant for any step size and factor; its order is fixed.

    The last `trailing` coordinates have no turn of their own. They are moved along, each by noise
    of its own, in every proposal of the others. A dense factor lends its standard deviations alone.
    """

    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    trailing: int = eqx.field(static=True, default=0)
    backwards: bool = eqx.field(static=True, default=False)
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(0.44,))
    reversible: bool = eqx.field(static=True, default=False)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    references = ("metropolis1953",)

    def reversal(self) -> AbstractMove:
        return replace(self, backwards=not self.backwards)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, unravel = ravel_pytree(point.position)
        turns = flat.size - self.trailing
        if turns < 1:
            raise MoveError(
                f"trailing: {self.trailing} coordinates are to move along with others, and there "
                f"are {flat.size} in all"
            )
        scales = params.step_size[0] * scales_of(params.factor, jnp.arange(flat.size))
        normals, uniforms = normals_and_uniforms(
            key, turns * (1 + self.trailing), turns, flat.dtype
        )
        own, along = normals[:turns], normals[turns:].reshape(turns, self.trailing)

        def update(point: Point, one: tuple[Array, ...]) -> tuple[Point, Tried]:
            i, own, along, uniform = one
            apart = jnp.concatenate([own * (jnp.arange(turns) == i), along])
            start = ravel_pytree(point.position)[0]
            proposal = rung.evaluate(unravel(start + scales * apart), gradient=False)
            log_density = rung.log_density(proposal)
            decision = decide(uniform, log_density - rung.log_density(point))
            kept = self.kept(decision.accepted, proposal._replace(gradients=None), point)
            lost = ~jnp.isfinite(log_density)
            return kept, Tried(decision.probability, decision.accepted, lost)

        # A point may carry gradients for another move's sake; this one cannot keep them true.
        bare = point._replace(gradients=None)
        each = (jnp.arange(turns), own, along, uniforms)
        end, tried = jax.lax.scan(update, bare, each, reverse=self.backwards)
        return end, info_of(tried, jnp.asarray(turns))

    def kept(self, accepted: Array, proposal: Point, point: Point) -> Point:
        """The proposal with all that is known of it, or the point with all that is known of it."""
        return choose(accepted, proposal, point)


def single_site(scale: float | None = None, metric: str = "diagonal") -> SingleSite:
    """Metropolis of one coordinate at a time, all of them in turn.

    `scale=None` is tuned in warm-up to accept 44 % of proposals. A step evaluates the density once
    for each coordinate. `metric` is as in `metropolis`; of a dense one the scales are used.
    """
    return SingleSite(step_sizes=(checked_step(scale, "scale"),), metric=checked_metric(metric))
