"""What a rung remembers of where it was: for each energy ring, the last few of its states.

    points      states with all that is known of them, (rings, capacity, ...)
    written     how many states each ring was ever given

A ring is a buffer that begins again at its start when it is full: state number n lies at
n mod capacity, and the oldest is the next to go. Writing one state touches one place and copies
nothing, under `jit` and in a loop. A draw is uniform over the states that a ring holds.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from temperance._types import Point


class Reservoir(NamedTuple):
    """The rings of one rung."""

    points: Point
    written: Int[Array, " rings"]

    @property
    def capacity(self) -> int:
        return self.points.components.shape[1]

    @property
    def held(self) -> Int[Array, " rings"]:
        """How many states each ring holds."""
        return jnp.minimum(self.written, self.capacity)


def empty(point: PyTree, num_rings: int, capacity: int) -> Reservoir:
    """Rings without a state in them, for points that look like `point`."""
    return Reservoir(
        jax.tree.map(
            lambda leaf: jnp.zeros((num_rings, capacity, *jnp.shape(leaf)), leaf.dtype), point
        ),
        jnp.zeros((num_rings,), int),
    )


def add(
    reservoir: Reservoir, ring: Int[Array, ""], point: Point, allowed: Bool[Array, ""]
) -> Reservoir:
    """With `point` in `ring`, in place of the oldest if it is full; as it was if not `allowed`."""
    # A place beyond the end is not written to, so that nothing has to choose between two buffers.
    slot = jnp.where(allowed, reservoir.written[ring] % reservoir.capacity, reservoir.capacity)
    points = jax.tree.map(
        lambda kept, new: kept.at[ring, slot].set(new, mode="drop"), reservoir.points, point
    )
    return Reservoir(points, reservoir.written.at[ring].add(allowed.astype(int)))


def draw(
    uniform: Float[Array, ""], reservoir: Reservoir, ring: Int[Array, ""]
) -> tuple[Point, Bool[Array, ""]]:
    """One of the states that `ring` holds, and whether it holds any; of none, zeros.

    `uniform` is uniform on [0, 1), and is all the randomness that there is.
    """
    held = reservoir.held[ring]
    slot = jnp.minimum((uniform * held).astype(int), held - 1)
    slot = jnp.maximum(slot, 0)
    return jax.tree.map(lambda kept: kept[ring, slot], reservoir.points), held > 0
