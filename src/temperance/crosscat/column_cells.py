"""One column's cells, whatever matrices they lie in.

A table keeps its cells by family: codes, real numbers and counts each in a matrix of their own, and
a spike column in two of them. A question is asked by column.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.cells import Cells
from temperance.crosscat.features import COUNT, NARROW, WIDE, Features


class ColumnCells(NamedTuple):
    """The cells of one column.

    Attributes:
        codes: [n] of a categorical, boolean or spike column, else None.
        numbers: [n], standardised reals of a real or spike column, or counts; else None.
        missing: [n].
    """

    codes: NDArray[Any] | None
    numbers: NDArray[Any] | None
    missing: NDArray[np.bool_]


def column_cells(cells: Cells, features: Features, column: int) -> ColumnCells:
    """The cells of `column`."""
    codes = numbers = missing = None
    for feature in features.of_column(column):
        family = int(features.family[feature])
        values = cells[family][:, features.place[feature]]
        if family in (NARROW, WIDE):
            codes = values
            absent = codes > features.num_values[feature]
        else:
            numbers = values
            absent = values < 0 if family == COUNT else np.isnan(values)
        # Of a spike column the codes come first: where they say "the spike" there is no number.
        missing = absent if missing is None else missing
    assert missing is not None
    return ColumnCells(codes, numbers, missing)


def take_rows(cells: Cells, rows: slice | NDArray[np.integer]) -> Cells:
    """Some of the rows."""
    return Cells(*(matrix[rows] for matrix in cells))
