"""Columns of pandas, polars and Arrow, as narwhals shows them, as typed columns."""

from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from temperance.crosscat.frames.arrays import read_array
from temperance.crosscat.frames.typed_column import TypedColumn, empty_column, read_labels, short
from temperance.errors import DataError

# Cells of text that are held as Python's strings together.
CHUNK = 65_536


def read_series(name: str, series: nw.Series[Any]) -> TypedColumn:
    """The cells of a series."""
    missing = series.is_null().to_numpy()
    if missing.all():
        return empty_column(name, len(missing))
    dtype = series.dtype
    if dtype.is_nested():
        cells = [short(cell) for cell in series.drop_nulls().head(2).to_list()]
        raise DataError(
            f"column {name!r}: cells are nested ({dtype}), such as {' and '.join(cells)}; unpack "
            "them into columns, or leave the column out"
        )
    declared = isinstance(dtype, nw.Categorical | nw.Enum)
    if missing.any() and (dtype.is_integer() or dtype.is_float()):
        series = series.fill_null(0)
    elif missing.any() and dtype == nw.Boolean:
        series = series.fill_null(False)
    if dtype == nw.String and (words := _read_words(name, series, missing)):
        return words
    found = read_array(name, np.asarray(series.to_numpy()), missing)
    return replace(found, declared=True) if declared else found


def _read_words(name: str, series: nw.Series[Any], missing: np.ndarray) -> TypedColumn | None:
    """Text, a part of its cells at a time; None if it is not all text after all."""
    import pandas as pd

    codes = np.empty(len(missing), np.int32)
    seen: dict[str, int] = {}
    for start in range(0, len(missing), CHUNK):
        here = slice(start, start + CHUNK)
        part = np.array(series[here].to_numpy(), dtype=object)
        part[missing[here]] = None
        found, labels = pd.factorize(part)
        if not all(isinstance(label, str) for label in labels):
            return None
        known = [seen.setdefault(label, len(seen)) for label in labels]
        codes[here] = np.array([*known, -1], np.int32)[found]
    return read_labels(name, codes, list(seen), missing)
