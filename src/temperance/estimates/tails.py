"""How heavy the tail of a variable is: the shape of a generalised Pareto law of its largest values.

With shape k the moments of order below 1 / k exist: from 1/2 upwards there is no variance, from 1
upwards no mean. The fit is that of Zhang and Stephens (2009) with the weak prior of Vehtari et al.
(2024), by which ten values at k = 1/2 are added.
"""

import numpy as np
import numpy.typing as npt

PRIOR_WEIGHT, PRIOR_SHAPE = 10.0, 0.5
# Of how many values at least a tail is told, and how much larger the wide tail is than the narrow.
FEWEST_VALUES, NARROW = 300, 3
FEWEST_RATIOS = 5
# Values that are that many times further out than the next, beside the very largest, lie apart.
APART, LARGEST = 5.0, 10


def tail_shape(values: npt.ArrayLike) -> float:
    """Of the distances of `values` from their median.

    The smaller of two fits: to the largest 3 sqrt(n) of n values, and to a third of these. NaN for
    few values, and where the largest lie apart from the others: a mode far away is no tail.
    """
    flat = np.ravel(np.asarray(values, float))
    if flat.size < FEWEST_VALUES or not np.isfinite(flat).all():
        return np.nan
    away = np.abs(flat - np.median(flat))
    wide = int(min(0.2 * away.size, 3 * np.sqrt(away.size)))
    largest = np.sort(np.partition(away, away.size - wide - 1)[-wide - 1 :])
    if (largest[1:-LARGEST] > APART * largest[: -LARGEST - 1]).any():
        return np.nan
    both = [pareto_shape(largest[-n:] - largest[-n - 1]) for n in (wide, wide // NARROW)]
    return float(np.min(both))


def ratio_shape(log_ratios: npt.ArrayLike) -> float:
    """Of the upper tail of positive numbers that are given by their logarithms.

    The mean of independent ratios is reliable for shapes below 0.7, and its variance exists below
    0.5 (Vehtari et al. 2024). NaN with fewer than 25 that are finite.
    """
    logs = np.ravel(np.asarray(log_ratios, float))
    logs = np.sort(logs[np.isfinite(logs)])
    wide = int(min(0.2 * logs.size, 3 * np.sqrt(logs.size)))
    if wide < FEWEST_RATIOS:
        return np.nan
    largest = np.exp(logs[-wide - 1 :] - logs[-1])
    return pareto_shape(largest[1:] - largest[0])


def pareto_shape(excesses: npt.NDArray[np.float64]) -> float:
    """The shape of sorted excesses over a threshold, by their mean likelihood over a grid."""
    n = excesses.size
    quartile, largest = excesses[int(n / 4 + 0.5) - 1], excesses[-1]
    if not quartile > 0.0:
        return np.nan
    num = 30 + int(np.sqrt(n))
    grid = 1.0 / largest + (1.0 - np.sqrt(num / (np.arange(1, num + 1) - 0.5))) / (3.0 * quartile)
    shapes = np.log1p(-grid[:, None] * excesses).mean(axis=1)
    logs = n * (np.log(-grid / shapes) - shapes - 1.0)
    weights = np.exp(logs - logs.max())
    best = np.sum(grid * weights) / weights.sum()
    shape = float(np.log1p(-best * excesses).mean())
    return (n * shape + PRIOR_WEIGHT * PRIOR_SHAPE) / (n + PRIOR_WEIGHT)
