"""log p(X_c | pi) of many columns on one partition, in one reading of the rows.

A row of narrow cells lies in one or two lines of memory. Read column by column, each line is
fetched once for each column; read row by row it is fetched once.

What no partition changes, the factorials of counts, is read once for all of them. It does not
cancel where a view is founded on a partition that rows took with the column in sight
(block_moves.py), because their predictives have it too.
"""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from temperance.crosscat.compilation import compiled
from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.features import COUNT, NARROW, REAL, WIDE, Features
from temperance.crosscat.families import dirichlet, gamma_poisson, normal
from temperance.crosscat.families.grid import FloatArray
from temperance.crosscat.partitions.partition import Partition

IntArray = npt.NDArray[np.int64]


class TableScores:
    """Log p(column | partition): all columns at once, when a partition is first asked about.

    It does not change while rows stay where they are, and is kept as long as the partition lives.
    """

    def __init__(self, score_all: Callable[[Partition], FloatArray]):
        self._score_all = score_all
        self._known: WeakKeyDictionary[Partition, FloatArray] = WeakKeyDictionary()

    def __call__(self, column: int, partition: Partition) -> float:
        if partition not in self._known:
            self._known[partition] = self._score_all(partition)
        return float(self._known[partition][column])


@compiled
def gather_all(
    cells: dirichlet.Codes,
    start: IntArray,
    labels: npt.NDArray[np.int32],
    rows: IntArray,
    num_slots: int,
    num: int,
) -> dirichlet.Counts:
    """Counts of slot by cluster of every column of `cells` in `rows`, whose slots begin at `start`.

    The last slot of a column counts its missing cells.
    """
    counts = np.zeros((num_slots, num), dtype=np.int32)
    for i in range(rows.size):
        row, label = rows[i], labels[i]
        for place in range(start.size):
            counts[start[place] + cells[row, place], label] += 1
    return counts


def log_marginals(
    cells: Cells,
    features: Features,
    hyper: Sequence[FloatArray],
    partition: Partition,
    rows: IntArray,
) -> FloatArray:
    """Log p(X_c | pi) of every column c over `rows`, less `log_bases`."""
    scores = np.zeros(int(features.column.max(initial=-1)) + 1)
    labels, num = partition.labels, partition.num
    for family in (NARROW, WIDE):
        chosen = features.of_family(family)
        if not chosen.size:
            continue
        ends = np.cumsum(features.num_values[chosen] + 2)
        start = np.r_[0, ends[:-1]]
        counts = gather_all(cells[family], start, labels, rows, int(ends[-1]), num)
        for f, first, end in zip(chosen, start, ends, strict=True):
            scores[features.column[f]] += dirichlet.log_marginal(
                counts[first : end - 1], num, hyper[f]
            )
    for place, f in enumerate(features.of_family(REAL)):
        moments = normal.gather(cells.real, place, labels, rows, num)
        scores[features.column[f]] += normal.log_marginal(*moments, num, hyper[f])
    for place, f in enumerate(features.of_family(COUNT)):
        sums = gamma_poisson.gather(cells.count, place, labels, rows, num)
        scores[features.column[f]] += gamma_poisson.log_marginal(*sums, num, hyper[f])
    return scores


def log_bases(cells: Cells, features: Features, rows: IntArray) -> FloatArray:
    """What log p(X_c | pi) has over `rows` whatever the partition, of every column c."""
    bases = np.zeros(int(features.column.max(initial=-1)) + 1)
    for place, f in enumerate(features.of_family(COUNT)):
        bases[features.column[f]] += gamma_poisson.log_base(cells.count, place, rows)
    return bases


def table_scores(
    cells: Cells, features: Features, hyper: Sequence[FloatArray], rows: IntArray
) -> TableScores:
    """Log p(X_c | pi) of the columns of a table over `rows`."""
    bases = log_bases(cells, features, rows)
    return TableScores(
        lambda partition: bases + log_marginals(cells, features, hyper, partition, rows)
    )
