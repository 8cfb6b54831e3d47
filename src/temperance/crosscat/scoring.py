"""How probable rows are, whole or in part, given other cells or not.

With w_vk = log_mass_vk + sum over the known cells of view v of log p(cell | k),

    log p_s(row) = sum over v of log sum over k of exp w_vk,
    p(row)       = mean over s of p_s(row),
    p(x | given) = mean over s of p_s(x, given) / mean over s of p_s(given).

The last line weighs states by how well they foretell what is given: it is not the mean of the
states' own conditional probabilities. A missing cell has no factor.
"""

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.cells import Cells
from temperance.crosscat.column_cells import column_cells, take_rows
from temperance.crosscat.laws import log_laws
from temperance.crosscat.posterior import Posterior
from temperance.crosscat.predictive import ViewPredictive
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
