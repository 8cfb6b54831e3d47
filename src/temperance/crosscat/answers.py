"""Answers in the user's terms: names, values and units, in the kind of frame that was given."""

from dataclasses import replace
from typing import Any

import numpy as np

from temperance.crosscat.cells import Cells
from temperance.crosscat.decode import decode, decode_column
from temperance.crosscat.filling import Fills
from temperance.crosscat.frames import build_frame
from temperance.crosscat.imputation import Guesses
from temperance.crosscat.laws import Drawn
from temperance.crosscat.schema import Column, Schema


def values_of(column: Column, drawn: Drawn) -> np.ndarray:
    """Cells of one column as the user would write them."""
    if drawn.codes is None:
        numbers = np.asarray(drawn.numbers)
        if column.kind == "count" and numbers.dtype.kind == "f":
            return numbers  # means of counts
        return decode_column(column, numbers)
    if drawn.numbers is None:
        return decode_column(column, drawn.codes)
    return decode_column(column, drawn.codes, drawn.numbers)


def means_of(column: Column, drawn: Drawn) -> np.ndarray:
    """Means, which need not lie on a column's grid."""
    return values_of(replace(column, grid=False), drawn)


def decoded_with(cells: Cells, schema: Schema, fills: Fills) -> dict[str, np.ndarray]:
    """All columns of encoded cells, by name, with some of their cells filled in."""
    found = decode(cells, schema)
    for name, (rows, values) in fills.items():
        filled = found[name].astype(object)
        filled[rows] = values
        mixed = any(cell is None or isinstance(cell, str) for cell in filled)
        found[name] = filled if mixed else np.array(filled.tolist())
    return found


def framed(values: dict[str, Any], backend: str, like: Any = None) -> Any:
    """A frame of named columns, with the index of the pandas frame that it answers."""
    arrays = {name: _as_array(cells) for name, cells in values.items()}
    frame = build_frame(arrays, backend)
    if hasattr(like, "index") and backend == "pandas" and hasattr(frame, "index"):
        frame.index = like.index
    return frame


def _as_array(cells: Any) -> np.ndarray:
    if isinstance(cells, np.ndarray):
        return cells
    kinds = {type(cell) for cell in cells}
    if kinds <= {int, float} or kinds <= {str} or kinds <= {bool}:
        return np.array(cells, object if kinds == {str} else None)
    found = np.empty(len(cells), object)
    found[:] = cells
    return found


def uncertainty_table(schema: Schema, guesses: dict[int, Guesses]) -> dict[str, Any]:
    """One line for each guessed cell: where, what, and how sure."""
    table: dict[str, list[Any]] = {
        name: [] for name in ("row", "column", "value", "probability", "entropy", "low", "high")
    }
    for place, (rows, guess) in guesses.items():
        column = schema.columns[place]
        num = len(rows)
        table["row"] += rows.tolist()
        table["column"] += [column.name] * num
        table["value"] += values_of(column, guess.cells).tolist()
        table["probability"] += guess.probability.tolist()
        table["entropy"] += guess.entropy.tolist()
        for name, end in (("low", guess.low), ("high", guess.high)):
            table[name] += [None] * num if end is None else values_of(column, end).tolist()
    return table
