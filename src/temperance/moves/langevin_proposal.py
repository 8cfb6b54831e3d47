"""Where a step of Metropolis or Langevin leads, and how likely the way back is.

    x* = x + (s^2/2) F F' g(x) + s F z,      z ~ N(0, I),

with g = 0 for a random walk. Seen from x*, the noise that leads back is

    z* = -(z + (s/2) F'(g(x) + g*(x*))),     log q(x* -> x) / q(x -> x*) = (|z|^2 - |z*|^2) / 2,

whatever g and g* are, so long as each is what a step from its own end would use.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Scalar
from temperance.moves.move import Params, colour, whiten

Vector = Float[Array, " d"]


def proposed(flat: Vector, noise: Vector, slope: Vector | None, params: Params) -> Vector:
    """The x* of a step from `flat`; a slope of None is a random walk."""
    size = params.step_size[0]
    if slope is not None:
        noise = noise + 0.5 * size * whiten(params.factor, slope)
    return flat + size * colour(params.factor, noise)


def log_way_back(noise: Vector, here: Vector, there: Vector, params: Params) -> Scalar:
    """Log q(x* -> x) - log q(x -> x*), from the slopes at both ends."""
    back = noise + 0.5 * params.step_size[0] * whiten(params.factor, here + there)
    return 0.5 * jnp.sum(noise**2) - 0.5 * jnp.sum(back**2)
