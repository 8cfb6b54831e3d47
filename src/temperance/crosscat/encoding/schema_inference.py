"""The kinds of a table's columns, guessed from their cells.

    no cell at all                                         categorical, with no known value
    truth values; yes and no; 0 and 1, both often          boolean
    text, a categorical dtype                              categorical
    one value, or two, each thrice on average              categorical
    whole numbers, at most 20, each thrice on average      categorical
    numbers with more than 10 values, half of them one     spike
    whole, from 0 to 1000, variance 1 to 5 times mean      count
    any other numbers, dates and durations                 real

Two values of which one is rare are categorical, since a third may come: a boolean column has none.
A mixture of Poisson laws has at least as much variance as mean, within the error 2 sqrt(2/n) that n
cells know it by.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from temperance.crosscat.encoding.column_description import describe_column, distinct_values
from temperance.crosscat.encoding.resolution import are_whole
from temperance.crosscat.frames.frame import OpenFrame, open_frame
from temperance.crosscat.frames.schema import KINDS, Column, Schema
from temperance.crosscat.frames.typed_column import TypedColumn
from temperance.errors import ArgumentError, unknown_name

FEW_VALUES, TIMES_EACH = 20, 3
OFTEN = 0.01
SPIKE_SHARE, SPIKE_VALUES = 0.5, 10
LARGEST_COUNT, MOST_DISPERSED = 1000, 5.0
PAIRS = ({"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"})
# Shares of the cells or values that are remarked on.
MOSTLY = 0.8


def guess_schema(frame: Any, overrides: Any = None) -> Schema:
    """The schema of a frame or file, with the kinds that `overrides` names in place of guesses.

    `overrides` is a dictionary from a column's name to a kind, to a `Column`, or to None, which
    leaves the column out; or a sequence of `Column`; or a `Schema`. Kinds are "categorical",
    "boolean", "real", "count" and "spike". Print the schema to see what was guessed, and why.
    """
    wanted = _wanted(overrides)
    opened = open_frame(frame)
    for name in wanted:
        if name not in opened.names:
            raise unknown_name("column in overrides", name, opened.names)
    left_out = tuple(name for name in opened.names if name in wanted and wanted[name] is None)
    columns = tuple(_column(opened, name, wanted) for name in opened.names if name not in left_out)
    return Schema(columns, left_out)


def _wanted(overrides: Any) -> dict[str, str | Column | None]:
    if overrides is None:
        return {}
    if isinstance(overrides, Schema):
        left_out: dict[str, str | Column | None] = dict.fromkeys(overrides.left_out)
        return {column.name: column for column in overrides.columns} | left_out
    if isinstance(overrides, Mapping):
        for name, kind in overrides.items():
            if kind is not None and not isinstance(kind, Column) and kind not in KINDS:
                raise unknown_name(f"kind of column {name!r}", kind, KINDS)
            if isinstance(kind, Column) and kind.name != name:
                raise ArgumentError(f"overrides: {name!r} is given the column {kind.name!r}")
        return {str(name): kind for name, kind in overrides.items()}
    if isinstance(overrides, list | tuple) and all(isinstance(x, Column) for x in overrides):
        return {column.name: column for column in overrides}
    raise ArgumentError(
        f"overrides: wanted a dictionary from names to kinds, columns, or a Schema, got "
        f"{type(overrides).__name__}"
    )


def _column(opened: OpenFrame, name: str, wanted: dict[str, str | Column | None]) -> Column:
    asked = wanted.get(name)
    if isinstance(asked, Column):
        return asked
    typed = opened.read(name)
    distinct, counts = distinct_values(typed.present)
    kind, why = (asked, "as asked") if asked else guess_kind(typed, distinct, counts)
    return describe_column(typed, kind, distinct, counts, why)


def guess_kind(typed: TypedColumn, distinct: np.ndarray, counts: np.ndarray) -> tuple[str, str]:
    """A kind for a column, and the reason, from its distinct values and their counts."""
    num, total = len(distinct), int(counts.sum())
    if typed.type == "nothing":
        return "categorical", "no cell is present"
    if typed.type == "truth":
        return "boolean", "truth values"
    if typed.declared:
        return "categorical", "a categorical dtype"
    if typed.type == "text":
        return _guess_text(typed, total)
    if typed.unit:
        return "real", typed.unit
    whole = are_whole(distinct)
    repeated = TIMES_EACH * num <= total
    if num == 1 and (whole or repeated):
        return "categorical", "constant"
    if num == 2 and set(distinct.tolist()) == {0, 1} and counts.min() >= OFTEN * total:
        return "boolean", "0 and 1"
    if num == 2 and repeated:
        return "categorical", "two values"
    if num <= FEW_VALUES and whole and repeated:
        return "categorical", "few whole numbers"
    if num > SPIKE_VALUES and counts.max() > SPIKE_SHARE * total:
        value = distinct[counts.argmax()].item()
        return "spike", f"{100 * counts.max() / total:.3g} % are {value:g}"
    return _guess_numbers(distinct, counts, whole)


def _guess_numbers(distinct: np.ndarray, counts: np.ndarray, whole: bool) -> tuple[str, str]:
    if not whole:
        return "real", "numbers"
    if distinct[0] < 0:
        return "real", "whole numbers, some negative"
    if distinct[-1] > LARGEST_COUNT:
        return "real", "whole numbers, some large"
    shares = counts / counts.sum()
    mean = float(shares @ distinct)
    dispersion = float(shares @ (distinct - mean) ** 2) / mean
    error = 2 * np.sqrt(2 / counts.sum())
    if 1 - error <= dispersion <= MOST_DISPERSED:
        return "count", f"whole numbers, variance {dispersion:.2g} x mean"
    return "real", f"whole numbers, variance {dispersion:.2g} x mean"


def _guess_text(typed: TypedColumn, total: int) -> tuple[str, str]:
    labels = typed.labels
    if len(labels) == 2 and {label.strip().lower() for label in labels} in PAIRS:
        return "boolean", "text"
    if len(labels) > MOSTLY * total and total > FEW_VALUES:
        return "categorical", "text, nearly all different: leave it out if it only names the rows"
    others = _not_numbers(labels)
    if len(others) < (1 - MOSTLY) * len(labels):
        example = f", but {others[0]!r} is not" if others else ""
        return "categorical", f"text that looks like numbers{example}"
    return "categorical", "text"


def _not_numbers(labels: tuple[str, ...]) -> list[str]:
    found = []
    for label in labels:
        try:
            float(label)
        except ValueError:
            found.append(label)
    return found
