"""Columns found views on partitions that are made for them.

A view that is founded on a draw of the prior (columns.py) almost never explains a column of many
rows. Here the partition is drawn with the column in sight: the rows, in some random order, take
their seats one after the other by (*) of rows.py with this column alone, which has probability

    q(pi) = p(pi) p(X_c | pi) / w(pi),     w(pi) = prod_i p(x_i | the rows before it and their seats),

because each seat is drawn from its conditional law, whose normaliser is the predictive. Among the
other views u and one such partition pi, column c goes to

    view u       with weight (|u| - d)        p(X_c | pi_u)
    a view on pi with weight (alpha + d K)    w(pi).

If c is alone, its own partition is that pi, and w is that of seating its rows where they are.

*Why it is exact.* Let every state carry an order of the rows and, where c has company, a draw pi of
q; the law of all is p(state) q(pi) over orders. Founding a view on pi turns p(pi) p(X_c | pi) into
q(pi) w(pi), so that given pi the weights are the conditional law of where c is. w(pi) is an unbiased
estimate of the evidence of the column alone: a column leaves a view that explains it worse than
clusters of its own would.

All views of a state are searched in this way by a few columns in a sweep, as many as the rows that
are in allow for.
"""

import math
from typing import Any

import numpy as np

from temperance.crosscat import columns, pitman_yor
from temperance.crosscat.clusters import EMPTY
from temperance.crosscat.columns import IntArray, LogMarginal
from temperance.crosscat.compiled import compiled
from temperance.crosscat.grid import draw_index
from temperance.crosscat.partition import Partition
from temperance.crosscat.pitman_yor import PitmanYorGrids
from temperance.crosscat.rows import enter_row, log_predictive, weigh_row
from temperance.crosscat.view import Ground, Hyperparameters, View

# With more rows than this, a share of the columns is searched for.
ROWS_AT_EASE = 20_000


def num_searched(num_columns: int, num_rows: int) -> int:
    """How many columns of a sweep look for a view of their own."""
    return max(1, min(num_columns, math.ceil(num_columns * ROWS_AT_EASE / max(num_rows, 1))))


def draw_seats(view: View, order: IntArray, rng: np.random.Generator) -> float:
    """Rows take their seats in an empty view, in `order`; returns log w of where they sit."""
    return view.run(order, rng, weighed=True)


def log_seats(view: View, order: IntArray, partition: Partition) -> float:
    """Log w of a partition: rows take the seats it names in an empty view, in `order`."""
    view.make_room(partition.num)
    places = np.full(partition.num, -1, np.int64)
    return _log_seats(view.tables, order, partition.labels, places)


@compiled
def _log_seats(tables: Any, order: Any, labels: Any, places: Any) -> float:
    clusters, narrow, wide = tables.clusters, tables.narrow, tables.wide
    log_weight = 0.0
    for row in order:
        total, factor = weigh_row(tables, row)
        log_weight += log_predictive(clusters, narrow, wide, total, factor)
        k = places[labels[row]]
        if k < 0:
            k = clusters.head[EMPTY]
            places[labels[row]] = k
        enter_row(tables, row, k)
    return log_weight


class LoneViews:
    """Views of one column each, made once and cleared after use."""

    def __init__(self, ground: Ground):
        self._ground = ground
        self._made: dict[int, View] = {}

    def empty(self, column: int, alpha: float, d: float, hyper: Hyperparameters) -> View:
        """The view of a column; whoever lets rows in clears it again."""
        if column not in self._made:
            self._made[column] = View(self._ground, (column,), alpha, d)
        view = self._made[column]
        view.set_process(alpha, d)
        view.set_hyper(hyper)
        return view


def search_views(
    view_of_column: IntArray,
    partitions: list[Partition],
    log_marginal: LogMarginal,
    rows: IntArray,
    process: tuple[float, float],
    row_grids: PitmanYorGrids,
    lone_views: LoneViews,
    hyper: Hyperparameters,
    rng: np.random.Generator,
) -> tuple[IntArray, list[Partition]]:
    """Some columns, in random order, stay, join another view or found one made for them."""
    views, held = view_of_column.copy(), list(partitions)
    num = num_searched(len(views), len(rows))
    for column in rng.permutation(len(views))[:num].tolist():
        order = rng.permutation(rows)
        if columns.is_alone(column, views):
            mine = held[views[column]]
            view = lone_views.empty(column, mine.alpha, mine.d, hyper)
            log_weight = log_seats(view, order, mine)
        else:
            view = lone_views.empty(column, *pitman_yor.draw_prior(row_grids, rng), hyper)
            log_weight = draw_seats(view, order, rng)
            mine = view.partition(rows)
        view.clear(rows)
        places = columns.find_proposals(column, views)._replace(auxiliary=(mine,))
        logs = columns.log_prior_weights(places.sizes, 1, *process)
        logs[:-1] += [log_marginal(column, held[view]) for view in places.views]
        logs[-1] += log_weight
        views, held = columns.put(column, views, held, places, draw_index(logs, rng))
    return views, held
