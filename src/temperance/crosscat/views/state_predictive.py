"""A state's predictive law, by cluster, from its tables (the formulas are in predictive.py)."""

from typing import Any

import numpy as np

from temperance.crosscat.encoding.features import COUNT, NARROW, REAL, WIDE
from temperance.crosscat.views.predictive import (
    CategoricalPredictive,
    CountPredictive,
    Predictive,
    RealPredictive,
    SpikePredictive,
    StatePredictive,
    ViewPredictive,
)
from temperance.crosscat.views.state import State
from temperance.crosscat.views.view import View


def predictive_of(state: State, rows: np.ndarray) -> StatePredictive:
    """What a state says of a new row."""
    views = tuple(_view(state, view) for view in state.views)
    return StatePredictive(views, state.log_joint(rows))


def _view(state: State, view: View) -> ViewPredictive:
    clusters = view.tables.clusters
    alpha, d = clusters.params
    held = clusters.size > 0
    num, sizes = view.num_clusters, view.sizes
    mass = np.append(sizes - d, alpha + d * num) / (sizes.sum() + alpha)
    numbers = np.where(held, np.cumsum(held) - 1, -1).astype(np.int32)
    labels = np.where(view.labels >= 0, numbers[view.labels], -1).astype(np.int32)
    laws = tuple(_law(state, view, column, held) for column in view.columns)
    return ViewPredictive(view.columns, np.log(mass), laws, labels)


def _law(state: State, view: View, column: int, held: np.ndarray) -> Predictive:
    features = state.ground.table.features
    found: list[Any] = []
    for f in features.of_column(column):
        # The last cluster is a new one, of which nothing is known.
        stats = [_with_new(x, held) for x in view.statistics(f)]
        family, hyper = int(features.family[f]), state.hyper[f]
        if family in (NARROW, WIDE):
            found.append(_categorical(stats[0], hyper))
        elif family == REAL:
            found.append(_real(stats[0], stats[1], stats[2], hyper))
        elif family == COUNT:
            seen, sums = stats
            found.append(CountPredictive(hyper[0] + sums, hyper[1] + seen))
    if len(found) == 1:
        return found[0]
    is_spike, real = found
    return SpikePredictive(np.ascontiguousarray(is_spike.log_probs[:, :2]), real)


def _with_new(x: np.ndarray, held: np.ndarray) -> np.ndarray:
    kept = x[..., held].astype(np.float64)
    return np.concatenate([kept, np.zeros((*kept.shape[:-1], 1))], axis=-1)


def _categorical(counts: np.ndarray, weights: np.ndarray) -> CategoricalPredictive:
    above = weights[:, None] + counts
    with np.errstate(divide="ignore"):
        return CategoricalPredictive(np.ascontiguousarray(np.log(above / above.sum(axis=0)).T))


def _real(
    seen: np.ndarray, mean: np.ndarray, squares: np.ndarray, hyper: np.ndarray
) -> RealPredictive:
    mu, kappa, nu, sigma2 = hyper
    kappa_n, nu_n = kappa + seen, nu + seen
    spread = nu * sigma2 + squares + seen * kappa / kappa_n * (mean - mu) ** 2
    scale = np.sqrt(spread / nu_n * (1.0 + 1.0 / kappa_n))
    return RealPredictive((kappa * mu + seen * mean) / kappa_n, scale, nu_n)
