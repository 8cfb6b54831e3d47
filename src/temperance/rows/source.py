"""Sources: rows that stay where they are, and of which only those that are asked for are read.

A source stands in a problem's `data` where an array would. It knows its shape, with the rows on the
leading axis, and its dtype; `take(places)` reads the rows at `places`. For methods that look at a
few rows a step, such as `mint`, nothing else is ever read, so that data may be larger than memory.

    ArrayRows      any row by itself: a file mapped into memory, or what is indexed like one
    GroupedRows    rows in groups of which one row costs all: chunks of zarr, row groups of parquet.
                   The groups last read are kept, up to a number of bytes

A row that several chains ask for is read once, and so is a group.
"""

import abc
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from temperance._types import Data
from temperance.errors import DataError

# Kinds of dtype that rows may have: truth values, whole numbers, floating point.
NUMBERS = "biuf"
# Groups of rows that a source keeps in memory, in bytes.
CACHE_BYTES = 2**28


class RowSource(abc.ABC):
    """Rows that are read as they are needed.

    A subclass says its `shape`, its `dtype` and how to read the rows `at` given numbers. The same
    number must give the same row for as long as a run takes: a step compares two points by rows
    that it may read twice, and a source that changes in between gives draws of no density at all.
    """

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Rows, and then the shape of one."""

    @property
    @abc.abstractmethod
    def dtype(self) -> np.dtype:
        """What the rows are numbers of."""

    @abc.abstractmethod
    def at(self, rows: np.ndarray) -> np.ndarray:
        """The rows of these numbers, which are distinct and increase."""

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def take(self, places: np.ndarray) -> np.ndarray:
        """The rows at `places`, an array of any shape whose axes lead those of a row."""
        places = np.asarray(places)
        rows, back = np.unique(places, return_inverse=True)
        found = np.asarray(self.at(rows))
        wanted = (rows.size, *self.shape[1:])
        if found.shape != wanted:
            raise DataError(
                f"{self!r}: asked for {rows.size} rows it gave shape {found.shape}, wanted {wanted}"
            )
        return np.asarray(found[back.reshape(places.shape)])

    def let_go(self) -> None:
        """Forget rows that were kept to be read faster. Called at the end of a run."""
        return

    def read(self) -> np.ndarray:
        """All rows, in memory."""
        return np.asarray(self.at(np.arange(self.shape[0])))

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        # NumPy and JAX call this wherever an array is wanted, and would read everything unasked.
        raise DataError(
            f"{self!r}: an array is wanted here, with all {self.shape[0]} rows in memory; read "
            "them with .read() if they fit"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"


class ArrayRows(RowSource):
    """The rows of anything that is indexed like a NumPy array, such as an `h5py.Dataset`.

    A `numpy.memmap` in a problem's data is taken for one without being asked to.
    """

    def __init__(self, array: Any):
        for name in ("shape", "dtype", "__getitem__"):
            if not hasattr(array, name):
                raise DataError(
                    f"array: wanted something with a shape, a dtype and rows by index, got a "
                    f"{type(array).__name__}"
                )
        if not array.shape:
            raise DataError("array: wanted rows on the leading axis, got a single number")
        self.array = array
        check_numbers(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.array.dtype)

    def at(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.array[rows])


class GroupedRows(RowSource):
    """Rows in groups that are read whole; group g has the rows from starts[g] to starts[g + 1]."""

    def __init__(self, sizes: Any, cache_bytes: int):
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.cache_bytes = cache_bytes
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        # A program may call back from two threads at once.
        self._lock = threading.Lock()
        check_numbers(self)

    @abc.abstractmethod
    def group(self, number: int) -> np.ndarray:
        """All rows of a group."""

    def at(self, rows: np.ndarray) -> np.ndarray:
        found = np.empty((rows.size, *self.shape[1:]), self.dtype)
        # In `rows`, those of group g are from edges[g] to edges[g + 1].
        edges = np.searchsorted(rows, self.starts)
        with self._lock:
            for number in np.flatnonzero(np.diff(edges)):
                here = slice(edges[number], edges[number + 1])
                found[here] = self._group(int(number))[rows[here] - self.starts[number]]
        return found

    def let_go(self) -> None:
        with self._lock:
            self._kept.clear()

    def _group(self, number: int) -> np.ndarray:
        if number not in self._kept:
            self._kept[number] = self.group(number)
        self._kept.move_to_end(number)
        while len(self._kept) > 1 and self._held() > self.cache_bytes:
            self._kept.popitem(last=False)
        return self._kept[number]

    def _held(self) -> int:
        return sum(rows.nbytes for rows in self._kept.values())


class ZarrRows(GroupedRows):
    """The rows of a `zarr.Array`, by its chunks along the leading axis."""

    def __init__(self, array: Any, cache_bytes: int = CACHE_BYTES):
        if not array.shape:
            raise DataError("array: wanted rows on the leading axis, got a single number")
        self.array = array
        num_rows, step = array.shape[0], array.chunks[0]
        super().__init__(np.diff([*range(0, num_rows, step), num_rows]), cache_bytes)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.array.dtype)

    def group(self, number: int) -> np.ndarray:
        return np.asarray(self.array[self.starts[number] : self.starts[number + 1]])


def check_numbers(source: RowSource) -> None:
    """Raise where the rows are not numbers."""
    if source.dtype.kind not in NUMBERS:
        raise DataError(f"{source!r}: wanted real numbers, and {source.dtype} is something else")


def as_source(leaf: Any) -> RowSource | None:
    """The source that a leaf of a problem's data is, if it is one."""
    if isinstance(leaf, RowSource):
        return leaf
    if isinstance(leaf, np.memmap):
        return ArrayRows(leaf)
    # Whoever has an array of zarr has imported it.
    zarr = sys.modules.get("zarr")
    if zarr is not None and isinstance(leaf, zarr.Array):
        return ZarrRows(leaf)
    return None


def left_in_place(data: Data, load: Callable[[Any], Any]) -> Data:
    """`data` with sources as they are, and every other leaf as `load` makes it."""

    def kept(leaf: Any) -> Any:
        source = as_source(leaf)
        return load(leaf) if source is None else source

    return jax.tree.map(kept, data)


def refuse_sources(data: Data, method: str) -> None:
    """Raise where `method` would have to read all rows of a source; files that map are loaded."""
    for leaf in jax.tree.leaves(data):
        source = as_source(leaf)
        if source is not None and not isinstance(leaf, np.memmap):
            raise DataError(
                f"data: method {method!r} needs all rows in memory, and got {source!r}: use "
                "method='mint', which reads a few rows a step, or load the rows, with .read() of "
                "a source or numpy.asarray of an array of zarr"
            )


def spaced_rows(source: RowSource, count: int) -> np.ndarray:
    """At most `count` rows from the first to the last, evenly spaced."""
    num_rows = source.shape[0]
    places = np.linspace(0, num_rows - 1, min(count, num_rows)).round().astype(np.int64)
    return np.ascontiguousarray(source.take(places))
