"""The distinct values of a column and how often each occurs."""

import numpy as np

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
