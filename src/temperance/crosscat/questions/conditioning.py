"""What a row's known cells say about each of its other cells.

Given known cells g, the law of a cell of column c is one mixture over all clusters of all states:

    p(x | g) = sum over s, k of W_sk p_sk(x),
    W_sk     = p_s(g) / sum over s' of p_s'(g)  *  exp(w_vk) / sum over k' of exp(w_vk'),

where v is the view of c in state s. The components p_sk are the same for every row; rows differ in
their weights alone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.questions.cell_laws import concatenate
from temperance.crosscat.questions.log_probability import check_possible, log_sum_exp, view_weights
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.views.predictive import Predictive


class Evidence(NamedTuple):
    """What known cells say about the clusters of some rows.

    Attributes:
        clusters: For each state and view, [K + 1, n] log probability of the clusters given the
            known cells of that view.
        views: For each state, [number of views, n] log probability of a view's known cells.
        states: [S, n] log probability of all known cells under each state.
    """

    clusters: tuple[tuple[NDArray[np.float64], ...], ...]
    views: tuple[NDArray[np.float64], ...]
    states: NDArray[np.float64]


def weigh(posterior: Posterior, cells: Cells, known: NDArray[np.bool_]) -> Evidence:
    """What the cells in the `known` columns say about the rows' clusters."""
    clusters, views = [], []
    for state in posterior.states:
        found = [view_weights(posterior, view, cells, known) for view in state.views]
        totals = [log_sum_exp(weights) for weights in found]
        for weights, total in zip(found, totals, strict=True):
            weights -= np.where(np.isfinite(total), total, 0.0)
        clusters.append(tuple(found))
        views.append(np.stack(totals))
    return Evidence(tuple(clusters), tuple(views), np.stack([v.sum(axis=0) for v in views]))


def state_weights(log_states: NDArray[np.float64]) -> NDArray[np.float64]:
    """[S, n] posterior probability of each state: proportional to what it gave the known cells."""
    total = log_sum_exp(log_states)
    check_possible(total)
    return np.exp(log_states - total)


def mixture_weights(posterior: Posterior, evidence: Evidence, column: int) -> NDArray[np.float64]:
    """[J, n] weights of `components(posterior, column)`, which sum to one."""
    shares = state_weights(evidence.states)
    parts = [
        share * np.exp(clusters[view])
        for share, clusters, view in zip(
            shares, evidence.clusters, posterior.views[:, column], strict=True
        )
    ]
    return np.concatenate(parts)


def components(posterior: Posterior, column: int) -> Predictive:
    """The laws of a column's cells in all clusters of all states, J in all, end to end."""
    return concatenate([posterior.law(state, column) for state in range(posterior.num_states)])
