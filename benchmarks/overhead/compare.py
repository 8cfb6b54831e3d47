"""Ratios of costs that survive a busy machine, and whether two samplers draw from one law.

Loops take turns, so that whatever else the machine does falls on all of them alike. A ratio is the
median over rounds of the ratio of CPU times within one round, and `low` and `high` its quartiles. The
ratio of the least times would be steadier on an idle machine and is fooled by a busy one.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from programs import Loop

from temperance.estimates.diagnostics import standard_error


class Cost(NamedTuple):
    """Median CPU time of a sweep, and its ratio to that of the last loop."""

    name: str
    microseconds: float
    ratio: float
    low: float
    high: float


def costs(loops: Sequence[Loop], num_sweeps: int, num_rounds: int) -> list[Cost]:
    """What a sweep costs in each of `loops`, the last of which is the measure of the others."""
    for loop in loops:
        loop.run(num_sweeps)
    seconds = np.zeros((num_rounds, len(loops)))
    for turn in range(num_rounds):
        # Each loop follows each other one equally often: what a loop leaves in the caches counts.
        for place in np.roll(np.arange(len(loops)), turn):
            began = time.process_time()
            loops[place].run(num_sweeps)
            seconds[turn, place] = time.process_time() - began
    sweeps = 1e6 * np.median(seconds, axis=0) / num_sweeps
    low, ratio, high = np.quantile(seconds / seconds[:, -1:], [0.25, 0.5, 0.75], axis=0)
    return [
        Cost(loop.name, *row) for loop, *row in zip(loops, sweeps, ratio, low, high, strict=True)
    ]


def largest_z(one: np.ndarray, other: np.ndarray) -> float:
    """The largest z of a difference in mean or mean square; draws are (draw, chain, d)."""

    def moments(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        series = np.swapaxes(np.asarray(draws), 0, 1)
        both = np.concatenate([series, series**2], axis=-1)
        return both.mean(axis=(0, 1)), standard_error(both)

    (mean_one, error_one), (mean_other, error_other) = moments(one), moments(other)
    return float(np.max(np.abs(mean_one - mean_other) / np.hypot(error_one, error_other)))
