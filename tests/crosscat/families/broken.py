"""Broken twins of draws of hyperparameters."""

from collections.abc import Sequence

import numpy as np

from temperance.crosscat.families import dirichlet


def exposure_of_one_row_more(total_weight: float, count: int) -> tuple[float, float]:
    """Beta(A + 1, n) in place of Beta(A, n)."""
    return total_weight + 1.0, float(count)


_log_shift_weights = dirichlet.log_shift_weights


def shift_of_filled_slots_alone(rising, points, other_weight, row_totals, grids):
    """A common shift weighed as if the slots without rows had no weight."""
    return _log_shift_weights(rising, points, 0.0, row_totals, grids)


def all_at_once(conditionals: Sequence[np.ndarray]) -> np.ndarray:
    """Every coordinate drawn given the others as they were before the sweep."""
    return np.prod(conditionals, axis=0)
