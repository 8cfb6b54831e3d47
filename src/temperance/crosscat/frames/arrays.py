"""One-dimensional NumPy arrays of any dtype, and of Python objects, as typed columns.

The objects of a column must all be of one sort. Whole and real numbers go together. Text and
numbers do not, nor do truth values and numbers: there a cell is more likely to be wrong than to be
meant, so the message shows one of each.
"""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from temperance.crosscat.frames.typed_column import (
    CLOCK,
    TypedColumn,
    empty_column,
    read_labels,
    read_numbers,
    read_times,
    short,
)
from temperance.errors import DataError


def read_array(name: str, array: np.ndarray, missing: np.ndarray | None = None) -> TypedColumn:
    """The column that an array holds; masked cells are missing."""
    if np.ma.isMaskedArray(array):
        mask = np.ma.getmaskarray(array)
        missing = mask if missing is None else missing | mask
        array = np.ma.getdata(array)
    if array.ndim != 1:
        raise DataError(
            f"column {name!r}: wanted one number or text a cell, got arrays of shape "
            f"{array.shape[1:]}; make a column of each of their entries"
        )
    match array.dtype.kind:
        case "b" | "i" | "u" | "f":
            return read_numbers(name, array, missing)
        case "U" | "S" | "T" | "O":
            return read_objects(name, array.astype(object, copy=False), missing)
        case "M" | "m":
            return read_times(name, array, missing)
        case _:
            raise DataError(
                f"column {name!r}: cells of dtype {array.dtype} are neither numbers nor text; "
                "convert them or leave the column out"
            )


MICROSECONDS = 1_000_000
# Cells whose types are looked at together.
CHUNK = 65_536

# In order: a bool is an int, a datetime is a date.
SORTS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "truth"),
    ((np.timedelta64, timedelta), "lasting"),
    ((int, np.integer), "whole"),
    ((float, np.floating, Decimal), "real"),
    ((str, bytes), "text"),
    ((datetime, np.datetime64), "moment"),
    ((date,), "day"),
    ((time,), "clock"),
)


def read_objects(name: str, array: np.ndarray, missing: np.ndarray | None = None) -> TypedColumn:
    """The column that an array of objects holds."""
    gone = _missing(array)
    if missing is not None:
        gone |= missing
    here = array[~gone]
    firsts = _first_of_types(here)
    sorts = {_sort(kind) for kind in firsts}
    if not sorts:
        return empty_column(name, len(array))
    if sorts == {"text"}:
        import pandas as pd

        codes, labels = pd.factorize(here)
        return read_labels(name, _scattered(codes, gone), list(labels), gone)
    if sorts <= {"whole", "real"}:
        return read_numbers(name, _scattered(_numbers(here, sorts), gone), gone)
    if sorts == {"truth"}:
        return read_numbers(name, _scattered(here.astype(bool), gone), gone)
    if len(sorts) == 1 and (convert := TIMES.get(next(iter(sorts)))):
        unit = CLOCK if sorts == {"clock"} else ""
        return read_times(name, _scattered(convert(here), gone), gone, unit)
    raise _mixed(name, firsts)


def _mixed(name: str, firsts: dict[type, Any]) -> DataError:
    (one, first), *rest = firsts.items()
    if not rest:
        return DataError(
            f"column {name!r}: cells are of type {one.__name__}, such as {short(first)}; wanted a "
            "number, text, a truth value or a date in each: unpack them, or leave the column out"
        )
    other, second = next(((k, x) for k, x in rest if _sort(k) != _sort(one)), rest[0])
    return DataError(
        f"column {name!r}: cells of several types, such as {short(first)} ({one.__name__}) and "
        f"{short(second)} ({other.__name__}); make them all numbers or all text"
    )


def _scattered(here: np.ndarray, missing: np.ndarray) -> np.ndarray:
    values = np.zeros(len(missing), here.dtype)
    values[~missing] = here
    return values


def _numbers(here: np.ndarray, sorts: set[str]) -> np.ndarray:
    if sorts == {"whole"}:
        try:
            return here.astype(np.int64)
        except OverflowError:
            pass
    return here.astype(np.float64)


def _missing(array: np.ndarray) -> np.ndarray:
    import pandas as pd

    return np.asarray(pd.isna(array), dtype=bool)


def _first_of_types(cells: np.ndarray) -> dict[type, Any]:
    firsts: dict[type, Any] = {}
    for start in range(0, len(cells), CHUNK):
        part = cells[start : start + CHUNK]
        for kind in dict.fromkeys(map(type, part)):
            if kind in firsts:
                continue
            firsts[kind] = next(cell for cell in part if type(cell) is kind)
    return firsts


def _sort(kind: type) -> str:
    for parents, sort in SORTS:
        if issubclass(kind, parents):
            return sort
    return kind.__name__


def _moments(cells: np.ndarray) -> np.ndarray:
    import pandas as pd

    return np.asarray(pd.to_datetime(cells, utc=True).tz_localize(None)).astype("M8[us]")


def _clocks(cells: np.ndarray) -> np.ndarray:
    seconds = np.array([60 * (60 * x.hour + x.minute) + x.second for x in cells])
    fractions = np.array([x.microsecond for x in cells])
    return (seconds * MICROSECONDS + fractions).astype("m8[us]")


TIMES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "lasting": lambda cells: cells.astype("m8[us]"),
    "moment": _moments,
    "day": lambda cells: cells.astype("M8[D]"),
    "clock": _clocks,
}
