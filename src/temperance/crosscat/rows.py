"""Rows enter and leave a view: the collapsed Gibbs step, its halves apart.

A row x enters the cluster at place k with probability proportional to

    mass_k  prod_f p(x_f | the cells of feature f in cluster k),                                      (*)

the Pitman-Yor mass of the place (clusters.py) times the predictives of its cells (categorical_table.py, real_table.py,
count_table.py). The sum of (*) over places, divided by n + alpha, is the row's predictive p(x | pi).

`weigh_row` fills the weights (*), and `draw_place` draws from them. `run_steps` follows a list of steps, each an entry or a
removal; what the list is makes the strategy (schedules.py). Views do not see each other: given their columns each follows
the same list alone.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from temperance.crosscat import categorical_table, count_table, real_table
from temperance.crosscat.clusters import EMPTY, FULL, NUM_ROWS, USED, seat, unseat

LEAST, MOST = 1e-290, 1e290


class ViewTables(NamedTuple):
    """All that a view keeps of its rows."""

    clusters: Any
    narrow: Any
    wide: Any
    real: Any
    count: Any
    weights: Any  # float64[stride], of the row at hand, up to a factor
    logs: Any  # float64[stride]


@njit(cache=True, nogil=True)
def _has_logs(tables: Any) -> bool:
    return tables.real.place.shape[0] + tables.count.place.shape[0] > 0


@njit(cache=True, nogil=True)
def _find(tables: Any, row: int) -> None:
    categorical_table.find_slots(tables.narrow, row)
    categorical_table.find_slots(tables.wide, row)


@njit(cache=True, nogil=True)
def _change(tables: Any, row: int, k: int, sign: int) -> None:
    """The row, whose slots are found, is counted at place k, or no longer."""
    size = tables.clusters.size
    stride = size.shape[0]
    if tables.narrow.place.shape[0] > 0:
        categorical_table.change_counts(tables.narrow, k, stride, sign)
        categorical_table.divide_place(tables.narrow, k, stride, size[k])
    if tables.wide.place.shape[0] > 0:
        categorical_table.change_counts(tables.wide, k, stride, sign)
        categorical_table.divide_place(tables.wide, k, stride, size[k])
    real_table.change_sums(tables.real, row, k, sign)
    count_table.change_sums(tables.count, row, k, sign)


@njit(cache=True, nogil=True)
def _enter(tables: Any, row: int, k: int) -> None:
    seat(tables.clusters, row, k)
    _change(tables, row, k, 1)


@njit(cache=True, nogil=True)
def enter_row(tables: Any, row: int, k: int) -> None:
    """A row enters place k: a cluster, or the empty table."""
    _find(tables, row)
    _enter(tables, row, k)


@njit(cache=True, nogil=True)
def leave_row(tables: Any, row: int) -> int:
    """A row leaves; returns the place it leaves."""
    _find(tables, row)
    k = unseat(tables.clusters, row)
    _change(tables, row, k, -1)
    return k


@njit(cache=True, nogil=True)
def weigh_row(tables: Any, row: int) -> tuple[float, float]:
    """Fills `weights` with (*) up to a factor; returns their sum and the factor's log."""
    clusters = tables.clusters
    _find(tables, row)
    used, stride = clusters.head[USED], clusters.size.shape[0]
    weights = tables.weights
    for k in range(used):
        weights[k] = clusters.mass[k]
    if tables.narrow.place.shape[0] > 0:
        categorical_table.multiply_cells(tables.narrow, used, stride, weights)
    if tables.wide.place.shape[0] > 0:
        categorical_table.multiply_cells(tables.wide, used, stride, weights)
    factor = 0.0
    if _has_logs(tables):
        factor = _log_part(tables, row, used)
        for k in range(used):
            if weights[k] > 0.0:
                weights[k] *= math.exp(tables.logs[k] - factor)
    total = _sum(weights, used)
    if not LEAST < total < MOST:
        return _weigh_by_logs(tables, row, used)
    return total, factor


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _sum(weights: Any, used: int) -> float:
    total = 0.0
    for k in range(used):
        total += weights[k]
    return total


@njit(cache=True, nogil=True)
def _log_part(tables: Any, row: int, used: int) -> float:
    """Fills `logs` with the features that are scored by logarithms; returns the largest that counts."""
    logs = tables.logs
    for k in range(used):
        logs[k] = 0.0
    real_table.add_logs(tables.real, row, used, logs)
    count_table.add_logs(tables.count, row, used, logs)
    largest = -math.inf
    for k in range(used):
        if tables.clusters.mass[k] > 0.0:
            largest = max(largest, logs[k])
    return largest


@njit(cache=True, nogil=True)
def _weigh_by_logs(tables: Any, row: int, used: int) -> tuple[float, float]:
    """The same weights by logarithms throughout."""
    clusters, weights, logs = tables.clusters, tables.weights, tables.logs
    stride = clusters.size.shape[0]
    _log_part(tables, row, used)
    largest = -math.inf
    for k in range(used):
        if clusters.mass[k] > 0.0:
            logs[k] += math.log(clusters.mass[k])
            logs[k] += categorical_table.log_cells(tables.narrow, k, stride, clusters.size[k])
            logs[k] += categorical_table.log_cells(tables.wide, k, stride, clusters.size[k])
            largest = max(largest, logs[k])
    for k in range(used):
        weights[k] = math.exp(logs[k] - largest) if clusters.mass[k] > 0.0 else 0.0
    return _sum(weights, used), largest


@njit(cache=True, nogil=True)
def log_predictive(tables: Any, total: float, factor: float) -> float:
    """log p(x | pi) of the row that was weighed."""
    clusters = tables.clusters
    return (
        math.log(total)
        + factor
        + categorical_table.log_frequency(tables.narrow)
        + categorical_table.log_frequency(tables.wide)
        - math.log(clusters.head[NUM_ROWS] + clusters.params[0])
    )


@njit(cache=True, nogil=True)
def draw_place(tables: Any, total: float, rng: Any) -> int:
    """A place, with probability proportional to `weights`."""
    left = rng.random() * total
    used = tables.clusters.head[USED]
    chosen = 0
    for k in range(used):
        weight = tables.weights[k]
        if weight > 0.0:
            chosen = k
            left -= weight
            if left < 0.0:
                break
    return chosen


@njit(cache=True, nogil=True)
def run_steps(tables: Any, steps: Any, begin: int, rng: Any, weighed: bool) -> tuple[int, float]:
    """Follows `steps` from `begin`: row r enters where a step is r, and leaves where it is -1 - r.

    Returns how far it came, which is short of the end where all places are taken and more room is needed, and the sum of
    log p(x | pi) over entries less that over removals if `weighed`, and 0 otherwise.
    """
    log_weight = 0.0
    for i in range(begin, steps.shape[0]):
        if tables.clusters.head[EMPTY] == FULL:
            return i, log_weight
        step = steps[i]
        if step >= 0:
            total, factor = weigh_row(tables, step)
            if weighed:
                log_weight += log_predictive(tables, total, factor)
            _enter(tables, step, draw_place(tables, total, rng))
        else:
            leave_row(tables, -1 - step)
            if weighed:
                total, factor = weigh_row(tables, -1 - step)
                log_weight -= log_predictive(tables, total, factor)
    return steps.shape[0], log_weight
