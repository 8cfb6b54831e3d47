"""A column of a kind, made from its cells: known values, or centre, scale and resolution."""

from typing import Any

import numpy as np

from temperance.crosscat.numbers import numbers_of
from temperance.crosscat.plain import Plain
from temperance.crosscat.resolution import are_whole, measure
from temperance.crosscat.schema import Column
from temperance.errors import DataError


def column_of(
    plain: Plain, kind: str, distinct: np.ndarray, counts: np.ndarray, why: str
) -> Column:
    """The column of that kind with these distinct values (of text, codes) and their counts."""
    told: dict[str, Any] = {
        "why": why,
        "unit": plain.unit,
        "num_distinct": len(distinct),
        "num_missing": plain.num_missing,
    }
    match kind:
        case "categorical":
            return Column(plain.name, kind, known_values(plain, distinct), **told)
        case "boolean":
            return Column(plain.name, kind, _two_values(plain, distinct), **told)
        case "count":
            numbers_of(plain, whole=True)
            return Column(plain.name, kind, **told)
        case _:
            return _measured(plain, kind, distinct, counts, told)


def _measured(
    plain: Plain, kind: str, distinct: np.ndarray, counts: np.ndarray, told: dict[str, Any]
) -> Column:
    """A real or a spike column."""
    if plain.type == "text":
        plain = numbers_of(plain)
        distinct, counts = np.unique(plain.present, return_counts=True)
    if kind == "real":
        found = measure(distinct, counts, plain.epsilon)
        return Column(plain.name, kind, **found._asdict(), **told)
    spike = float(distinct[counts.argmax()]) if distinct.size else 0.0
    others = distinct != spike
    found = measure(distinct[others], counts[others], plain.epsilon)
    return Column(plain.name, kind, spike=spike, **found._asdict(), **told)


def known_values(plain: Plain, distinct: np.ndarray) -> tuple[Any, ...]:
    """Plain Python scalars, in order; whole numbers are integers."""
    if plain.type == "text":
        return plain.labels
    if plain.unit:
        raise DataError(
            f"column {plain.name!r}: dates and durations are numbers here ({plain.unit}), and "
            "cannot be categorical; convert the column to text first"
        )
    if plain.type == "truth":
        return tuple(bool(value) for value in distinct)
    if are_whole(distinct):
        return tuple(int(value) for value in distinct)
    return tuple(distinct.tolist())


def _two_values(plain: Plain, distinct: np.ndarray) -> tuple[Any, ...]:
    if plain.type in ("truth", "nothing"):
        return False, True
    values = known_values(plain, distinct)
    if len(values) == 1 and values[0] in (0, 1):
        return 0, 1
    if len(values) != 2:
        shown = ", ".join(repr(value) for value in values[:4])
        raise DataError(
            f"column {plain.name!r}: a boolean column has two values, got {len(values)} ({shown}"
            f"{', ...' if len(values) > 4 else ''}); make it categorical"
        )
    return values
