"""Any table as named columns that are read one at a time.

pandas and polars frames (lazy ones too) and Arrow tables are read through narwhals; NumPy arrays of
two dimensions or with named fields, dictionaries of columns, and lists of rows as they are; CSV and
Parquet files by their path. Only one column at a time is ever converted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from temperance.crosscat.frames.arrays import read_array
from temperance.crosscat.frames.schema import Schema, check_names
from temperance.crosscat.frames.series import read_series
from temperance.crosscat.frames.table_files import ParquetTable, is_parquet, read_csv
from temperance.crosscat.frames.typed_column import TypedColumn, short
from temperance.errors import DataError

WANTED = (
    "wanted a pandas or polars frame, an Arrow table, a NumPy array of two dimensions, a "
    "dictionary of columns, or the path of a CSV or Parquet file"
)


@dataclass(frozen=True)
class OpenFrame:
    """A table with its names in order; `read` gives the cells of a column."""

    names: tuple[str, ...]
    num_rows: int
    read: Callable[[str], TypedColumn]
    backend: str = "pandas"


def open_frame(frame: Any, schema: Schema | None = None) -> OpenFrame:
    """A frame or file, with its names checked.

    Of a CSV file, columns that are text in `schema` are read as text, whatever they look like.
    """
    if isinstance(frame, OpenFrame):
        return frame
    opened = _opened(frame, schema)
    if not opened.names:
        raise DataError(
            f"the table has 0 feature(s) (shape=({opened.num_rows}, 0)) while a minimum of 1 is "
            "required: give it at least one column"
        )
    check_names(opened.names, "table")
    if not opened.num_rows:
        raise DataError(
            f"the table has 0 sample(s) (shape=(0, {len(opened.names)})) while a minimum of 1 is "
            "required: give it at least one row"
        )
    return opened


def build_frame(values: Mapping[str, np.ndarray], backend: str = "pandas") -> Any:
    """A frame of decoded columns: of "pandas", "polars" or "pyarrow"."""
    known: Any = backend
    listed = {name: _with_nulls(array) for name, array in values.items()}
    return nw.from_dict(listed, backend=known).to_native()


def _opened(frame: Any, schema: Schema | None) -> OpenFrame:
    if isinstance(frame, str | Path):
        return _open_file(Path(frame), schema)
    if isinstance(frame, np.ndarray):
        return _open_array(frame)
    if isinstance(frame, Mapping):
        return _open_columns(frame)
    if isinstance(frame, list | tuple):
        return _open_rows(frame)
    if nw.dependencies.is_pandas_dataframe(frame):
        names = [str(name) for name in frame.columns]
        check_names(names, "table")
        frame = frame.set_axis(names, axis=1)
    elif nw.dependencies.is_pyarrow_table(frame):
        check_names(frame.column_names, "table")
    try:
        known = nw.from_native(frame)
    except TypeError:
        raise DataError(f"table: {WANTED}, got {_told(frame)}") from None
    if isinstance(known, nw.LazyFrame):
        known = known.collect()
    return _open_known(known)


def _open_known(frame: nw.DataFrame[Any]) -> OpenFrame:
    def read(name: str) -> TypedColumn:
        return read_series(name, frame.get_column(name))

    backend = str(frame.implementation).removeprefix("Implementation.").lower()
    backend = backend if backend in ("pandas", "polars", "pyarrow") else "pandas"
    return OpenFrame(tuple(frame.columns), len(frame), read, backend)


def _open_file(path: Path, schema: Schema | None) -> OpenFrame:
    if is_parquet(path):
        file = ParquetTable(path)

        def read(name: str) -> TypedColumn:
            return read_series(name, nw.from_native(file.read(name), series_only=True))

        return OpenFrame(file.names, file.num_rows, read)
    columns = () if schema is None else schema.columns
    text = [c.name for c in columns if c.values and isinstance(c.values[0], str)]
    return _open_known(nw.from_native(read_csv(path, text), eager_only=True))


def _open_array(array: np.ndarray) -> OpenFrame:
    if array.dtype.names:
        if array.ndim != 1:
            raise DataError(f"table: wanted rows with named fields, got shape {array.shape}")
        fields = array.dtype.names
        return OpenFrame(fields, len(array), lambda name: read_array(name, array[name]))
    if array.ndim != 2:
        raise DataError(
            f"table: wanted an array of two dimensions, rows by columns, got shape {array.shape}. "
            "Reshape your data: array.reshape(-1, 1) is one column, array.reshape(1, -1) one row"
        )
    places = {f"column_{place}": place for place in range(array.shape[1])}
    return OpenFrame(
        tuple(places), array.shape[0], lambda name: read_array(name, array[:, places[name]])
    )


def _open_columns(columns: Mapping[Any, Any]) -> OpenFrame:
    named = [(str(name), _cells(str(name), cells)) for name, cells in columns.items()]
    check_names([name for name, _ in named], "table")
    lengths = {name: len(cells) for name, cells in named}
    if len(set(lengths.values())) > 1:
        shortest, longest = (
            min(lengths, key=lengths.__getitem__),
            max(lengths, key=lengths.__getitem__),
        )
        raise DataError(
            f"table: column {shortest!r} has {lengths[shortest]} rows and column {longest!r} has "
            f"{lengths[longest]}; make them as long as each other"
        )
    columns_by_name = dict(named)

    def read(name: str) -> TypedColumn:
        cells = columns_by_name[name]
        if isinstance(cells, nw.Series):
            return read_series(name, cells)
        return read_array(name, cells)

    return OpenFrame(tuple(columns_by_name), next(iter(lengths.values()), 0), read)


def _open_rows(rows: list[Any] | tuple[Any, ...]) -> OpenFrame:
    if rows and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        return _open_columns({name: _objects(row.get(name) for row in rows) for name in names})
    if not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        raise DataError(f"table: {WANTED}, got {_told(rows)}. Reshape your data")
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise DataError(f"table: rows of {min(widths)} cells and rows of {max(widths)} in one list")
    columns = zip(*rows, strict=True)
    return _open_columns({f"column_{p}": _objects(cells) for p, cells in enumerate(columns)})


def _objects(cells: Iterable[Any]) -> np.ndarray:
    listed = list(cells)
    found = np.empty(len(listed), object)
    found[:] = listed
    return found


def _cells(name: str, cells: Any) -> np.ndarray | nw.Series[Any]:
    if isinstance(cells, np.ndarray) and cells.ndim:
        return cells
    known = nw.from_native(cells, series_only=True, pass_through=True)
    if isinstance(known, nw.Series):
        return known
    if isinstance(cells, str | bytes) or not hasattr(cells, "__len__"):
        raise DataError(
            f"column {name!r}: wanted an array or a list of cells, got {short(cells)}; put it in "
            "a list for a table of one row"
        )
    return np.asarray(cells) if hasattr(cells, "__array__") else _objects(cells)


def _with_nulls(array: np.ndarray) -> Any:
    return array.tolist() if array.dtype.kind == "O" else array


def _told(frame: Any) -> str:
    return f"a {type(frame).__module__}.{type(frame).__qualname__}"
