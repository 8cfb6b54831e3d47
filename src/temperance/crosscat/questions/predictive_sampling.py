"""New rows from a fitted model, with some cells given.

Exact ancestral draws from the conditional mixture:

    a state with probability proportional to p_s(given),
    in each of its views a cluster with probability proportional to exp w_vk,
    then every cell from its law in that cluster.

Nothing is proposed and refused, so that a rare constraint costs no more than a common one. A table
cannot show "a value never seen", so rows are drawn given that all drawn categorical cells have
known values: that event's probability in each cluster is one more factor of exp w_vk.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.questions.cell_laws import Drawn, concatenate, draw, draw_index, log_known
from temperance.crosscat.questions.conditioning import state_weights
from temperance.crosscat.questions.log_probability import log_sum_exp, view_weights
from temperance.crosscat.questions.posterior import Posterior


def cluster_weights(
    posterior: Posterior, given: Cells, known: NDArray[np.bool_], drawn: frozenset[int]
) -> list[list[NDArray[np.float64]]]:
    """For each state and view, [K + 1] log weights of the clusters of one row."""
    found = []
    for state in posterior.states:
        by_view = []
        for view in state.views:
            weights = view_weights(posterior, view, given, known)[:, 0]
            for column, law in zip(view.columns, view.predictives, strict=True):
                if column in drawn:
                    weights += log_known(law)
            by_view.append(weights)
        found.append(by_view)
    return found


def draw_rows(
    posterior: Posterior,
    num: int,
    columns: Sequence[int],
    given: Cells,
    known: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Mapping[int, Drawn]:
    """`num` draws of the cells of `columns`, given the `known` columns of the one row `given`."""
    weights = cluster_weights(posterior, given, known, frozenset(columns))
    log_states = [sum(log_sum_exp(view[:, None])[0] for view in views) for views in weights]
    shares = state_weights(np.array(log_states)[:, None])[:, 0]
    with np.errstate(divide="ignore"):
        chosen = draw_index(np.log(shares), rng.random(num))
    parts: dict[int, list[Drawn]] = {column: [] for column in columns}
    order = []
    for number, (state, views) in enumerate(zip(posterior.states, weights, strict=True)):
        rows = np.flatnonzero(chosen == number)
        order.append(rows)
        for view, log_weights in zip(state.views, views, strict=True):
            asked = [column for column in view.columns if column in parts]
            if asked:
                clusters = draw_index(log_weights, rng.random(len(rows)))
                for column in asked:
                    law = view.predictives[view.columns.index(column)]
                    parts[column].append(draw(law, clusters, rng))
    back = np.argsort(np.concatenate(order))
    return {column: _reorder(concatenate(drawn), back) for column, drawn in parts.items()}


def _reorder(drawn: Drawn, order: NDArray[np.int64]) -> Drawn:
    return Drawn(*(None if member is None else member[order] for member in drawn))
