"""How the columns of a schema lie in the matrices of cells.

Inside, a column is one or two features; a feature belongs to a family, which has one matrix:

    NARROW   uint8    categorical with at most 254 known values, boolean, "is it the spike?"
    WIDE     int32    categorical with more known values
    REAL     float64  standardised; NaN is missing
    COUNT    int64    -1 is missing

A categorical feature with V known values has codes 0 .. V - 1 for these, V for a value never seen
and V + 1 for a missing cell. A spike column is a narrow feature, 1 where the cell is the spike, and
a real feature, which is missing there.
"""

from dataclasses import dataclass

import numpy as np

from temperance.crosscat.frames.schema import Column, Schema

NARROW, WIDE, REAL, COUNT = range(4)
FAMILIES = ("narrow", "wide", "real", "count")
MOST_NARROW = 254
DTYPES = (np.uint8, np.int32, np.float64, np.int64)


@dataclass(frozen=True)
class Features:
    """Of each feature: its family, its place in that family's matrix, its column, its values.

    `num_values` is V for the categorical families and 0 otherwise.
    """

    family: np.ndarray
    place: np.ndarray
    column: np.ndarray
    num_values: np.ndarray

    @classmethod
    def of(cls, schema: Schema) -> "Features":
        families: list[int] = []
        columns: list[int] = []
        num_values: list[int] = []
        for number, column in enumerate(schema.columns):
            for family, size in features_of(column):
                families.append(family)
                columns.append(number)
                num_values.append(size)
        widths = [0] * len(FAMILIES)
        places = []
        for family in families:
            places.append(widths[family])
            widths[family] += 1
        return cls(*(np.array(x, dtype=np.int64) for x in (families, places, columns, num_values)))

    def __len__(self) -> int:
        return len(self.family)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of features in each family."""
        return tuple(int(np.sum(self.family == family)) for family in range(len(FAMILIES)))

    def of_column(self, column: int) -> tuple[int, ...]:
        """The features of a column."""
        return tuple(int(feature) for feature in np.flatnonzero(self.column == column))

    def of_family(self, family: int) -> np.ndarray:
        """The features of a family, by their places."""
        return np.flatnonzero(self.family == family)


def features_of(column: Column) -> tuple[tuple[int, int], ...]:
    """Family and number of known values of each feature of a column."""
    match column.kind:
        case "real":
            return ((REAL, 0),)
        case "count":
            return ((COUNT, 0),)
        case "spike":
            return (NARROW, 2), (REAL, 0)
        case _:
            size = len(column.values)
            return ((NARROW if size <= MOST_NARROW else WIDE, size),)
