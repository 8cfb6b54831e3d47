"""How rows of sources come into a compiled program, and what a run makes of their numbers.

    taken(data, places)   the rows at `places`: of arrays by a gather, of sources by one call to the
                          host for all sources in `data` and all chains

A program knows a source by its shape, its dtype and a number, and the number is an argument: data
of the same shape in another file run the same program. Floating-point numbers become those of the
run's precision, as they do for arrays in memory.
"""

import functools
import itertools
from typing import Any
from weakref import WeakValueDictionary

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from temperance._types import Data
from temperance.rows.source import RowSource, left_in_place

_counter = itertools.count()
_by_number: WeakValueDictionary[int, RowSource] = WeakValueDictionary()


class _Held:
    """A source that lives as long as whoever reads it, and equals every other of its form.

    It is a static part of programs, which must not depend on more of it than they are compiled for.
    """

    def __init__(self, source: RowSource):
        self.source = source
        self.form = source.shape, source.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.form == self.form

    def __hash__(self) -> int:
        return hash(self.form)


class RemoteRows(eqx.Module):
    """A source as a program knows it."""

    number: Int[Array, ""]
    held: _Held = eqx.field(static=True)

    def __init__(self, source: RowSource):
        number = next(_counter)
        _by_number[number] = source
        self.number, self.held = jnp.asarray(number, jnp.int32), _Held(source)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.held.source.shape

    @property
    def dtype(self) -> np.dtype:
        return dtype_in_run(self.held.source.dtype)


def remote(data: Data, load: Any) -> Data:
    """`data` for a program: sources by their number, every other leaf as `load` makes it."""
    kept = left_in_place(data, load)
    return jax.tree.map(
        lambda leaf: RemoteRows(leaf) if isinstance(leaf, RowSource) else leaf, kept
    )


def is_remote(leaf: Any) -> bool:
    """Whether a node of a program's data is a source."""
    return isinstance(leaf, RemoteRows)


def sources_in(tree: PyTree) -> list[RowSource]:
    """Every source that a program with this argument may read."""
    leaves = jax.tree.leaves(tree, is_leaf=is_remote)
    return [leaf.held.source for leaf in leaves if is_remote(leaf)]


# -- what a run sees -----------------------------------------------------------------------------


def dtype_in_run(dtype: Any) -> np.dtype:
    """What numbers of `dtype` become in a run: floats follow its precision."""
    if np.issubdtype(dtype, np.floating):
        return np.dtype(jnp.result_type(float))
    return np.dtype(jax.dtypes.canonicalize_dtype(np.dtype(dtype).newbyteorder("=")))


def struct_of(leaf: Any, num_rows: int | None = None) -> jax.ShapeDtypeStruct:
    """The shape of an array or a source in a run, or of `num_rows` of its rows."""
    shape = leaf.shape if num_rows is None else (num_rows, *leaf.shape[1:])
    dtype = dtype_in_run(leaf.dtype) if isinstance(leaf, RowSource) else leaf.dtype
    return jax.ShapeDtypeStruct(shape, dtype)


def first_rows(leaf: Any, count: int) -> Array:
    """The first rows of an array or a source in a run."""
    if not isinstance(leaf, RowSource):
        return leaf[:count]
    return jnp.asarray(leaf.take(np.arange(count)), dtype_in_run(leaf.dtype))


# -- inside a program ----------------------------------------------------------------------------


def taken(data: Data, places: Int[Array, " m"]) -> Data:
    """The rows at `places` of arrays and sources alike."""
    leaves, structure = jax.tree.flatten(data, is_leaf=is_remote)
    found = iter(_fetched([leaf for leaf in leaves if is_remote(leaf)], places))
    rows = [
        next(found) if is_remote(leaf) else leaf.at[places].get(mode="promise_in_bounds")
        for leaf in leaves
    ]
    return jax.tree.unflatten(structure, rows)


def _fetched(remotes: list[RemoteRows], places: Array) -> list[Array]:
    """The rows at `places`; under `vmap` the places of all chains come in one call."""
    if not remotes:
        return []
    forms = [struct_of(leaf, places.shape[0]) for leaf in remotes]
    read = functools.partial(_read, tuple(np.dtype(form.dtype) for form in forms))
    numbers = [leaf.number for leaf in remotes]
    found = jax.pure_callback(
        read, [_carrier(form) for form in forms], numbers, places, vmap_method="expand_dims"
    )
    return [_unpacked(rows, form.dtype) for rows, form in zip(found, forms, strict=True)]


def _read(dtypes: tuple[np.dtype, ...], numbers: Any, places: Any) -> list[np.ndarray]:
    """What runs on the host. JAX's arrays are not made there: it could wait for itself."""
    places = np.asarray(places)
    sources = [_by_number[np.asarray(number).item()] for number in numbers]
    return [
        _packed(source.take(places).astype(dtype, copy=False))
        for source, dtype in zip(sources, dtypes, strict=True)
    ]


# The thread that calls back does not know that a run is in double precision, and JAX would cut what
# it returns to 32 bits. So 64 bits travel as two halves.


def _carrier(form: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    if form.dtype.itemsize < 8:
        return form
    return jax.ShapeDtypeStruct((*form.shape, 2), jnp.uint32)


def _packed(rows: np.ndarray) -> np.ndarray:
    return rows if rows.itemsize < 8 else np.ascontiguousarray(rows)[..., None].view(np.uint32)


def _unpacked(rows: Array, dtype: Any) -> Array:
    return rows if rows.dtype == dtype else jax.lax.bitcast_convert_type(rows, dtype)
