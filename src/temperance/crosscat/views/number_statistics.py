"""Sufficient statistics of features that are numbers: what real and count features share.

Each feature has in each cluster the number of its known cells, sums over them, and `law`, the
constants of the predictive of the next cell, which follow from the sums and the hyperparameters.
What the sums and the constants are, real_statistics.py and count_statistics.py say. Their loops
over cells are compiled and stand in both: Numba keeps no program on disk that is given functions.
"""

from typing import Any, NamedTuple

import numpy as np


class NumberStatistics(NamedTuple):
    """Sums of the features of one family in a view."""

    values: Any  # [N, F], of the whole table
    place: Any  # int64[f], which columns of `values` are the view's
    hyper: Any  # float64[f, :]
    seen: Any  # int64[f, stride], known cells
    sums: Any  # [f, ..., stride]
    law: Any  # float64[f, :, stride], what scores a cell


def no_numbers(
    values: Any, place: Any, num_hyper: int, sums: np.ndarray, num_constants: int
) -> NumberStatistics:
    """No row is in, and no hyperparameters are set; `sums` are zeros."""
    num, stride = len(place), sums.shape[-1]
    return NumberStatistics(
        values,
        np.ascontiguousarray(place, np.int64),
        np.zeros((num, num_hyper)),
        np.zeros((num, stride), np.int64),
        sums,
        np.zeros((num, num_constants, stride)),
    )


def widened(group: NumberStatistics, wider: int) -> NumberStatistics:
    """The same sums with room for more places; what scores is to be refreshed."""
    more = wider - group.seen.shape[1]

    def padded(array: np.ndarray) -> np.ndarray:
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)])

    return group._replace(seen=padded(group.seen), sums=padded(group.sums), law=padded(group.law))
