"""Draws of one of a few states against their law."""

import numpy as np
from scipy import stats


def chi_square(counts: np.ndarray, law: np.ndarray) -> float:
    """The p-value, with the states expected fewer than five times put together."""
    expected = law * counts.sum()
    large = expected >= 5.0
    observed = np.r_[counts[large], counts[~large].sum()]
    wanted = np.r_[expected[large], expected[~large].sum()]
    keep = wanted > 0.0
    return float(
        stats.chisquare(observed[keep], wanted[keep] * observed.sum() / wanted.sum()).pvalue
    )
