"""A vector in two pieces: the coordinates that are slow to change, and those that are fast.

A density of named leaves is laid out on a vector, and a vector put together from a slow and a fast
piece hides from a compiler which leaf depends on what. An `Apart` keeps the two pieces, and whoever
lays a vector out takes each leaf from its own: what depends on slow leaves alone can then be seen
to do so.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Position
from temperance.errors import ArgumentError, PositionError, unknown_name
from temperance.problems.layout import Layout


class Apart(eqx.Module):
    """A vector whose leaves lie in two, in the order of the leaves.

    `sizes` are those of the leaves, and `is_fast` says in which piece each of them lies.
    """

    slow: Float[Array, " slow"]
    fast: Float[Array, " fast"]
    sizes: tuple[int, ...] = eqx.field(static=True)
    is_fast: tuple[bool, ...] = eqx.field(static=True)

    def pieces(self) -> list[Array]:
        """The leaves, each as a vector."""
        starts, found = [0, 0], []
        for size, fast in zip(self.sizes, self.is_fast, strict=True):
            piece = self.fast if fast else self.slow
            found.append(piece[starts[fast] : starts[fast] + size])
            starts[fast] += size
        return found

    def whole(self) -> Float[Array, " d"]:
        """The vector in one."""
        return jnp.concatenate(self.pieces())


class Fork(eqx.Module):
    """Where the slow and the fast coordinates of positions of one structure lie.

    A position is a pytree with named leaves or, where samplers work on vectors, one vector laid out
    as `layout` says, perhaps with leaves of the sampler's own after it; those are slow.
    """

    structure: Any = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)  # of the leaves and of the vector's pieces
    is_fast: tuple[bool, ...] = eqx.field(static=True)
    num_pieces: int = eqx.field(static=True)  # of the first leaf, if it is a vector with a layout

    @classmethod
    def of(cls, position: Position, fast: Sequence[str], layout: Layout | None) -> "Fork":
        """The fork of positions like `position`, whose leaves named in `fast` are fast."""
        leaves, structure = jax.tree.flatten(position)
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        named = Layout.of(position) if layout is None else layout
        is_fast = fast_leaves(named, fast)
        sizes = tuple(prod(shape) for shape in named.shapes)
        if layout is None:
            return cls(structure, shapes, sizes, is_fast, 0)
        if shapes[0] != (layout.dimension,):
            raise PositionError(
                f"a position has a first leaf of shape {shapes[0]}, and a vector of "
                f"{layout.dimension} was expected"
            )
        others = tuple(prod(shape) for shape in shapes[1:])
        slow = (False,) * len(others)
        return cls(structure, shapes, sizes + others, is_fast + slow, len(sizes))

    @property
    def fast_index(self) -> np.ndarray:
        """Where the fast coordinates are in the position laid out as one vector."""
        return np.flatnonzero(np.repeat(self.is_fast, self.sizes))

    @property
    def slow_index(self) -> np.ndarray:
        return np.flatnonzero(~np.repeat(self.is_fast, self.sizes))

    def split(self, position: Position) -> tuple[Float[Array, " slow"], Float[Array, " fast"]]:
        """The slow and the fast coordinates of a position."""
        flat = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(position)])
        return flat[self.slow_index], flat[self.fast_index]

    def join(self, slow: Float[Array, " slow"], fast: Float[Array, " fast"]) -> Position:
        """The position, with what is slow kept apart from what is fast."""
        pieces = Apart(slow, fast, self.sizes, self.is_fast).pieces()
        first: list[Any] = []
        if self.num_pieces:
            is_fast = self.is_fast[: self.num_pieces]
            named = list(zip(pieces, is_fast, strict=False))
            slow_part = jnp.concatenate([piece for piece, fast_one in named if not fast_one])
            fast_part = jnp.concatenate([piece for piece, fast_one in named if fast_one])
            first.append(Apart(slow_part, fast_part, self.sizes[: self.num_pieces], is_fast))
        shapes = self.shapes[len(first) :]
        rest = [
            piece.reshape(shape)
            for piece, shape in zip(pieces[self.num_pieces :], shapes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, first + rest)

    def whole(self, slow: Float[Array, " slow"], fast: Float[Array, " fast"]) -> Position:
        """The position as samplers carry it."""
        joined = self.join(slow, fast)
        return jax.tree.map(
            lambda leaf: leaf.whole() if isinstance(leaf, Apart) else leaf,
            joined,
            is_leaf=lambda leaf: isinstance(leaf, Apart),
        )


def fast_leaves(layout: Layout, fast: Sequence[str]) -> tuple[bool, ...]:
    """Which of the leaves are fast; at least one is, and one is not."""
    for name in fast:
        if name not in layout.names:
            raise unknown_name("fast leaf", name, layout.names)
    chosen = tuple(name in fast for name in layout.names)
    if not any(chosen):
        raise ArgumentError(f"fast: name at least one leaf of the position: {layout.names}")
    if all(chosen):
        raise ArgumentError(
            "fast: every leaf of the position is named, and none is left to be slow; where all "
            "is fast an ordinary move is as good"
        )
    return chosen


def seen_by(density: Any, position: Any) -> Any:
    """The position as a density takes it: in two pieces only if it lays vectors out itself."""
    if isinstance(position, Apart) and not hasattr(density, "layout"):
        return position.whole()
    return position
