"""A plain column as numbers, whatever it came as."""

import numpy as np

from temperance.crosscat.plain import Plain, plain_numbers
from temperance.crosscat.resolution import WHOLE
from temperance.errors import DataError


def numbers_of(plain: Plain, *, whole: bool = False) -> Plain:
    """Text is read as numbers where all of it is; with `whole`, only 0, 1, 2, ... will do."""
    if plain.type == "text":
        read = np.array([_number(plain, code) for code in range(len(plain.labels))])
        plain = plain_numbers(plain.name, read[plain.values], plain.missing)
    if whole and plain.type != "nothing":
        _check_counts(plain)
    return plain


def _number(plain: Plain, code: int) -> float:
    label = plain.labels[code]
    try:
        return float(label)
    except ValueError:
        here = plain.values == code
        if plain.missing is not None:
            here &= ~plain.missing
        row = int(np.flatnonzero(here)[0])
        raise DataError(
            f"column {plain.name!r}: row {row} (from 0) is {label!r}, which is not a number; make "
            "the column categorical, or leave the cell empty"
        ) from None


def _check_counts(plain: Plain) -> None:
    values = plain.values
    wrong = values < 0
    if plain.type == "real":
        wrong |= (values != np.floor(values)) | (values > WHOLE)
    if plain.missing is not None:
        wrong &= ~plain.missing
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"column {plain.name!r}: row {row} (from 0) is {values[row]}, and a count is a whole "
            "number from 0 to 2^53; make the column real"
        )
