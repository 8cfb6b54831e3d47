"""Columns of a parquet file as sources of rows.

A parquet file keeps its rows in groups, and a group's values column by column: of a group that
holds some of the rows, only the columns that are asked for are read.
"""

from pathlib import Path
from typing import Any

import numpy as np

from temperance.errors import DataError
from temperance.rows.source import GroupedRows


class ParquetRows(GroupedRows):
    """One column of a parquet file, by its groups of rows."""

    def __init__(self, path: Path, name: str, metadata: Any, cache_bytes: int):
        from pyarrow import parquet

        # A file of its own, since two columns may be read at once.
        self.file = parquet.ParquetFile(path, metadata=metadata)
        self.path, self.name = path, name
        self._dtype = _dtype(self.file.schema_arrow.field(name).type)
        groups = range(metadata.num_row_groups)
        super().__init__([metadata.row_group(g).num_rows for g in groups], cache_bytes)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.file.metadata.num_rows,)

    @property
    def dtype(self) -> np.dtype:
        return self._dtype

    def group(self, number: int) -> np.ndarray:
        table = self.file.read_row_group(number, columns=[self.name], use_threads=False)
        found = table.column(0)
        if found.null_count:
            raise DataError(
                f"{self.path}: column {self.name!r} has {found.null_count} missing value(s) in row "
                f"group {number}: fill or drop them before sampling"
            )
        return found.to_numpy()

    def __repr__(self) -> str:
        return f"ParquetRows({self.name!r}, shape={self.shape}, dtype={self.dtype})"


def parquet_columns(path: Path) -> tuple[list[str], Any]:
    """The names of a file's columns, and its metadata."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        return list(file.schema_arrow.names), file.metadata


def _dtype(kind: Any) -> np.dtype:
    try:
        return np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:  # how Arrow says that NumPy has no such type
        return np.dtype(object)
