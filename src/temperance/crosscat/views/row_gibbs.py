"""Rows enter and leave a view: the collapsed Gibbs step, its halves apart.

A row x enters the cluster at place k with probability proportional to

    mass_k  prod_f p(x_f | the cells of feature f in cluster k),                             (*)

the Pitman-Yor mass of the place (clusters.py) times the predictives of its cells
(categorical_statistics.py, real_statistics.py, count_statistics.py). The sum of (*) over places,
divided by n + alpha, is the row's predictive p(x | pi).

`weigh_row` fills the weights (*), and `draw_place` draws from them. `run_steps` follows a list of
steps, each an entry or a removal; what the list is makes the strategy (schedules.py). Views do not
see each other: given their columns each follows the same list alone.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from temperance.crosscat.compilation import compiled, inner, reordered
from temperance.crosscat.views import count_statistics, real_statistics
from temperance.crosscat.views.categorical_statistics import (
    change_counts,
    find_slots,
    log_cells,
    log_frequency,
    multiply_cells,
)
from temperance.crosscat.views.clusters import EMPTY, FULL, NUM_ROWS, USED, seat, unseat

LEAST, MOST = 1e-290, 1e290
# Products of so many predictives hardly ever leave that range.
FEW = 128


class ViewTables(NamedTuple):
    """All that a view keeps of its rows."""

    clusters: Any
    narrow_codes: Any  # uint8[N, F], of the whole table
    wide_codes: Any  # int32[N, F]
    narrow: Any
    wide: Any
    real: Any
    count: Any
    weights: Any  # float64[stride], of the row at hand, up to a factor
    logs: Any  # float64[stride]


@compiled
def enter_row(tables: Any, row: int, k: int) -> None:
    """A row enters place k: a cluster, or the empty table."""
    find_slots(tables.narrow_codes, tables.narrow, row)
    find_slots(tables.wide_codes, tables.wide, row)
    seat(tables.clusters, row, k)
    _change(tables.narrow, tables.wide, tables.real, tables.count, tables.clusters.size, row, k, 1)


@compiled
def leave_row(tables: Any, row: int) -> int:
    """A row leaves; returns the place it leaves."""
    find_slots(tables.narrow_codes, tables.narrow, row)
    find_slots(tables.wide_codes, tables.wide, row)
    k = unseat(tables.clusters, row)
    _change(tables.narrow, tables.wide, tables.real, tables.count, tables.clusters.size, row, k, -1)
    return k


@compiled
def weigh_row(tables: Any, row: int) -> tuple[float, float]:
    """Fills `weights` with (*) up to a factor; returns their sum and the factor's log."""
    find_slots(tables.narrow_codes, tables.narrow, row)
    find_slots(tables.wide_codes, tables.wide, row)
    return _weigh(
        tables.clusters, tables.narrow, tables.wide, tables.real, tables.count, tables.weights,
        tables.logs, row,
    )  # fmt: skip


@inner
def _change(
    narrow: Any, wide: Any, real: Any, count: Any, size: Any, row: int, k: int, sign: int
) -> None:
    """The row, whose slots are found, is counted at place k, or no longer."""
    change_counts(narrow, k, size, sign)
    if wide.place.shape[0] > 0:
        change_counts(wide, k, size, sign)
    if real.place.shape[0] > 0:
        real_statistics.change_sums(real, row, k, sign)
    if count.place.shape[0] > 0:
        count_statistics.change_sums(count, row, k, sign)


@inner
def _weigh(
    clusters: Any, narrow: Any, wide: Any, real: Any, count: Any, weights: Any, logs: Any, row: int
) -> tuple[float, float]:
    """Weights of the row whose slots are found."""
    used = clusters.head[USED]
    for k in range(used):
        weights[k] = clusters.mass[k]
    multiply_cells(narrow, used, weights, True)
    if wide.place.shape[0] > 0:
        multiply_cells(wide, used, weights, True)
    factor = 0.0
    if real.place.shape[0] + count.place.shape[0] > 0:
        logs[:used] = 0.0
        real_statistics.add_logs(real, row, used, logs)
        count_statistics.add_logs(count, row, used, logs)
        factor = _multiply_logs(clusters.mass, logs, used, weights)
    total = _sum(weights, used)
    if not LEAST < total < MOST:
        total, factor = _weigh_by_logs(clusters, narrow, wide, real, count, weights, logs, row)
    return total, factor


@inner
def _multiply_logs(mass: Any, logs: Any, used: int, weights: Any) -> float:
    """Multiplies exp(logs) into weights, over the largest that counts, whose log is returned."""
    largest = -math.inf
    for k in range(used):
        if mass[k] > 0.0:
            largest = max(largest, logs[k])
    for k in range(used):
        if mass[k] > 0.0:
            weights[k] *= math.exp(logs[k] - largest)
    return largest


@reordered
def _sum(weights: Any, used: int) -> float:
    total = 0.0
    for k in range(used):
        total += weights[k]
    return total


@inner
def _weigh_by_logs(
    clusters: Any, narrow: Any, wide: Any, real: Any, count: Any, weights: Any, logs: Any, row: int
) -> tuple[float, float]:
    """The same weights by logarithms throughout."""
    used = clusters.head[USED]
    logs[:used] = 0.0
    real_statistics.add_logs(real, row, used, logs)
    count_statistics.add_logs(count, row, used, logs)
    for k in range(used):
        weights[k] = 0.0
        if clusters.mass[k] > 0.0:
            weights[k] = 1.0
            logs[k] += math.log(clusters.mass[k])
            logs[k] += log_cells(narrow, k, clusters.size) + log_cells(wide, k, clusters.size)
    factor = _multiply_logs(clusters.mass, logs, used, weights)
    return _sum(weights, used), factor


@inner
def log_predictive(clusters: Any, narrow: Any, wide: Any, total: float, factor: float) -> float:
    """Log p(x | pi) of the row that was weighed."""
    return (
        math.log(total / (clusters.head[NUM_ROWS] + clusters.params[0]))
        + factor
        + log_frequency(narrow)
        + log_frequency(wide)
    )


@inner
def draw_place(weights: Any, used: int, total: float, first: int, rng: Any) -> int:
    """A place, with probability proportional to `weights`, whose sum is `total`.

    Place `first` is looked at before the others: it is soon found if it is the likely one.
    """
    first = min(first, used - 1)
    left = rng.random() * total - weights[first]
    if left < 0.0:
        return first
    chosen = first
    for k in range(used):
        if weights[k] > 0.0 and k != first:
            chosen = k
            left -= weights[k]
            if left < 0.0:
                break
    return chosen


@compiled
def run_steps(tables: Any, steps: Any, begin: int, rng: Any, weighed: bool) -> tuple[int, float]:
    """Follows `steps` from `begin`: row r enters where a step is r, and leaves where it is -1 - r.

    Returns how far it came, which is short of the end where all places are taken and more room is
    needed, and, if `weighed`, the sum of log p(x | pi) over entries less that over removals.
    """
    # Taken apart once: a tuple's arrays are counted references, and counting costs in a loop.
    clusters, narrow, wide = tables.clusters, tables.narrow, tables.wide
    real, count, weights, logs = tables.real, tables.count, tables.weights, tables.logs
    narrow_codes, wide_codes = tables.narrow_codes, tables.wide_codes
    head, size, mass = clusters.head, clusters.size, clusters.mass
    num_wide, num_real, num_count = wide.place.shape[0], real.place.shape[0], count.place.shape[0]
    # Products of a few narrow features are all there is to score.
    num_narrow = narrow.place.shape[0]
    quick = num_wide + num_real + num_count == 0 and num_narrow <= FEW and not weighed
    log_weight, at_hand, last = 0.0, -1, 0
    for i in range(begin, steps.shape[0]):
        if head[EMPTY] == FULL:
            return i, log_weight
        sign = 1 if steps[i] >= 0 else -1
        row = steps[i] if sign > 0 else -1 - steps[i]
        if row != at_hand:
            at_hand = row
            find_slots(narrow_codes, narrow, row)
            if num_wide > 0:
                find_slots(wide_codes, wide, row)
        if sign < 0:
            last = k = unseat(clusters, row)
        else:
            used, total = head[USED], 0.0
            if quick:
                for j in range(used):
                    weights[j] = mass[j]
                multiply_cells(narrow, used, weights, False)
                total = _sum(weights, used)
            if not LEAST < total < MOST:
                total, factor = _weigh(clusters, narrow, wide, real, count, weights, logs, row)
                if weighed:
                    log_weight += log_predictive(clusters, narrow, wide, total, factor)
            k = draw_place(weights, used, total, last, rng)
            seat(clusters, row, k)
        # As `_change` does, and written out: with a call of it the loop takes a third longer.
        change_counts(narrow, k, size, sign)
        if num_wide > 0:
            change_counts(wide, k, size, sign)
        if num_real > 0:
            real_statistics.change_sums(real, row, k, sign)
        if num_count > 0:
            count_statistics.change_sums(count, row, k, sign)
        if weighed and sign < 0:
            total, factor = _weigh(clusters, narrow, wide, real, count, weights, logs, row)
            log_weight -= log_predictive(clusters, narrow, wide, total, factor)
    return steps.shape[0], log_weight


def sweep_steps(rows: np.ndarray) -> np.ndarray:
    """Steps by which each of some rows leaves, and comes back before the next one leaves."""
    return np.stack([-1 - rows, rows], axis=1).ravel()
