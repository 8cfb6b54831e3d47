"""Draws from log weights, and grids to hold them on.

A hyperparameter has a prior that is uniform on a finite grid, so a Gibbs step is a table of log
weights and one draw from it: nothing to tune, and no step that is only nearly exact.
"""

import math

import numpy as np
import numpy.typing as npt

from temperance.crosscat.compilation import compiled

FloatArray = npt.NDArray[np.float64]


@compiled
def draw_index(log_weights: FloatArray, rng: np.random.Generator) -> int:
    """One index, i with probability ~ exp(log_weights[i])."""
    top = -math.inf
    for i in range(log_weights.size):
        top = max(top, log_weights[i])
    total = 0.0
    for i in range(log_weights.size):
        total += math.exp(log_weights[i] - top)
    left = rng.random() * total
    last = 0
    for i in range(log_weights.size):
        weight = math.exp(log_weights[i] - top)
        if weight > 0.0:
            last = i
            left -= weight
            if left < 0.0:
                return i
    return last


def log_spaced(low: float, high: float, num: int) -> FloatArray:
    """`num` points from `low` to `high`, each the same multiple of the last."""
    points = np.exp(np.linspace(math.log(low), math.log(high), num))
    points[0], points[-1] = low, high
    return points
