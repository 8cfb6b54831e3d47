"""What scikit-learn's callers bring: arrays of all sorts without names, and a `y` beside them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from temperance.crosscat.frames.frame import OpenFrame, open_frame
from temperance.crosscat.frames.typed_column import TypedColumn
from temperance.errors import DataError

TARGET = "target"


def with_target(opened: OpenFrame, y: Any, name: str | None = None) -> tuple[OpenFrame, str | None]:
    """The table with `y` as its last column, and that column's name: y's own, or "target"."""
    if y is None:
        return opened, None
    name = name or str(getattr(y, "name", None) or TARGET)
    if name in opened.names:
        raise DataError(f"y: the table has a column {name!r} already: give y another name")
    cells = y if hasattr(y, "name") else as_table(y)
    cells = np.squeeze(cells, 1) if np.ndim(cells) == 2 and np.shape(cells)[1] == 1 else cells
    beside = open_frame({name: cells})
    if beside.num_rows != opened.num_rows:
        raise DataError(f"y: has {beside.num_rows} cells for {opened.num_rows} rows of the table")

    def read(asked: str) -> TypedColumn:
        return beside.read(asked) if asked == name else opened.read(asked)

    return replace(opened, names=(*opened.names, name), read=read), name


def check_width(frame: Any, width: int, whose: str) -> None:
    """An array has no names to say which columns it lacks, so it must have all of them."""
    if isinstance(frame, np.ndarray) and frame.ndim == 2 and frame.shape[1] != width:
        raise DataError(
            f"X has {frame.shape[1]} features, but {whose} is expecting {width} features as input: "
            "give a frame with names if some columns are not known"
        )


def as_table(frame: Any) -> Any:
    """The same, or an array where the object only says how to become one."""
    if hasattr(frame, "tocsr"):
        raise DataError("table: sparse input is not supported: convert it with .toarray()")
    if isinstance(frame, np.ndarray) and frame.dtype.kind == "c":
        raise DataError(
            "table: Complex data not supported: give real and imaginary parts as two columns"
        )
    known = hasattr(frame, "columns") or hasattr(frame, "column_names")
    if not known and not isinstance(frame, np.ndarray) and hasattr(frame, "__array__"):
        return np.asarray(frame)
    return frame


def has_names(frame: Any) -> bool:
    """Whether a table says what its columns are called."""
    if isinstance(frame, np.ndarray):
        return frame.dtype.names is not None
    if isinstance(frame, list | tuple):
        return bool(frame) and isinstance(frame[0], Mapping)
    return True
