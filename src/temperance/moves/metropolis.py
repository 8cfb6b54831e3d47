"""Random-walk Metropolis.

    x* = x + s F z,  z ~ N(0, I),       accept with min(1, pi(x*) / pi(x)),

with s the step size and F F' the covariance at the rung. One density a step, no gradient.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung
from temperance.moves.accept import accept_or_stay
from temperance.moves.move import (
    AbstractMove,
    Info,
    Params,
    checked_metric,
    checked_step,
    colour,
    info_of,
)
from temperance.programs.random_numbers import normals_and_uniforms


class Metropolis(AbstractMove):
    """Leaves the rung's density invariant, and is reversible, for any step size and factor."""

    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(0.234,))
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    references = ("metropolis1953",)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, unravel = ravel_pytree(point.position)
        step, uniform = normals_and_uniforms(key, flat.size, 1, flat.dtype)
        proposed = flat + params.step_size[0] * colour(params.factor, step)
        proposal = rung.evaluate(unravel(proposed), gradient=False)
        # A point may carry gradients for another move's sake; this one cannot keep them true.
        there, here = (one._replace(gradients=None) for one in (proposal, point))
        log_there, log_here = rung.log_density(there), rung.log_density(here)
        kept, tried = accept_or_stay(uniform[0], log_there, log_here, there, here)
        return kept, info_of(tried, jnp.asarray(1))


def metropolis(scale: float | None = None, metric: str = "diagonal") -> Metropolis:
    """Random-walk Metropolis; `scale=None` is tuned in warm-up to accept 23 % of proposals.

    `metric` is "diagonal", "dense" or "unit": which covariance of the rung the walk follows.
    """
    return Metropolis(step_sizes=(checked_step(scale, "scale"),), metric=checked_metric(metric))
