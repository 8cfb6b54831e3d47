"""Which columns belong together, and which rows.

The *dependence* of two columns is the share of states that have them in the same view: the
posterior probability that they are modelled together.

The *similarity* of two rows is the probability that they share a cluster, averaged over a state's
views and over states; `among columns` it is averaged over the views of those columns. A training
row has its cluster. A new row i has probabilities q_i(k) of the clusters given its own cells, and
the states are weighed by what they gave those cells:

    similarity(i, j) = sum over s of W_s mean over v of sum over k of q_i(k) q_j(k),
    W_s proportional to p_s(x_i) p_s(x_j),  with a factor 1 for a training row.

New rows are taken one at a time: one that opens a cluster of its own shares it with no other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.questions.conditioning import weigh
from temperance.crosscat.questions.log_probability import log_sum_exp
from temperance.crosscat.questions.posterior import Posterior
from temperance.errors import ArgumentError


def dependence(posterior: Posterior) -> NDArray[np.float64]:
    """[C, C] share of states in which two columns are in the same view."""
    views = posterior.views
    return (views[:, :, None] == views[:, None, :]).mean(axis=0)


class _Rows(NamedTuple):
    """Rows to compare: clusters of training rows by index, or probabilities of new ones."""

    num: int
    indices: NDArray[np.int64] | None
    clusters: tuple[tuple[NDArray[np.float64], ...], ...]
    log_states: NDArray[np.float64]


def similarity(
    posterior: Posterior,
    rows: Cells | NDArray[np.int64],
    among: Cells | NDArray[np.int64],
    columns: Sequence[int] | None = None,
) -> NDArray[np.float64]:
    """[rows, among] similarities; indices are training rows, cells are new ones."""
    first, second = _compared(posterior, rows), _compared(posterior, among)
    weights = first.log_states[:, :, None] + second.log_states[:, None, :]
    weights = np.exp(weights - log_sum_exp(weights))
    found = np.zeros((first.num, second.num))
    for number, state in enumerate(posterior.states):
        asked = posterior.views[number][list(columns)] if columns is not None else None
        views = range(len(state.views)) if asked is None else np.unique(asked)
        for view in views:
            shared = _shared(posterior, first, second, number, int(view))
            found += np.broadcast_to(weights[number], found.shape) * shared / len(views)
    return found


def _compared(posterior: Posterior, rows: Cells | NDArray[np.int64]) -> _Rows:
    if isinstance(rows, np.ndarray):
        num = len(posterior.states[0].views[0].assignments)
        if rows.size and not (-num <= rows.min() and rows.max() < num):
            raise ArgumentError(
                f"training rows are numbered 0 to {num - 1}, and {rows.max()} was asked for: "
                "give new rows as a frame"
            )
        return _Rows(len(rows), rows, (), np.zeros((posterior.num_states, 1)))
    evidence = weigh(posterior, rows, np.ones(posterior.num_columns, bool))
    return _Rows(rows.num_rows, None, evidence.clusters, evidence.states)


def _shared(
    posterior: Posterior, first: _Rows, second: _Rows, state: int, view: int
) -> NDArray[np.float64]:
    """Probability that rows share a cluster of one view."""
    labels = posterior.states[state].views[view].assignments
    if first.indices is not None and second.indices is not None:
        return (labels[first.indices][:, None] == labels[second.indices]).astype(np.float64)
    if first.indices is not None:
        return _shared(posterior, second, first, state, view).T
    probabilities = np.exp(first.clusters[state][view][:-1])
    if second.indices is not None:
        return probabilities[labels[second.indices]].T
    return probabilities.T @ np.exp(second.clusters[state][view][:-1])
