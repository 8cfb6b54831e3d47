"""Answers in the user's terms: names, values and units, in the kind of frame that was given."""

from dataclasses import replace
from typing import Any

import numpy as np

from temperance.crosscat.decode import decode_column
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


def filled_cells(
    values: dict[str, np.ndarray], schema: Schema, guesses: dict[int, Guesses]
) -> dict[str, np.ndarray]:
    """Columns with their missing cells filled in."""
    found = dict(values)
    for place, (rows, guess) in guesses.items():
        column = schema.columns[place]
        new = values_of(column, guess.cells)
        old = found[column.name]
        filled = np.empty(len(old), old.dtype if old.dtype == new.dtype else object)
        filled[:] = old
        filled[rows] = new
        found[column.name] = _tidy(filled)
    return found


def _tidy(cells: np.ndarray) -> np.ndarray:
    """An array of objects as numbers, where all are."""
    if cells.dtype.kind != "O" or any(isinstance(cell, str) or cell is None for cell in cells):
        return cells
    return np.array(cells.tolist())


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
