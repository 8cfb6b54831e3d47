"""The matrices of encoded cells, one for each family, and one column's cells among them.

A table keeps its cells by family: codes, real numbers and counts each in a matrix of their own, all
with the same rows, and a spike column in two of them. A question is asked by column.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.features import COUNT, DTYPES, NARROW, WIDE, Features


class Cells(NamedTuple):
    """One row a row of the table, one column a feature of the family; a family may have none."""

    narrow: np.ndarray
    wide: np.ndarray
    real: np.ndarray
    count: np.ndarray  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def num_rows(self) -> int:
        return self.narrow.shape[0]

    @property
    def num_bytes(self) -> int:
        return sum(matrix.nbytes for matrix in self)

    def take(self, rows: np.ndarray) -> "Cells":
        """The cells of some rows."""
        return Cells(*(np.ascontiguousarray(matrix[rows]) for matrix in self))


def empty_cells(num_rows: int, features: Features) -> Cells:
    """Matrices of the right shapes, not filled."""
    return Cells(
        *(
            np.empty((num_rows, width), dtype)
            for width, dtype in zip(features.widths, DTYPES, strict=True)
        )
    )


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
