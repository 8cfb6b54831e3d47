"""How finely a column of numbers was recorded, and its centre and scale.

The resolution r of a column is

    the largest step of which every value is a multiple, if the values are whole or have at most six
    decimals: the column is then a grid;
    otherwise the smallest gap between two distinct values, but no less than 1e-9 and no more than
    1e-3 of the standard deviation, and not below the precision that the numbers came with.

Fewer than three values other than zero do not show a step: there it is the last decimal, or 1 of
whole numbers. The centre is the mean, and the scale is the standard deviation or r, whichever is
larger: it is never zero.

Noise uniform on [-r/2, r/2] makes of a recorded number one of the numbers that would have been
recorded so. A density of the noisy column is bounded by about 1/r, whatever repeats in it.
"""

from typing import NamedTuple

import numpy as np

from temperance.crosscat.frames.typed_column import DOUBLE

MOST_DECIMALS = 6
FLOOR, CEILING = 1e-9, 1e-3
# Beyond this a float64 no longer holds every whole number.
WHOLE = 2.0**53
# How far from whole a multiple may be, as a share of a step.
SLACK = 1e-3
# Distinct values that show a step other than the last decimal.
ENOUGH = 3


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
    with np.errstate(over="ignore"):
        gaps = np.diff(values)
    gaps = gaps[(gaps > 0) & np.isfinite(gaps)]
    smallest = float(gaps.min()) if gaps.size else 0.0
    precision = epsilon * float(np.abs(values).max())
    resolution = max(min(smallest, CEILING * spread), FLOOR * spread, precision)
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
        largest = size * 10**decimals
        if largest > WHOLE:
            return 0, 0
        scaled = values * 10.0**decimals
        nearest = np.round(scaled)
        exact = np.all(scaled == nearest) and (not decimals or 4 * DOUBLE * largest <= SLACK)
        close = np.all(np.abs(scaled - nearest) <= 4 * epsilon * np.abs(scaled))
        if exact or (close and 4 * epsilon * largest <= SLACK):
            some = nearest[nearest != 0].astype(np.int64)
            return int(np.gcd.reduce(some)) if some.size >= ENOUGH else 1, decimals
    return 0, 0
