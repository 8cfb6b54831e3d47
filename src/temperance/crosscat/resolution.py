"""How finely a column of numbers was recorded, and its centre and scale.

The resolution r of a column is

    the largest step of which every value is a multiple, if the values are whole or have at most six
    decimals: the column is then a grid;
    otherwise the smallest gap between two distinct values.

It is never below 1e-9 of the standard deviation, nor below the precision that the numbers came
with. Zeros do not count, and a column of one whole number has r = 1. The centre is the mean, and
the scale is the standard deviation or r, whichever is larger: it is never zero.

Noise uniform on [-r/2, r/2] makes of a recorded number one of the numbers that would have been
recorded so. A density of the noisy column is bounded by about 1/r, whatever repeats in it.
"""

from typing import NamedTuple

import numpy as np

MOST_DECIMALS = 6
FLOOR = 1e-9
# Beyond this a float64 no longer holds every whole number.
WHOLE = 2.0**53
# How far from whole a multiple may be, as a share of a step.
SLACK = 1e-3


class Measure(NamedTuple):
    """What standardises a column of numbers."""

    centre: float
    scale: float
    resolution: float
    grid: bool


def measure(distinct: np.ndarray, counts: np.ndarray, epsilon: float) -> Measure:
    """Of a column's distinct values, in order, and how often each occurs."""
    values = distinct.astype(np.float64)
    if not values.size:
        return Measure(0.0, 1.0, 1.0, False)
    centre, spread = _moments(values, counts)
    step, decimals = _grid(values, epsilon)
    if step > 0:
        resolution = step / 10**decimals
        return Measure(centre, max(spread, resolution), resolution, True)
    gaps = np.diff(values)
    gaps = gaps[gaps > 0]
    smallest = float(gaps.min()) if gaps.size else 0.0
    precision = epsilon * float(np.abs(values).max())
    resolution = max(smallest, FLOOR * spread, precision)
    return Measure(centre, max(spread, resolution), resolution, False)


def decimals_of(resolution: float) -> int:
    """How many decimals a multiple of the resolution has."""
    for decimals in range(MOST_DECIMALS):
        if _near_whole(resolution * 10**decimals):
            return decimals
    return MOST_DECIMALS


def round_to(values: np.ndarray, resolution: float) -> np.ndarray:
    """The nearest multiples of a grid's resolution, as the decimals that one would write."""
    return np.round(np.round(values / resolution) * resolution, decimals_of(resolution))


def are_whole(values: np.ndarray) -> bool:
    """Whether all are whole numbers, and small enough to be so in truth."""
    if values.dtype.kind in "iub":
        return True
    return bool(np.all(np.abs(values) <= WHOLE) and np.all(values == np.floor(values)))


def _near_whole(value: float) -> bool:
    return round(value) > 0 and abs(value - round(value)) < SLACK * value


def _moments(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation, without overflow for the largest numbers."""
    size = float(np.abs(values).max())
    if size == 0:
        return 0.0, 0.0
    shares = counts / counts.sum()
    scaled = values / size
    mean = float(shares @ scaled)
    return mean * size, float(np.sqrt(shares @ (scaled - mean) ** 2)) * size


def _grid(values: np.ndarray, epsilon: float) -> tuple[int, int]:
    """Step and decimals, such that all values are multiples of step / 10^decimals; or 0, 0."""
    size = float(np.abs(values).max())
    for decimals in range(MOST_DECIMALS + 1):
        if 4 * epsilon * size * 10**decimals > SLACK or size * 10**decimals > WHOLE:
            return 0, 0
        scaled = values * 10.0**decimals
        nearest = np.round(scaled)
        if np.all(np.abs(scaled - nearest) <= 4 * epsilon * np.abs(scaled)):
            return max(int(np.gcd.reduce(nearest.astype(np.int64))), 1), decimals
    return 0, 0
