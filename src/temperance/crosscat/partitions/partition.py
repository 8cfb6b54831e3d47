"""A partition of the rows: what a view is made of."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from temperance.crosscat.partitions import pitman_yor
from temperance.crosscat.partitions.pitman_yor import PitmanYorGrids


@dataclass(frozen=True, eq=False)
class Partition:
    """Clusters 0 ... num - 1 of the rows that are in, in their order, and their law's alpha and d.

    Two partitions are the same only if they are one object.
    """

    labels: npt.NDArray[np.int32]
    num: int
    alpha: float
    d: float


def draw_partition(num_rows: int, grids: PitmanYorGrids, rng: np.random.Generator) -> Partition:
    """A partition of so many rows from its prior, alpha and d from theirs."""
    alpha, d = pitman_yor.draw_prior(grids, rng)
    seats, num = pitman_yor.draw_partition(num_rows, alpha, d, rng)
    return Partition(seats.astype(np.int32, copy=False), num, alpha, d)
