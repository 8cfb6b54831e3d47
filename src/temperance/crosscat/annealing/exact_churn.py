"""Churns that leave a law of subsamples and partitions invariant.

A churn takes a row r out of the subsample S and lets another, a, in. With r and a drawn without
regard to the state it leaves neither p(pi | X_S) with uniform S nor

    f(S, pi) ~ p(pi, X_S)

invariant: subsamples that are likely should be seen more often. Let pi' be the partition without r,
and p(x | pi') the predictive of a row, a sum over where it may sit (row_gibbs.py) and a product
over views. Two churns leave f invariant:

    metropolis   draw r and a as before; accept with min(1, p(x_a | pi') / p(x_r | pi')), or else
                 put r back where it was
    weighted     draw a from all rows that are out, r among them, with probability ~ p(x_a | pi')

In both a then takes its seat by (*). At n = N each is a step of Gibbs sampling, so that the end of
a run is the same: what they change is what the run believes on its way.
"""

from typing import Any

import numpy as np

from temperance.crosscat.annealing.schedules import Window
from temperance.crosscat.compilation import compiled
from temperance.crosscat.views.row_gibbs import enter_row, leave_row, log_predictive, weigh_row
from temperance.crosscat.views.state import State


@compiled
def log_row(tables: Any, row: int) -> float:
    """Log p(x | pi) of a row in one view."""
    total, factor = weigh_row(tables, row)
    return log_predictive(tables.clusters, tables.narrow, tables.wide, total, factor)


def log_row_of(state: State, row: int) -> float:
    """Log p(x | pi) of a row that is not in, over all views."""
    return sum(log_row(view.tables, row) for view in state.views)


def churn(state: State, window: Window, kind: str) -> None:
    """One churn of `kind` on a window without strata, which keeps its rows that are in first."""
    order, num = window.order, window.num_in
    rng = state.rng
    _swap(order, int(rng.integers(num)), num - 1)
    leaving = int(order[num - 1])
    seats = [leave_row(view.tables, leaving) for view in state.views]
    if kind == "weighted":
        logs = np.array([log_row_of(state, int(row)) for row in order[num - 1 :]])
        shares = np.exp(logs - logs.max())
        pick = num - 1 + int(np.searchsorted(np.cumsum(shares), rng.random() * shares.sum()))
    else:
        pick = num - 1 + int(rng.integers(len(order) - num + 1))
        log_ratio = log_row_of(state, int(order[pick])) - log_row_of(state, leaving)
        if np.log1p(-rng.random()) > log_ratio:
            for view, seat in zip(state.views, seats, strict=True):
                enter_row(view.tables, leaving, seat)
            return
    _swap(order, pick, num - 1)
    state.run(order[num - 1 : num].copy())


def next_churns(
    state: State, window: Window, churns: np.ndarray, kind: str, most: int
) -> tuple[int, bool, bool]:
    """Follows the schedule for at most `most` steps, as `schedules.next_steps` lists them.

    Returns how many were made, whether the rows have turned over, and whether it has come to its
    end. Rows that are in are the first of the window's only ring.
    """
    order, made = window.order, 0
    while made < most:
        num = window.num_in
        if window.owed[0] >= 1.0:
            window.owed[0] -= 1.0
            churn(state, window, kind)
            made += 2
            window.churned[0] += 1
            if window.churned[0] >= num:
                window.churned[0] = 0
                return made, True, False
        elif num < len(order):
            _swap(order, int(state.rng.integers(num, len(order))), num)
            state.run(order[num : num + 1].copy())
            window.inside[0] += 1
            window.owed[0] += churns[num]
            made += 1
            if num + 1 == len(order):
                return made, False, False
        else:
            return made, False, True
    return made, False, False


def _swap(order: np.ndarray, i: int, j: int) -> None:
    order[i], order[j] = order[j], order[i]
