"""How rows of sources come into a compiled program, and what a run makes of their numbers.

    taken(data, places)   the rows at `places`: of arrays by a gather, of sources by one call to the
                          host for all sources in `data` and all chains

A source is a static part of the program, so another source is another program. Floating-point
numbers become those of the run's precision, as they do for arrays in memory.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from temperance._types import Data
from temperance.source import RowSource, sources_in


def dtype_in_run(dtype: Any) -> np.dtype:
    """What numbers of `dtype` become in a run: floats follow its precision."""
    if np.issubdtype(dtype, np.floating):
        return np.dtype(jnp.result_type(float))
    return np.dtype(jax.dtypes.canonicalize_dtype(np.dtype(dtype).newbyteorder("=")))


def struct_of(leaf: Any, num_rows: int | None = None) -> jax.ShapeDtypeStruct:
    """The shape of a leaf in a run, or of `num_rows` of its rows."""
    shape = leaf.shape if num_rows is None else (num_rows, *leaf.shape[1:])
    is_source = isinstance(leaf, RowSource)
    return jax.ShapeDtypeStruct(shape, dtype_in_run(leaf.dtype) if is_source else leaf.dtype)


def first_rows(leaf: Any, count: int) -> Array:
    """The first rows of an array or a source, as a run sees them."""
    if not isinstance(leaf, RowSource):
        return leaf[:count]
    return jnp.asarray(leaf.take(np.arange(count)), dtype_in_run(leaf.dtype))


def spaced_rows(source: RowSource, count: int) -> np.ndarray:
    """At most `count` rows from the first to the last, evenly spaced."""
    num_rows = source.shape[0]
    places = np.linspace(0, num_rows - 1, min(count, num_rows)).round().astype(np.int64)
    return np.ascontiguousarray(source.take(places))


def taken(data: Data, places: Int[Array, " m"]) -> Data:
    """The rows at `places` of arrays and sources alike."""
    leaves, structure = jax.tree.flatten(data)
    sources = sources_in(data)
    found = iter(_fetched(sources, places) if sources else ())
    rows = [
        next(found)
        if isinstance(leaf, RowSource)
        else leaf.at[places].get(mode="promise_in_bounds")
        for leaf in leaves
    ]
    return jax.tree.unflatten(structure, rows)


def _fetched(sources: list[RowSource], places: Array) -> list[Array]:
    """The rows at `places`; under `vmap` the places of all chains come in one call."""
    forms = [struct_of(source, places.shape[0]) for source in sources]
    fetch = _Fetch(tuple(sources), tuple(np.dtype(form.dtype) for form in forms))
    carriers = [_carrier(form) for form in forms]
    found = jax.pure_callback(fetch, carriers, places, vmap_method="expand_dims")
    return [_unpacked(rows, form.dtype) for rows, form in zip(found, forms, strict=True)]


@dataclass(frozen=True)
class _Fetch:
    """What runs on the host. JAX's arrays are not made there: it could wait for itself."""

    sources: tuple[RowSource, ...]
    dtypes: tuple[np.dtype, ...]

    def __call__(self, places: Any) -> list[np.ndarray]:
        places = np.asarray(places)
        both = zip(self.sources, self.dtypes, strict=True)
        return [_packed(source.take(places).astype(dtype, copy=False)) for source, dtype in both]


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
