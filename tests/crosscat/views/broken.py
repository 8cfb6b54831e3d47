"""Broken twins of the steps of rows and of the moves of blocks: each has one mistake."""

from typing import Any

import numpy as np

from temperance.crosscat.views import block_moves
from temperance.crosscat.views.clusters import EMPTY
from temperance.crosscat.views.row_gibbs import weigh_row
from temperance.crosscat.views.view import View


def drop_the_discount(view: View, row: int) -> np.ndarray:
    """Clusters have mass n_k, and a new one alpha."""
    alpha, _ = view.tables.clusters.params
    view.set_process(alpha, 0.0)
    weigh_row(view.tables, row)
    return view.tables.weights


def forget_the_clusters(view: View, row: int) -> np.ndarray:
    """The empty table has mass alpha, whatever the number of clusters."""
    clusters = view.tables.clusters
    clusters.mass[clusters.head[EMPTY]] = clusters.params[0]
    weigh_row(view.tables, row)
    return view.tables.weights


def count_missing_cells(view: View, row: int) -> np.ndarray:
    """A cluster's denominator counts rows whose cell is missing."""
    tables: Any = view.tables
    missing, stride = tables.narrow.missing, len(tables.clusters.size)
    for f in range(tables.narrow.num_full, len(missing)):
        at = slice(missing[f] * stride, (missing[f] + 1) * stride)
        tables.narrow.inverse[:stride] *= tables.narrow.table[at] / (
            tables.narrow.total[f] + tables.clusters.size
        )
    weigh_row(tables, row)
    return tables.weights


def plain_squares(values: np.ndarray, steps: list[int]) -> float:
    """Squares about the mean after entries and removals, from sums in double precision alone."""
    num, total, squares = 0, 0.0, 0.0
    for step in steps:
        sign, x = (1, values[step]) if step >= 0 else (-1, values[-1 - step])
        num, total, squares = num + sign, total + sign * x, squares + sign * x * x
    return float(squares - total * total / num)


def look_twice(
    weights: np.ndarray, used: int, total: float, first: int, rng: np.random.Generator
) -> int:
    """The place that is looked at first is looked at again among the others."""
    if rng.random() * total < weights[first]:
        return first
    return int(rng.choice(used, p=weights[:used] / total))


def weigh_by_the_marginal(log_weight: float, log_marginal: float) -> float:
    """The partition that a block was seated by scores as if it had been there before."""
    return log_marginal


def let_any_view_be_joined(block, inside, view_of_column):
    """Views with other columns of the set can be joined, and not be left again."""
    return block_moves.open_views(block, np.zeros_like(inside), view_of_column)


def count_the_block_once(num, sizes, num_views, alpha, d):
    """A block has the prior weight of one column."""
    return block_moves.log_block_weights(1, sizes, num_views, alpha, d)
