"""A partition of the rows: what a view is made of."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from temperance.crosscat import pitman_yor
from temperance.crosscat.pitman_yor import PitmanYorGrids


@dataclass(frozen=True, eq=False)
class Partition:
    """Clusters 0 ... num - 1 of the rows, -1 where a row is absent, with their law's alpha and d.

    Some numbers may be of no cluster. Two partitions are the same only if they are one object.
    """

    labels: npt.NDArray[np.int32]
    num: int
    alpha: float
    d: float


def draw_partition(
    rows: npt.NDArray[np.int64], num_rows: int, grids: PitmanYorGrids, rng: np.random.Generator
) -> Partition:
    """A partition of `rows` out of `num_rows` from its prior, alpha and d from theirs."""
    alpha, d = pitman_yor.draw_prior(grids, rng)
    seats, num = pitman_yor.draw_partition(rows.size, alpha, d, rng)
    labels = np.full(num_rows, -1, dtype=np.int32)
    labels[rows] = seats
    return Partition(labels, num, alpha, d)
