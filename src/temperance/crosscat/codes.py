"""Codes of known values: 0 .. V - 1 in the order of a column, V never seen, V + 1 missing."""

from typing import Any

import numpy as np

from temperance.crosscat.plain import Plain
from temperance.crosscat.schema import Column
from temperance.errors import DataError

# Known integers within so wide a range are looked up in a table.
RANGE = 1 << 16


def encode_values(plain: Plain, column: Column, out: np.ndarray) -> None:
    """Write the codes of a column's cells."""
    size = len(column.values)
    if plain.type == "nothing" or not size:
        out[:] = size
    elif plain.type == "text":
        table = np.array([*_codes_of_labels(plain, column)], dtype=np.int64)
        out[:] = table[plain.values]
    else:
        _encode_numbers(plain, column, out)
    if plain.missing is not None:
        out[plain.missing] = size + 1


def _codes_of_labels(plain: Plain, column: Column) -> list[int]:
    size = len(column.values)
    if isinstance(column.values[0], str):
        codes = {value: code for code, value in enumerate(column.values)}
        return [codes.get(label, size) for label in plain.labels]
    numbers = {float(value): code for code, value in enumerate(column.values)}
    return [numbers.get(_number(label, column), size) for label in plain.labels]


def _number(label: str, column: Column) -> float:
    truths = {"true": 1.0, "false": 0.0}
    try:
        return truths[label.lower()] if label.lower() in truths else float(label)
    except ValueError:
        raise DataError(
            f"column {column.name!r}: got the text {label!r}, and the known values are numbers, "
            f"such as {column.values[0]!r}"
        ) from None


def _encode_numbers(plain: Plain, column: Column, out: np.ndarray) -> None:
    values: Any = column.values
    if isinstance(values[0], str):
        distinct, back = np.unique(plain.values, return_inverse=True)
        codes = {value: code for code, value in enumerate(values)}
        words = [_word(value) for value in distinct.tolist()]
        out[:] = np.array([codes.get(word, len(values)) for word in words])[back]
        return
    known = np.array(values)
    cells = plain.values
    if known.dtype.kind in "bi" and cells.dtype.kind in "biu":
        low, high = int(known.min()), int(known.max())
        if high - low < RANGE:
            table = np.full(high - low + 3, len(values), dtype=np.int32)
            table[known.astype(np.int64) - low + 1] = np.arange(len(values))
            offsets = np.clip(cells.astype(np.int64), low - 1, high + 1)
            offsets -= low - 1
            out[:] = table[offsets]
            return
    else:
        known, cells = known.astype(np.float64), cells.astype(np.float64)
    order = np.argsort(known)
    ordered = known[order]
    places = np.minimum(np.searchsorted(ordered, cells), len(values) - 1)
    out[:] = np.where(ordered[places] == cells, order[places], len(values))


def _word(value: float | int) -> str:
    return str(int(value)) if value == int(value) else str(value)
