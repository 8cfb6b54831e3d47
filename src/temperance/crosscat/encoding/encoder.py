"""From the cells of a frame to matrices of codes and standardised numbers.

Columns are read and encoded one at a time, into matrices that are made once: the peak of memory is
these and a column or two.
"""

from typing import Any

import numpy as np

from temperance.crosscat.encoding.cells import Cells, empty_cells
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.encoding.numeric_cells import to_numbers
from temperance.crosscat.frames.frame import OpenFrame, open_frame
from temperance.crosscat.frames.schema import Column, Schema
from temperance.crosscat.frames.typed_column import TypedColumn, empty_column
from temperance.errors import DataError, unknown_name


def encode(
    frame: Any,
    schema: Schema,
    rng: np.random.Generator | None = None,
    *,
    partial: bool = False,
    extra: bool = False,
) -> Cells:
    """The cells of a frame or file, by a schema.

    Real numbers are dithered with uniform noise of +- half their column's resolution, drawn from
    `rng`; without one, not at all. Columns of the schema that the frame does not have are an error,
    or missing in every row if it may be `partial`. Columns that the schema does not have, other
    than those it leaves out, are an error unless `extra` ones are allowed.
    """
    opened = open_frame(frame, schema)
    _check_columns(opened, schema, partial, extra)
    features = Features.of(schema)
    cells = empty_cells(opened.num_rows, features)
    held = set(opened.names)
    for number, column in enumerate(schema.columns):
        here = [
            cells[features.family[feature]][:, features.place[feature]]
            for feature in features.of_column(number)
        ]
        name = column.name
        typed = opened.read(name) if name in held else empty_column(name, opened.num_rows)
        _encode_column(typed, column, rng, here)
    return cells


def _check_columns(opened: OpenFrame, schema: Schema, partial: bool, extra: bool) -> None:
    held, known = set(opened.names), {*schema.names, *schema.left_out}
    absent = [name for name in schema.names if name not in held]
    unknown = [name for name in opened.names if name not in known]
    if unknown and not extra:
        raise unknown_name("column", unknown[0], schema.names)
    if absent and not partial:
        more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
        shown = ", ".join(repr(name) for name in absent[:3])
        raise DataError(
            f"table: column(s) {shown}{more} of the schema are not in it; add them, with empty "
            "cells if nothing is known of them"
        )


def _encode_column(
    typed: TypedColumn, column: Column, rng: np.random.Generator | None, out: list[np.ndarray]
) -> None:
    _check_unit(typed, column)
    match column.kind:
        case "categorical" | "boolean":
            encode_values(typed, column, out[0])
        case "count":
            typed = to_numbers(typed, whole=True)
            here = slice(None) if typed.missing is None else ~typed.missing
            out[0][:] = -1
            out[0][here] = typed.values[here]
        case "real":
            typed = to_numbers(typed)
            _standardise(typed, column, rng, out[0])
            _blank(out[0], typed.missing, np.nan)
        case "spike":
            typed = to_numbers(typed)
            spiked = typed.values == column.spike
            out[0][:] = spiked
            _blank(out[0], typed.missing, 3)
            _standardise(typed, column, rng, out[1])
            _blank(out[1], spiked, np.nan)
            _blank(out[1], typed.missing, np.nan)
        case _:
            raise AssertionError(column.kind)


def _blank(out: np.ndarray, where: np.ndarray | None, mark: int | float) -> None:
    if where is not None:
        out[where] = mark


def _standardise(
    typed: TypedColumn, column: Column, rng: np.random.Generator | None, out: np.ndarray
) -> None:
    """(x - centre) / scale, with x dithered."""
    with np.errstate(over="ignore"):
        numbers = np.subtract(typed.values, column.centre, dtype=np.float64)
        numbers /= column.scale
    if rng is not None:
        noise = rng.random(len(numbers))
        noise -= 0.5
        noise *= column.resolution / column.scale
        numbers += noise
    if (endless := np.isinf(numbers)).any():
        row = int(np.flatnonzero(endless)[0])
        raise DataError(
            f"column {column.name!r}: row {row} (from 0) is {typed.values[row]}, too large for a "
            f"column with centre {column.centre:g} and scale {column.scale:g}"
        )
    out[:] = numbers


def _check_unit(typed: TypedColumn, column: Column) -> None:
    if typed.type != "nothing" and typed.unit != column.unit:
        raise DataError(
            f"column {column.name!r}: wanted {column.unit or 'plain numbers'}, got "
            f"{typed.unit or 'plain numbers'}"
        )


# Known integers within so wide a range are looked up in a table.
RANGE = 1 << 16


def encode_values(typed: TypedColumn, column: Column, out: np.ndarray) -> None:
    """Write the codes of a column's cells."""
    size = len(column.values)
    if typed.type == "nothing" or not size:
        out[:] = size
    elif typed.type == "text":
        table = np.array([*_codes_of_labels(typed, column)], dtype=np.int64)
        out[:] = table[typed.values]
    else:
        _encode_numbers(typed, column, out)
    if typed.missing is not None:
        out[typed.missing] = size + 1


def _codes_of_labels(typed: TypedColumn, column: Column) -> list[int]:
    size = len(column.values)
    if isinstance(column.values[0], str):
        codes = {value: code for code, value in enumerate(column.values)}
        return [codes.get(label, size) for label in typed.labels]
    numbers = {float(value): code for code, value in enumerate(column.values)}
    return [numbers.get(_number(label, column), size) for label in typed.labels]


def _number(label: str, column: Column) -> float:
    truths = {"true": 1.0, "false": 0.0}
    try:
        return truths[label.lower()] if label.lower() in truths else float(label)
    except ValueError:
        raise DataError(
            f"column {column.name!r}: got the text {label!r}, and the known values are numbers, "
            f"such as {column.values[0]!r}"
        ) from None


def _encode_numbers(typed: TypedColumn, column: Column, out: np.ndarray) -> None:
    values: Any = column.values
    if isinstance(values[0], str):
        distinct, back = np.unique(typed.values, return_inverse=True)
        codes = {value: code for code, value in enumerate(values)}
        words = [_word(value) for value in distinct.tolist()]
        out[:] = np.array([codes.get(word, len(values)) for word in words])[back]
        return
    known = np.array(values)
    cells = typed.values
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
