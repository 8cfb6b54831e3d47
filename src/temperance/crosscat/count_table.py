"""What a view keeps of its count features: sums by cluster, and what the next cell may be.

With rate ~ Gamma(a, b) a cluster of n cells with sum s has the posterior Gamma(r, b_n), r = a + s
and b_n = b + n, and the predictive

    p(x) = Gamma(r + x) / (Gamma(r) x!) (b_n / (b_n + 1))^r (1 / (b_n + 1))^x.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from temperance.crosscat.compiled import compiled, inner

SHAPE, CONSTANT, SLOPE = 0, 1, 2


class CountTable(NamedTuple):
    """Sums of the count features of a view."""

    values: Any  # int64[N, F], of the whole table; negative is missing
    place: Any  # int64[f], which columns of `values` are the view's
    hyper: Any  # float64[f, 2]: a, b
    seen: Any  # int64[f, stride]
    sums: Any  # int64[f, stride]
    binomial: Any  # float64[f, 3, stride]: what scores a cell


def count_table(values: Any, place: Any, stride: int) -> CountTable:
    """No row is in, and no hyperparameters are set."""
    num = len(place)
    return CountTable(
        values,
        np.ascontiguousarray(place, np.int64),
        np.zeros((num, 2)),
        np.zeros((num, stride), np.int64),
        np.zeros((num, stride), np.int64),
        np.zeros((num, 3, stride)),
    )


@inner
def add_logs(group: Any, row: int, used: int, logs: Any) -> None:
    """Adds the log predictives of the row's cells to `logs` of every place."""
    values, place, binomial = group.values, group.place, group.binomial
    for f in range(place.shape[0]):
        x = values[row, place[f]]
        if x >= 0:
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
        if x >= 0:
            group.seen[f, k] += sign
            group.sums[f, k] += sign * x
            predict_place(group, f, k)


@inner
def predict_place(group: Any, f: int, k: int) -> None:
    """What scores the next cell of feature f at place k."""
    a, b = group.hyper[f]
    shape, rate = a + group.sums[f, k], b + group.seen[f, k]
    binomial = group.binomial[f]
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
            if x >= 0:
                group.seen[f, labels[row]] += 1
                group.sums[f, labels[row]] += x


@compiled
def refresh(group: Any) -> None:
    """What scores cells, of all places, from sums and hyperparameters."""
    for f in range(group.place.shape[0]):
        for k in range(group.seen.shape[1]):
            predict_place(group, f, k)


def widened(group: CountTable, wider: int) -> CountTable:
    """The same sums with room for more places; what scores is to be refreshed."""
    more = wider - group.seen.shape[1]
    return group._replace(
        seen=np.pad(group.seen, ((0, 0), (0, more))),
        sums=np.pad(group.sums, ((0, 0), (0, more))),
        binomial=np.zeros((len(group.place), 3, wider)),
    )
