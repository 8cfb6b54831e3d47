"""From codes and standardised numbers back to what the user's table would hold.

Missing cells and values never seen come back as None, or as NaN in a column of numbers. Numbers of
a grid are rounded to it, so that whole numbers come back whole. Dates and durations come back as
NumPy's.
"""

from typing import Any

import numpy as np

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.encoding.resolution import WHOLE, round_to
from temperance.crosscat.frames.schema import Column, Schema
from temperance.crosscat.frames.typed_column import DAYS, SECONDS

MICROSECONDS = 1_000_000


def decode(cells: Cells, schema: Schema) -> dict[str, np.ndarray]:
    """The columns of encoded cells, by name."""
    features = Features.of(schema)
    found = {}
    for number, column in enumerate(schema.columns):
        here = [
            cells[features.family[feature]][:, features.place[feature]]
            for feature in features.of_column(number)
        ]
        found[column.name] = decode_column(column, *here)
    return found


def decode_column(column: Column, *features: np.ndarray) -> np.ndarray:
    """The values of a column from its one or two features."""
    match column.kind:
        case "real":
            return decode_reals(column, features[0])
        case "count":
            return _with_missing(features[0].astype(np.int64), features[0] < 0)
        case "spike":
            spiked, reals = features
            numbers = _numbers(column, reals)
            return _finished(column, np.where(spiked == 1, column.spike, numbers))
        case _:
            return decode_codes(column, features[0])


def decode_codes(column: Column, codes: np.ndarray) -> np.ndarray:
    """Known values by their codes; anything else is None."""
    values: Any = column.values
    codes = np.asarray(codes, dtype=np.int64)
    known = (codes >= 0) & (codes < len(values))
    if known.all() and known.size and not isinstance(values[0], str):
        return np.array(values)[codes]
    table = np.empty(len(values) + 1, object)
    table[:-1] = values
    return table[np.where(known, codes, len(values))]


def decode_reals(column: Column, reals: np.ndarray) -> np.ndarray:
    """Numbers in the user's units, from standardised ones; of a spike column, its real half."""
    return _finished(column, _numbers(column, reals))


def _numbers(column: Column, reals: np.ndarray) -> np.ndarray:
    numbers = np.asarray(reals, dtype=np.float64) * column.scale + column.centre
    return round_to(numbers, column.resolution) if column.grid else numbers


def _finished(column: Column, numbers: np.ndarray) -> np.ndarray:
    missing = np.isnan(numbers)
    if column.unit == DAYS:
        return _times(numbers, missing, 1, "M8[D]")
    if column.unit:
        return _times(
            numbers, missing, MICROSECONDS, "M8[us]" if column.unit == SECONDS else "m8[us]"
        )
    whole = column.grid and column.resolution >= 1 and column.resolution % 1 == 0
    whole = whole and (column.kind != "spike" or column.spike % 1 == 0)
    if whole and not missing.any() and np.all(np.abs(numbers) <= WHOLE):
        return numbers.astype(np.int64)
    return numbers


def _times(numbers: np.ndarray, missing: np.ndarray, ticks: int, dtype: str) -> np.ndarray:
    found = np.round(np.where(missing, 0.0, numbers) * ticks).astype(np.int64).view(dtype)
    found[missing] = "NaT"
    return found


def _with_missing(counts: np.ndarray, missing: np.ndarray) -> np.ndarray:
    return np.where(missing, np.nan, counts) if missing.any() else counts
