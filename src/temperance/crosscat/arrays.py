"""One-dimensional NumPy arrays of any dtype as plain columns."""

import numpy as np

from temperance.crosscat.objects import plain_objects
from temperance.crosscat.plain import Plain, plain_numbers, plain_times
from temperance.errors import DataError


def plain_array(name: str, array: np.ndarray, missing: np.ndarray | None = None) -> Plain:
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
            return plain_numbers(name, array, missing)
        case "U" | "S" | "T" | "O":
            return plain_objects(name, array.astype(object, copy=False), missing)
        case "M" | "m":
            return plain_times(name, array, missing)
        case _:
            raise DataError(
                f"column {name!r}: cells of dtype {array.dtype} are neither numbers nor text; "
                "convert them or leave the column out"
            )
