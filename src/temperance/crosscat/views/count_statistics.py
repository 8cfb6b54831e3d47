"""What a view keeps of its count features: sums by cluster, and what the next cell may be.

With rate ~ Gamma(a, b) a cluster of n cells with sum s has the posterior Gamma(r, b_n), r = a + s
and b_n = b + n, and the predictive

    p(x) = Gamma(r + x) / (Gamma(r) x!) (b_n / (b_n + 1))^r (1 / (b_n + 1))^x.
"""

import math
from typing import Any

import numpy as np

from temperance.crosscat.compilation import compiled, inner
from temperance.crosscat.views.number_statistics import NumberStatistics, no_numbers

SHAPE, CONSTANT, SLOPE = 0, 1, 2


def count_statistics(values: Any, place: Any, stride: int) -> NumberStatistics:
    """No row is in. Values are int64, negative where missing, and `hyper` a and b."""
    return no_numbers(values, place, 2, np.zeros((len(place), stride), np.int64), 3)


@inner
def is_known(x: int) -> bool:
    """Whether a cell is not missing."""
    return x >= 0


@inner
def add_logs(group: Any, row: int, used: int, logs: Any) -> None:
    """Adds the log predictives of the row's cells to `logs` of every place."""
    values, place, binomial = group.values, group.place, group.law
    for f in range(place.shape[0]):
        x = values[row, place[f]]
        if is_known(x):
            choose = math.lgamma(x + 1.0)
            for k in range(used):
                logs[k] += (
                    math.lgamma(binomial[f, SHAPE, k] + x)
                    - choose
                    + binomial[f, CONSTANT, k]
                    + binomial[f, SLOPE, k] * x
                )


@inner
def change_sums(group: Any, row: int, k: int, sign: int) -> None:
    """A row enters place k (sign 1) or leaves it (-1)."""
    for f in range(group.place.shape[0]):
        x = group.values[row, group.place[f]]
        if is_known(x):
            count_cell(group, f, k, x, sign)
            predict_place(group, f, k)


@inner
def count_cell(group: Any, f: int, k: int, x: int, sign: int) -> None:
    """A cell enters the sums of place k (sign 1) or leaves them (-1)."""
    group.seen[f, k] += sign
    group.sums[f, k] += sign * x


@inner
def predict_place(group: Any, f: int, k: int) -> None:
    """What scores the next cell of feature f at place k."""
    a, b = group.hyper[f]
    shape, rate = a + group.sums[f, k], b + group.seen[f, k]
    binomial = group.law[f]
    binomial[SHAPE, k] = shape
    binomial[CONSTANT, k] = shape * (math.log(rate) - math.log(rate + 1.0)) - math.lgamma(shape)
    binomial[SLOPE, k] = -math.log(rate + 1.0)


@compiled
def recount(group: Any, labels: Any, rows: Any) -> None:
    """All sums again, of the rows that are in."""
    group.seen[:] = 0
    group.sums[:] = 0
    for row in rows:
        for f in range(group.place.shape[0]):
            x = group.values[row, group.place[f]]
            if is_known(x):
                count_cell(group, f, int(labels[row]), x, 1)


@compiled
def refresh(group: Any) -> None:
    """What scores cells, of all places, from sums and hyperparameters."""
    for f in range(group.place.shape[0]):
        for k in range(group.seen.shape[1]):
            predict_place(group, f, k)
