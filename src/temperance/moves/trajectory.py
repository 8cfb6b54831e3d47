"""A leapfrog trajectory that keeps the range of its energy.

In the isotropic coordinates of HMC, x = F y with a momentum z ~ N(0, I) of y and g = grad log pi,
the log ratio after i steps is

    r(i) = log pi(x_i) - log pi(x_0) - |z_i|^2/2 + |z_0|^2/2,

the last of which decides. The range max r - min r over i = 0, ..., L is the same for a trajectory
and its way back, since both visit the same points.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from temperance._types import Point
from temperance.ladders.ladder import Rung
from temperance.moves.move import Params, colour, slope_at, whiten


class Trajectory(NamedTuple):
    """Where a trajectory ends: the point, the momentum and the gradient there, both of y.

    `log_ratio` is the log of the acceptance ratio, `error` the range of the energy on the way.
    """

    end: Point
    momentum: Float[Array, " d"]
    slope: Float[Array, " d"]
    log_ratio: Float[Array, ""]
    error: Float[Array, ""]


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
    return end


def reverse(trajectory: Trajectory) -> Trajectory:
    """Where a trajectory ends, ready to go back."""
    return trajectory._replace(momentum=-trajectory.momentum)
