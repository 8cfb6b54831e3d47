"""The first views of a state: columns enter one after the other, once some rows are in.

Hyperparameters come first. Each column has a view of its own for some sweeps of the rows, which is
then forgotten, but for the column's hyperparameters. Then column c, when its turn comes, draws a
partition pi with itself in sight, and goes among the K views v that columns before it have founded
to

    view v          with weight (|v| - d)        p(X_c | pi_v)
    a view on pi    with weight (alpha + d K)    p(X_c | pi).

That is where a run begins and no step of a chain: nothing need be exact, and it is not. The step of
block_moves.py has w(pi) in place of p(X_c | pi), which is larger because pi is made for c. So
there are too many views at first. But those that belong together are joined soon, whereas one view
that holds too much is taken apart slowly, and a draw of the prior, or the posterior of few rows,
has such views.

Each view has a label for every row of the table, in or not. Where rows are many, those of thirty
views take nearly as much memory as the table. Then columns join before there are views.
"""

import numpy as np

from temperance.crosscat.families.grid import draw_index
from temperance.crosscat.partitions import column_moves, pitman_yor
from temperance.crosscat.partitions.column_moves import IntArray, LogMarginal
from temperance.crosscat.partitions.partition import Partition
from temperance.crosscat.views.block_moves import ROWS_AT_EASE, BlockViews, draw_seats
from temperance.crosscat.views.hyperparameters import Prior, sweep_hyper
from temperance.crosscat.views.row_gibbs import sweep_steps
from temperance.crosscat.views.view import Hyperparameters

# Sweeps of the rows in a column's own view.
SWEEPS = 10
# Searches by all columns before the first views are made, where there are many rows.
SEARCHES = 2


def num_searches(num_rows: int) -> int:
    """How often columns look for views to join before the first views are made."""
    return SEARCHES if num_rows > ROWS_AT_EASE else 0


def learn_hyper(
    num_columns: int,
    rows: IntArray,
    prior: Prior,
    block_views: BlockViews,
    hyper: Hyperparameters,
    rng: np.random.Generator,
) -> None:
    """Hyperparameters, in place, as if each column were alone."""
    for column in range(num_columns):
        view = block_views.empty([column], *pitman_yor.draw_prior(prior.rows, rng), hyper)
        draw_seats(view, rng.permutation(rows), rng)
        for _ in range(SWEEPS):
            sweep_hyper(view, prior, hyper, rng)
            view.run(sweep_steps(rng.permutation(rows)), rng)
        view.clear(rows)


def enter_columns(
    num_columns: int,
    log_marginal: LogMarginal,
    rows: IntArray,
    process: tuple[float, float],
    prior: Prior,
    block_views: BlockViews,
    hyper: Hyperparameters,
    rng: np.random.Generator,
) -> tuple[IntArray, list[Partition]]:
    """The view of each column, and the views' partitions of `rows`."""
    view_of = np.zeros(num_columns, np.int64)
    held: list[Partition] = []
    sizes: list[int] = []
    for column in rng.permutation(num_columns).tolist():
        view = block_views.empty([column], *pitman_yor.draw_prior(prior.rows, rng), hyper)
        draw_seats(view, rng.permutation(rows), rng)
        held.append(view.partition(rows))
        view.clear(rows)
        logs = column_moves.log_prior_weights(sizes, 1, *process)
        chosen = draw_index(logs + [log_marginal(column, partition) for partition in held], rng)
        if chosen < len(sizes):
            held.pop()
        else:
            sizes.append(0)
        view_of[column] = chosen
        sizes[chosen] += 1
    return view_of, held
