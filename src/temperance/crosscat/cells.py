"""The matrices of encoded cells, one for each family, with the same rows.

The matrix of counts has the name of a method of tuples, which cells have no use for.
"""

from typing import NamedTuple

import numpy as np

from temperance.crosscat.features import DTYPES, Features


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
