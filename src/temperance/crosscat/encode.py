"""From the cells of a frame to matrices of codes and standardised numbers.

Columns are read and encoded one at a time, into matrices that are made once: the peak of memory is
these and a column or two.
"""

from typing import Any

import numpy as np

from temperance.crosscat.cells import Cells, empty_cells
from temperance.crosscat.codes import encode_values
from temperance.crosscat.features import Features
from temperance.crosscat.frames import OpenFrame, open_frame
from temperance.crosscat.numbers import numbers_of
from temperance.crosscat.plain import Plain, nothing
from temperance.crosscat.schema import Column, Schema
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
        plain = opened.read(name) if name in held else nothing(name, opened.num_rows)
        _encode_column(plain, column, rng, here)
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
    plain: Plain, column: Column, rng: np.random.Generator | None, out: list[np.ndarray]
) -> None:
    _check_unit(plain, column)
    match column.kind:
        case "categorical" | "boolean":
            encode_values(plain, column, out[0])
        case "count":
            plain = numbers_of(plain, whole=True)
            out[0][:] = plain.values
            _blank(out[0], plain.missing, -1)
        case "real":
            plain = numbers_of(plain)
            _standardise(plain, column, rng, out[0])
            _blank(out[0], plain.missing, np.nan)
        case "spike":
            plain = numbers_of(plain)
            spiked = plain.values == column.spike
            out[0][:] = spiked
            _blank(out[0], plain.missing, 3)
            _standardise(plain, column, rng, out[1])
            _blank(out[1], spiked, np.nan)
            _blank(out[1], plain.missing, np.nan)
        case _:
            raise AssertionError(column.kind)


def _blank(out: np.ndarray, where: np.ndarray | None, mark: float) -> None:
    if where is not None:
        out[where] = mark


def _standardise(
    plain: Plain, column: Column, rng: np.random.Generator | None, out: np.ndarray
) -> None:
    """(x - centre) / scale, with x dithered."""
    numbers = np.subtract(plain.values, column.centre, dtype=np.float64)
    numbers /= column.scale
    if rng is not None:
        noise = rng.random(len(numbers))
        noise -= 0.5
        noise *= column.resolution / column.scale
        numbers += noise
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(
            f"column {column.name!r}: row {row} (from 0) is {plain.values[row]}, too large for a "
            f"column with centre {column.centre:g} and scale {column.scale:g}"
        )
    out[:] = numbers


def _check_unit(plain: Plain, column: Column) -> None:
    if plain.type != "nothing" and plain.unit != column.unit:
        raise DataError(
            f"column {column.name!r}: wanted {column.unit or 'plain numbers'}, got "
            f"{plain.unit or 'plain numbers'}"
        )
