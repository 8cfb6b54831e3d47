"""How a position's pytree lies in one vector, and what its leaves are called.

Moves work on vectors, people on named arrays. A `Layout` is the static description between them;
two layouts of the same structure are equal, so a program compiled for one serves the other.
"""

from collections.abc import Callable
from math import prod
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PyTree

from temperance._types import Position, Scalar
from temperance.errors import PositionError


@runtime_checkable
class InPieces(Protocol):
    """A vector that is kept leaf by leaf, such as `Apart`."""

    def pieces(self) -> list[Array]: ...


class Layout(eqx.Module):
    """The structure, shapes and names of a position's leaves."""

    structure: Any = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, position: PyTree) -> "Layout":
        """The layout of `position`, if every leaf of it is a real array."""
        leaves, structure = jax.tree.flatten_with_path(position)
        if not leaves:
            raise PositionError("the position has no arrays in it")
        names = tuple(_name(path) for path, _ in leaves)
        for name, (_, leaf) in zip(names, leaves, strict=True):
            dtype = np.dtype(getattr(leaf, "dtype", None) or np.asarray(leaf).dtype)
            if not np.issubdtype(dtype, np.floating):
                raise PositionError(
                    f"position leaf {name!r} has dtype {dtype}: the moves here propose real "
                    "values; give a float array, or a model in which it is summed out"
                )
        if not sum(prod(np.shape(leaf)) for _, leaf in leaves):
            raise PositionError("the position's arrays are all empty: there is nothing to draw")
        if len(set(names)) < len(names):
            raise PositionError(f"position leaves share a name: {names}")
        return cls(structure, tuple(np.shape(leaf) for _, leaf in leaves), names)

    @property
    def dimension(self) -> int:
        return sum(prod(shape) for shape in self.shapes)

    def ravel(self, position: PyTree[ArrayLike]) -> Float[Array, " d"]:
        leaves, structure = jax.tree.flatten(position)
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        if structure != self.structure or shapes != self.shapes:
            raise PositionError(
                f"a position has leaves of shapes {shapes}, others have {self.shapes}: "
                "every starting point must look like the first"
            )
        return jnp.concatenate([jnp.ravel(jnp.asarray(leaf, float)) for leaf in leaves])

    def unravel(self, vector: "Float[Array, ' d'] | InPieces") -> Position:
        if isinstance(vector, InPieces):
            pieces = vector.pieces()
        else:
            stops = np.cumsum([prod(shape) for shape in self.shapes])
            pieces = [
                vector[stop - prod(shape) : stop]
                for stop, shape in zip(stops, self.shapes, strict=True)
            ]
        leaves = [piece.reshape(shape) for piece, shape in zip(pieces, self.shapes, strict=True)]
        return jax.tree.unflatten(self.structure, leaves)

    def split(self, draws: np.ndarray) -> dict[str, np.ndarray]:
        """Named arrays from vectors on the last axis of `draws`."""
        named, start = {}, 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            stop = start + prod(shape)
            named[name] = draws[..., start:stop].reshape(draws.shape[:-1] + shape)
            start = stop
        return named


class OnVector(eqx.Module):
    """A log density of positions, as one of vectors."""

    density: Callable[..., Scalar]
    layout: Layout

    def __call__(self, vector: Float[Array, " d"] | InPieces) -> Scalar:
        return self.density(self.layout.unravel(vector))


class DrawVector(eqx.Module):
    """A sampler of positions, as one of vectors."""

    draw: Callable[..., Position]
    layout: Layout

    def __call__(self, key: Any) -> Float[Array, " d"]:
        return self.layout.ravel(self.draw(key))


def _name(path: tuple[Any, ...]) -> str:
    parts = [str(getattr(p, "key", getattr(p, "name", getattr(p, "idx", p)))) for p in path]
    return "_".join(parts) if parts else "x"
