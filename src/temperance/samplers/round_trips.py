"""How often a chain has been at both ends of the temperatures: hot, target, hot again."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from temperance._types import Scalar

UPWARD, DOWNWARD = 1, -1
# What counts as an end, where temperatures are continuous.
HOT, COLD = 0.05, 0.95


class Trips(NamedTuple):
    """Where the chain is heading, and the round trips it has finished."""

    heading: Int[Array, ""]
    finished: Int[Array, ""]


def none_yet() -> Trips:
    """Before the first step, on the way to the hot end."""
    return Trips(jnp.zeros((), int), jnp.zeros((), int))


def travelled(trips: Trips, beta: Scalar) -> Trips:
    """After a step that ended at `beta`."""
    hot, cold = beta <= HOT, beta >= COLD
    done = hot & (trips.heading == DOWNWARD)
    back = jnp.where(cold & (trips.heading == UPWARD), DOWNWARD, trips.heading)
    return Trips(jnp.where(hot, UPWARD, back), trips.finished + done.astype(int))
