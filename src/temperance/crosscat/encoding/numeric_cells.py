"""A typed column as numbers, where it came as numbers or as text that reads as numbers."""

import numpy as np

from temperance.crosscat.encoding.resolution import WHOLE
from temperance.crosscat.frames.typed_column import TypedColumn, read_numbers
from temperance.errors import DataError


def to_numbers(typed: TypedColumn, *, whole: bool = False) -> TypedColumn:
    """Text is read as numbers where all of it is; with `whole`, only 0, 1, 2, ... will do."""
    if typed.type == "text":
        read = np.array([_number(typed, code) for code in range(len(typed.labels))])
        typed = read_numbers(typed.name, read[typed.values], typed.missing)
    if whole and typed.type != "nothing":
        _check_counts(typed)
    return typed


def _number(typed: TypedColumn, code: int) -> float:
    label = typed.labels[code]
    try:
        return float(label)
    except ValueError:
        here = typed.values == code
        if typed.missing is not None:
            here &= ~typed.missing
        row = int(np.flatnonzero(here)[0])
        raise DataError(
            f"column {typed.name!r}: row {row} (from 0) is {label!r}, which is not a number; make "
            "the column categorical, or leave the cell empty"
        ) from None


def _check_counts(typed: TypedColumn) -> None:
    values = typed.values
    wrong = values < 0
    if typed.type == "real":
        wrong |= (values != np.floor(values)) | (values > WHOLE)
    if typed.missing is not None:
        wrong &= ~typed.missing
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"column {typed.name!r}: row {row} (from 0) is {values[row]}, and a count is a whole "
            "number from 0 to 2^53; make the column real"
        )
