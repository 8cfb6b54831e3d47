"""Files of rows, opened and not read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from temperance.errors import ArgumentError, DataError, FileFormatError
from temperance.rows.parquet import ParquetRows, parquet_columns
from temperance.rows.source import CACHE_BYTES, ArrayRows, RowSource, ZarrRows

ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")


def open_rows(
    path: str | Path, columns: Sequence[str] | None = None, *, cache_bytes: int = CACHE_BYTES
) -> Any:
    """Rows of a file, for a `Problem`'s data, of which a mini-batch method reads what it uses.

    - `.npy`: a read-only `numpy.memmap`
    - `.zarr`: a source for an array, or a dictionary of them for a group of arrays
    - `.parquet`: a dictionary of sources, one a column; needs the extra `parquet`

    `columns` names the arrays of a group or the columns that are wanted; without it, all of them.
    Of zarr and parquet whole groups of rows are read, and those used last are kept during a run, up
    to `cache_bytes` in all.
    """
    path = Path(path)
    if isinstance(columns, str):
        raise ArgumentError(f"columns: wanted a list of names, got {columns!r}: [{columns!r}]")
    if not path.exists():
        raise FileFormatError(f"{path}: there is no such file")
    if path.suffix == ".npy":
        return _npy(path, columns)
    if path.suffix == ".zarr" or any((path / mark).exists() for mark in ZARR_MARKS):
        return _zarr(path, columns, cache_bytes)
    if path.suffix in (".parquet", ".pq"):
        return _parquet(path, columns, cache_bytes)
    raise FileFormatError(
        f"{path}: wanted a .npy, .zarr or .parquet file; for anything else that is indexed like a "
        "NumPy array, wrap it in ArrayRows"
    )


def _npy(path: Path, columns: Sequence[str] | None) -> np.memmap:
    _refuse_columns(path, columns)
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(f"{path}: cannot be mapped as a .npy file ({error})") from error
    ArrayRows(found)  # says what is wrong with it
    return found


def _zarr(
    path: Path, columns: Sequence[str] | None, cache_bytes: int
) -> RowSource | dict[str, RowSource]:
    import zarr
    import zarr.errors

    try:
        found = zarr.open(path, mode="r")
    except (OSError, ValueError, KeyError, TypeError, zarr.errors.BaseZarrError) as error:
        raise FileFormatError(f"{path}: cannot be read as zarr ({error})") from error
    if isinstance(found, zarr.Array):
        _refuse_columns(path, columns)
        return ZarrRows(found, cache_bytes)
    arrays = dict(found.arrays())
    chosen = _chosen(path, columns, sorted(arrays))
    return {name: ZarrRows(arrays[name], cache_bytes // len(chosen)) for name in chosen}


def _parquet(path: Path, columns: Sequence[str] | None, cache_bytes: int) -> dict[str, RowSource]:
    try:
        import pyarrow.lib as arrow
    except ImportError as error:
        raise DataError(
            f"{path}: reading parquet needs pyarrow: pip install 'temperance[parquet]'"
        ) from error
    try:
        names, metadata = parquet_columns(path)
    except (arrow.ArrowException, OSError) as error:
        raise FileFormatError(f"{path}: cannot be read as parquet ({error})") from error
    chosen = _chosen(path, columns, names)
    share = cache_bytes // len(chosen)
    return {name: ParquetRows(path, name, metadata, share) for name in chosen}


def _refuse_columns(path: Path, columns: Sequence[str] | None) -> None:
    if columns is not None:
        raise ArgumentError(f"columns: {path} is one array without names, got {list(columns)}")


def _chosen(path: Path, columns: Sequence[str] | None, names: list[str]) -> list[str]:
    chosen = names if columns is None else list(columns)
    missing = [name for name in chosen if name not in names]
    if missing:
        raise DataError(f"columns: {path} has no {missing}, only {names}")
    if not chosen:
        raise DataError(f"{path}: there are no arrays in it")
    return chosen
