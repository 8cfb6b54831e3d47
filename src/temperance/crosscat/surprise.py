"""How surprising each cell of a row is, given all the others.

    surprisal of cell c = -log p(x_c | x_others)
                        = log mean over s of p_s(x_others) - log mean over s of p_s(x).

Leaving one column out of its view's sum is done with sums from the left and from the right, and
not by taking a term away again: where a term is -inf that would have no answer.
"""

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.cells import Cells
from temperance.crosscat.column_cells import column_cells, take_rows
from temperance.crosscat.laws import log_laws
from temperance.crosscat.posterior import Posterior
from temperance.crosscat.predictive import StatePredictive
from temperance.crosscat.scoring import log_mean_exp, log_sum_exp


def surprisal(posterior: Posterior, cells: Cells) -> NDArray[np.float64]:
    """[n, C] in nats; NaN where a cell is missing."""
    found = np.empty((cells.num_rows, posterior.num_columns))
    width = max(
        2 * len(view.columns) * len(view.log_mass)
        for state in posterior.states
        for view in state.views
    )
    held = 2 * posterior.num_states * posterior.num_columns
    for rows in posterior.blocks(cells, width + held):
        block = take_rows(cells, rows)
        parts = [_left_out(posterior, state, block) for state in posterior.states]
        joint = log_mean_exp(np.stack([whole for whole, _ in parts]))
        others = log_mean_exp(np.stack([left for _, left in parts]))
        with np.errstate(invalid="ignore"):
            found[rows] = (others - joint).T
    for column in range(posterior.num_columns):
        missing = column_cells(cells, posterior.features, column).missing
        found[missing, column] = np.nan
    return found


def _left_out(
    posterior: Posterior, state: StatePredictive, cells: Cells
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[n] log probability of the rows under a state, and [C, n] of the rows without each column."""
    totals = np.empty((len(state.views), cells.num_rows))
    left = np.empty((posterior.num_columns, cells.num_rows))
    for view, total in zip(state.views, totals, strict=True):
        before = view.log_mass[:, None]
        befores, terms = [], []
        for column, law in zip(view.columns, view.predictives, strict=True):
            of_column = column_cells(cells, posterior.features, column)
            terms.append(log_laws(law, of_column, posterior.log_units[column]))
            befores.append(before)
            before = before + terms[-1]
        total[:] = log_sum_exp(before)
        after = np.zeros_like(before)
        for column, earlier, term in zip(
            reversed(view.columns), reversed(befores), reversed(terms), strict=True
        ):
            left[column] = log_sum_exp(earlier + after)
            after += term
    for number, view in enumerate(state.views):
        rest = np.delete(totals, number, axis=0).sum(axis=0)
        left[list(view.columns)] += rest
    return totals.sum(axis=0), left
