"""Which numbers of rows can be a ladder's: whole, increasing, distinct, ending at all of them."""

import warnings

import numpy as np

from temperance._types import Numbers
from temperance.errors import ArgumentError, DataError


class SizeWarning(UserWarning):
    """Rungs that would have the same number of rows were merged."""


def checked_sizes(sizes: Numbers, num_rows: int) -> tuple[int, ...]:
    """Numbers of rows, if they can be a ladder's; shares of all rows become numbers first.

    Rungs that round to the same number of rows are merged, with a warning.
    """
    try:
        values = np.asarray(sizes, float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"sizes: wanted numbers of rows that increase, got {sizes!r}"
        ) from error
    if values.ndim != 1 or values.size < 2:
        raise ArgumentError(
            f"sizes: a ladder needs at least two rungs in one vector, got shape {values.shape}; "
            "for a single rung use method='plain'"
        )
    if not np.isfinite(values).all() or (np.diff(values) < 0).any() or values[0] < 0:
        raise ArgumentError(f"sizes must be finite and increase (rung 0 is hottest), got {values}")
    if values[-1] == 1.0 and num_rows > 1:
        values = np.where(values == 0, 0, np.maximum(1, np.round(values * num_rows)))
    if (values != np.round(values)).any():
        raise ArgumentError(
            f"sizes: wanted whole numbers of rows, or shares of them that end at 1.0, got {values}"
        )
    if values[-1] != num_rows:
        raise DataError(
            f"sizes must end at all {num_rows} rows, the target (or at 1.0, as shares of them); "
            f"got {values}"
        )
    merged = np.unique(values.astype(int))
    if merged.size < values.size:
        warn_of_merging(values.size, merged)
    if merged.size < 2:
        raise DataError(f"sizes: all rungs have {num_rows} rows; give smaller ones")
    return tuple(int(value) for value in merged)


def warn_of_merging(wanted: int, sizes: np.ndarray) -> None:
    """Say that fewer rungs are left than were asked for."""
    warnings.warn(
        f"{wanted - sizes.size} rung(s) had as many rows as a neighbour and were merged: "
        f"{sizes.size} are left, of {sizes.tolist()} rows",
        SizeWarning,
        stacklevel=4,
    )
