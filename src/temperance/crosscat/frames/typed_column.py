"""One column of any frame, brought to one of few types.

    truth     bool
    whole     integers, in the type that they came in
    real      float64
    text      int32 codes into `labels`, distinct strings in order
    nothing   no cell is present

`missing` marks the cells that are not there, or is None where all are. NaN, None, NaT, NA and blank
strings are missing; infinities are an error. Dates and durations become real numbers with a
`unit`: days or seconds. `epsilon` is the relative precision that the numbers came with. A column is
`declared` where its frame says that it is categorical.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from temperance.errors import DataError

DAYS, SECONDS = "days since 1970-01-01", "seconds since 1970-01-01"
LASTING, CLOCK = "seconds", "seconds since midnight"
DOUBLE = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class TypedColumn:
    """The cells of a column."""

    name: str
    type: str
    values: np.ndarray
    missing: np.ndarray | None = None
    labels: tuple[str, ...] = ()
    unit: str = ""
    epsilon: float = DOUBLE
    declared: bool = False

    @property
    def num_rows(self) -> int:
        return len(self.values)

    @property
    def num_missing(self) -> int:
        return 0 if self.missing is None else int(self.missing.sum())

    @property
    def present(self) -> np.ndarray:
        """The values of the cells that are there."""
        return self.values if self.missing is None else self.values[~self.missing]


def empty_column(name: str, num_rows: int) -> TypedColumn:
    """A column without a single cell."""
    return TypedColumn(name, "nothing", np.zeros(num_rows, np.uint8), np.ones(num_rows, bool))


def read_numbers(name: str, array: np.ndarray, missing: np.ndarray | None = None) -> TypedColumn:
    """Truth values, integers or floating point."""
    match array.dtype.kind:
        case "b":
            return _settled(TypedColumn(name, "truth", array, missing))
        case "f":
            return _reals(name, array, missing)
        case "u" if array.dtype.itemsize == 8 and array.size and array.max() > 2**63 - 1:
            return _reals(name, array.astype(np.float64), missing)
        case _:
            return _settled(TypedColumn(name, "whole", array, missing))


def read_times(
    name: str, array: np.ndarray, missing: np.ndarray | None = None, unit: str = ""
) -> TypedColumn:
    """Days or seconds, from datetime64 or timedelta64. NaT is missing."""
    gone = np.isnat(array)
    if missing is not None:
        gone |= missing
    base, step = np.datetime_data(array.dtype)
    moments = array.dtype.kind == "M"
    if base == "generic" or (base in ("Y", "M") and not moments):
        raise DataError(f"column {name!r}: {array.dtype} has no fixed length; convert it to days")
    if moments and base in ("Y", "M", "W", "D"):
        numbers, unit = array.astype("M8[D]").astype(np.float64), unit or DAYS
    else:
        tick = np.timedelta64(step, base) / np.timedelta64(1, "s")
        whole = array.view(np.int64)
        # Division by a whole number of ticks rounds once.
        numbers = whole * tick if tick >= 1 else whole / np.round(1 / tick)
        unit = unit or (SECONDS if moments else LASTING)
    return _settled(TypedColumn(name, "real", np.where(gone, 0.0, numbers), gone, unit=unit))


def read_labels(
    name: str, codes: np.ndarray, labels: list[Any], missing: np.ndarray | None = None
) -> TypedColumn:
    """Text by codes into labels; code -1 and blank labels are missing."""
    words = [x if isinstance(x, str) else _decoded(name, x) for x in labels]
    order = sorted({word for word in words if word.strip()})
    rank = {word: place for place, word in enumerate(order)}
    # The last entry is for code -1.
    places = np.array([rank.get(word, -1) for word in words] + [-1], dtype=np.int32)
    found = places[codes]
    gone = found < 0
    if missing is not None:
        gone |= missing
    found[gone] = 0
    return _settled(TypedColumn(name, "text", found, gone, tuple(order)))


def short(cell: Any) -> str:
    """A cell as a message shows it."""
    shown = repr(cell)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _reals(name: str, array: np.ndarray, missing: np.ndarray | None) -> TypedColumn:
    epsilon = max(float(np.finfo(array.dtype).eps), DOUBLE)
    gone = np.isnan(array)
    if missing is not None:
        gone |= missing
    endless = np.isinf(array)
    endless &= ~gone
    if endless.any():
        row = int(np.flatnonzero(endless)[0])
        raise DataError(
            f"column {name!r}: row {row} (from 0) is {array[row]}, one of {int(endless.sum())} "
            "infinite cell(s); put in a number, or leave the cell empty"
        )
    values = array.astype(np.float64, copy=False)
    return _settled(TypedColumn(name, "real", values, gone, epsilon=epsilon))


def _settled(typed: TypedColumn) -> TypedColumn:
    """The same column, with no mask where nothing is missing and no type where all is."""
    if typed.missing is None or not typed.missing.any():
        return replace(typed, missing=None)
    return empty_column(typed.name, typed.num_rows) if typed.missing.all() else typed


def _decoded(name: str, label: bytes) -> str:
    try:
        return label.decode()
    except UnicodeDecodeError:
        raise DataError(
            f"column {name!r}: {short(label)} is not text in UTF-8; decode it, or leave the "
            "column out"
        ) from None
