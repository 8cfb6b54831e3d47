"""Weights of draws, kept as logarithms: relative to their mean, and made good by repetition.

Systematic resampling takes the draws whose share of the summed weights holds one of `num` evenly
spaced places, so that each comes as often as its weight says, up to one more or less.
"""

import numpy as np
import numpy.typing as npt

from temperance.errors import ResultError


def relative(log_weights: npt.ArrayLike | None, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Weights with a mean of one."""
    if log_weights is None:
        return np.ones(shape)
    logs = np.asarray(log_weights, float)
    top = logs.max(initial=-np.inf)
    if not np.isfinite(top):
        raise ResultError("no draw has a weight: every one is impossible under the target")
    weights = np.exp(logs - top)
    return weights / weights.mean()


def systematic(log_weights: npt.ArrayLike, num: int, offset: float) -> npt.NDArray[np.int64]:
    """The places of `num` draws among all of them, flattened.

    `offset` is in [0, 1); with one drawn uniformly the numbers are right on average.
    """
    weights = np.ravel(relative(log_weights, ()))
    places = (np.arange(num) + offset) / num
    edges = np.cumsum(weights) / weights.sum()
    return np.minimum(np.searchsorted(edges, places), len(weights) - 1)
