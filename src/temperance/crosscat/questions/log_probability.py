"""How probable rows are, whole or in part, given other cells or not, and how surprising cells are.

With w_vk = log_mass_vk + sum over the known cells of view v of log p(cell | k),

    log p_s(row) = sum over v of log sum over k of exp w_vk,
    p(row)       = mean over s of p_s(row),
    p(x | given) = mean over s of p_s(x, given) / mean over s of p_s(given).

The last line weighs states by the probability that they give to what is given: it is not the mean
of the states' own conditional probabilities. A missing cell has no factor.

    surprisal of cell c = -log p(x_c | x_others)
                        = log mean over s of p_s(x_others) - log mean over s of p_s(x).

Leaving one column out of its view's sum is done with sums from the left and from the right, and
not by taking a term away again, which is undefined where the term is -inf.
"""

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells, column_cells, take_rows
from temperance.crosscat.questions.cell_laws import log_laws
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.views.predictive import StatePredictive, ViewPredictive
from temperance.errors import ArgumentError


def log_sum_exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of the sum of exponentials over the first axis; -inf where every entry is."""
    top = x.max(axis=0)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return shift + np.log(np.exp(x - shift).sum(axis=0))


def log_mean_exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of the mean of exponentials over the first axis."""
    return log_sum_exp(x) - np.log(len(x))


def view_weights(
    posterior: Posterior, view: ViewPredictive, cells: Cells, known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """[K + 1, n] log joint probability of each cluster and a row's cells in the `known` columns."""
    weights = np.repeat(view.log_mass[:, None], cells.num_rows, axis=1)
    for column, law in zip(view.columns, view.predictives, strict=True):
        if known[column]:
            column_of_cells = column_cells(cells, posterior.features, column)
            if not column_of_cells.missing.all():
                weights += log_laws(law, column_of_cells, posterior.log_units[column])
    return weights


def log_by_state(
    posterior: Posterior, cells: Cells, known: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """[S, n] log probability under each state of the rows' cells in the `known` columns."""
    if known is None:
        known = np.ones(posterior.num_columns, bool)
    found = np.zeros((posterior.num_states, cells.num_rows))
    for rows in posterior.blocks(cells, _width(posterior)):
        block = take_rows(cells, rows)
        for state, total in zip(posterior.states, found, strict=True):
            for view in state.views:
                if known[list(view.columns)].any():
                    total[rows] += log_sum_exp(view_weights(posterior, view, block, known))
    return found


def _width(posterior: Posterior) -> int:
    """Numbers that a row needs while its cells in one view are scored."""
    return 4 * max(len(view.log_mass) for state in posterior.states for view in state.views)


def log_score(
    posterior: Posterior, cells: Cells, known: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """[n] log probability of the rows' cells in the `known` columns, states averaged."""
    return log_mean_exp(log_by_state(posterior, cells, known))


def log_conditional(
    posterior: Posterior, cells: Cells, asked: NDArray[np.bool_], given: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """[n] log p(cells in the `asked` columns | cells in the `given` columns)."""
    joint = log_score(posterior, cells, asked | given)
    if not given.any():
        return joint
    evidence = log_score(posterior, cells, given)
    check_possible(evidence)
    return joint - evidence


def check_possible(log_evidence: NDArray[np.float64]) -> None:
    """Nothing follows from cells whose probability is 0."""
    if not np.isfinite(log_evidence).all():
        row = int(np.flatnonzero(~np.isfinite(log_evidence))[0])
        raise ArgumentError(
            f"the known cells of row {row} have probability 0 under every state: nothing follows "
            "from them. Leave out the cell whose value cannot be"
        )


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
