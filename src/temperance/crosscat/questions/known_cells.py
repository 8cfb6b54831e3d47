"""What a caller says about a row, by name: `given={"age": 40}`.

A dictionary is written by hand, so that a value which its column never had is taken for a slip and
refused. A frame is data: there a value never seen is one, and an absent or missing cell is not
known.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells, column_cells
from temperance.crosscat.encoding.encoder import encode
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.frames.frame import open_frame
from temperance.crosscat.frames.schema import Column, Schema
from temperance.errors import ArgumentError, UnknownNameError

FEW = 8


class Known(NamedTuple):
    """Encoded cells, and [C] which columns were spoken of."""

    cells: Cells
    columns: NDArray[np.bool_]


def known_cells(said: Any, schema: Schema, argument: str) -> Known:
    """One row from a dictionary of values, or rows from a frame; None says nothing."""
    if said is None:
        said = {}
    if not isinstance(said, Mapping):
        opened = open_frame(said, schema)
        cells = encode(opened, schema, partial=True)
        return Known(cells, np.isin(schema.names, opened.names))
    places = [schema.index(name) for name in said]
    for name, value in said.items():
        _check_scalar(name, value, argument)
    if not said:
        # A row of nothing is written as one missing cell: a frame needs a column.
        cells = encode({schema.names[0]: [None]}, schema, partial=True)
    else:
        cells = encode({name: [value] for name, value in said.items()}, schema, partial=True)
    features = Features.of(schema)
    for place, (name, value) in zip(places, said.items(), strict=True):
        column = schema.columns[place]
        found = column_cells(cells, features, place)
        if found.missing[0]:
            raise ArgumentError(
                f"{argument}: column {name!r} is given {value!r}, which is a missing cell: leave "
                "the column out where nothing is known of it"
            )
        if column.kind in ("categorical", "boolean") and np.asarray(found.codes)[0] >= len(
            column.values
        ):
            raise _unknown_value(column, value, argument)
    return Known(cells, np.isin(np.arange(len(schema)), places))


def _check_scalar(name: str, value: Any, argument: str) -> None:
    if not isinstance(value, str | bytes) and np.ndim(value):
        raise ArgumentError(
            f"{argument}: column {name!r} is given {type(value).__name__} {value!r}, and wants one "
            "value: give several rows as a frame"
        )


def _unknown_value(column: Column, value: Any, argument: str) -> UnknownNameError:
    names = [repr(known) for known in column.values]
    near = get_close_matches(repr(value), names, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}? " if near else ""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return UnknownNameError(
        f"{argument}: column {column.name!r} has no value {value!r}: {hint}known are "
        f"{', '.join(names[:FEW])}{more}"
    )


def merge(first: Known, second: Known, schema: Schema, names: tuple[str, str]) -> Cells:
    """The cells of both, which may not speak of the same column; a single row is repeated."""
    both = np.flatnonzero(first.columns & second.columns)
    if len(both):
        raise ArgumentError(
            f"column {schema.names[both[0]]!r} is in both {names[0]} and {names[1]}: what is given "
            "cannot be asked for; take it out of one of them"
        )
    sizes = first.cells.num_rows, second.cells.num_rows
    if sizes[0] != sizes[1] and 1 not in sizes:
        raise ArgumentError(
            f"{names[0]} has {sizes[0]} rows and {names[1]} has {sizes[1]}: give one row, or as "
            "many as there are in the other"
        )
    num = max(sizes)
    features = Features.of(schema)
    cells = Cells(*(_repeat(matrix, num).copy() for matrix in first.cells))
    for column in np.flatnonzero(second.columns):
        for feature in features.of_column(int(column)):
            family, place = features.family[feature], features.place[feature]
            cells[family][:, place] = _repeat(second.cells[family][:, place], num)
    return cells


def _repeat(array: np.ndarray, num: int) -> np.ndarray:
    return np.repeat(array, num, axis=0) if len(array) == 1 != num else array


def column_places(names: Sequence[str] | str | None, schema: Schema) -> list[int]:
    """The columns of those names, in that order; all of them for None."""
    if names is None:
        return list(range(len(schema)))
    names = [names] if isinstance(names, str) else list(names)
    places = [schema.index(name) for name in names]
    if len(set(places)) != len(places):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(f"columns: {twice!r} is named twice")
    return places
