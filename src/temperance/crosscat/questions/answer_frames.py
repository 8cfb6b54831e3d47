"""Answers in the user's terms: names, values and units, in the kind of frame that was given.

A frame with its missing cells filled in is a copy of the user's own: all other cells, the types of
its columns and its index are as they were.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.decoder import decode, decode_column
from temperance.crosscat.frames.frame import build_frame
from temperance.crosscat.frames.schema import Column, Schema
from temperance.crosscat.questions.cell_laws import Drawn
from temperance.crosscat.questions.imputation import Guesses

Fills = dict[str, tuple[np.ndarray, np.ndarray]]


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


def fill_frame(frame: Any, fills: Fills) -> Any | None:
    """A copy of `frame` in which `fills` gives, by column, rows and their values.

    None where the frame is no frame or array, but a file or a dictionary of columns.
    """
    if isinstance(frame, np.ndarray) and frame.ndim == 2 and not frame.dtype.names:
        return _fill_array(frame, fills)
    given: Any = frame
    try:
        known = nw.from_native(given)
    except TypeError:
        return None
    if isinstance(known, nw.LazyFrame):
        known = known.collect()
    names = {str(name): name for name in known.columns}
    if fills:
        known = known.with_columns(
            *(_fill_series(known.get_column(names[name]), *fill) for name, fill in fills.items())
        )
    return known.to_native()


def _fill_array(array: np.ndarray, fills: Fills) -> np.ndarray:
    filled = array.copy()
    for name, (rows, values) in fills.items():
        filled[rows, int(name.removeprefix("column_"))] = values
    return filled


def _fill_series(series: nw.Series[Any], rows: np.ndarray, values: np.ndarray) -> nw.Series[Any]:
    cells = series.to_list()
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        cells[row] = value
    backend: Any = series.implementation
    filled = nw.new_series(series.name, cells, backend=backend)
    # A column of whole numbers may have to hold halves now, and then has another type.
    could_not = (TypeError, ValueError, nw.exceptions.NarwhalsError)
    if not nw.dependencies.is_pandas_series(native := series.to_native()):
        with suppress(*could_not):
            filled = filled.cast(series.dtype)
        return filled
    pandas: Any = filled.to_native()
    pandas.index = native.index
    with suppress(*could_not):
        pandas = pandas.astype(native.dtype)
    return nw.from_native(pandas, series_only=True)
