"""A column's description, made from its cells: known values, or centre, scale and resolution."""

from typing import Any

import numpy as np

from temperance.crosscat.encoding.numeric_cells import to_numbers
from temperance.crosscat.encoding.resolution import are_whole, measure
from temperance.crosscat.frames.schema import Column
from temperance.crosscat.frames.typed_column import TypedColumn
from temperance.errors import DataError


def describe_column(
    typed: TypedColumn, kind: str, distinct: np.ndarray, counts: np.ndarray, why: str
) -> Column:
    """The column of that kind with these distinct values (of text, codes) and their counts."""
    told: dict[str, Any] = {
        "why": why,
        "unit": typed.unit,
        "num_distinct": len(distinct),
        "num_missing": typed.num_missing,
    }
    match kind:
        case "categorical":
            return Column(typed.name, kind, known_values(typed, distinct), **told)
        case "boolean":
            return Column(typed.name, kind, _two_values(typed, distinct), **told)
        case "count":
            to_numbers(typed, whole=True)
            return Column(typed.name, kind, **told)
        case _:
            return _measured(typed, kind, distinct, counts, told)


def _measured(
    typed: TypedColumn, kind: str, distinct: np.ndarray, counts: np.ndarray, told: dict[str, Any]
) -> Column:
    """A real or a spike column."""
    if typed.type == "text":
        typed = to_numbers(typed)
        distinct, counts = np.unique(typed.present, return_counts=True)
    if kind == "real":
        found = measure(distinct, counts, typed.epsilon)
        return Column(typed.name, kind, **found._asdict(), **told)
    spike = float(distinct[counts.argmax()]) if distinct.size else 0.0
    others = distinct != spike
    found = measure(distinct[others], counts[others], typed.epsilon)
    return Column(typed.name, kind, spike=spike, **found._asdict(), **told)


def known_values(typed: TypedColumn, distinct: np.ndarray) -> tuple[Any, ...]:
    """Plain Python scalars, in order; whole numbers are integers."""
    if typed.type == "text":
        return typed.labels
    if typed.unit:
        raise DataError(
            f"column {typed.name!r}: dates and durations are numbers here ({typed.unit}), and "
            "cannot be categorical; convert the column to text first"
        )
    if typed.type == "truth":
        return tuple(bool(value) for value in distinct)
    if are_whole(distinct):
        return tuple(int(value) for value in distinct)
    return tuple(distinct.tolist())


def _two_values(typed: TypedColumn, distinct: np.ndarray) -> tuple[Any, ...]:
    if typed.type in ("truth", "nothing"):
        return False, True
    values = known_values(typed, distinct)
    if len(values) == 1 and values[0] in (0, 1):
        return 0, 1
    if len(values) != 2:
        shown = ", ".join(repr(value) for value in values[:4])
        raise DataError(
            f"column {typed.name!r}: a boolean column has two values, got {len(values)} ({shown}"
            f"{', ...' if len(values) > 4 else ''}); make it categorical"
        )
    return values


# Integers within so wide a range are counted, not sorted.
RANGE = 1 << 20


def distinct_values(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values in order, and their counts."""
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    if values.dtype.kind in "iu" and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low < RANGE:
            offsets = values.astype(np.int64)
            offsets -= low
            counts = np.bincount(offsets, minlength=1)
            found = np.flatnonzero(counts)
            return found + low, counts[found]
    return np.unique(values, return_counts=True)
