"""A stand-in for the kernels: states whose rows are dealt at random, with conjugate laws.

Each state splits the columns in two views, and the rows of each view in two clusters, all by its
seed. What follows from that is computed as the kernels would: the predictive law of each cluster
and of a new one, under fixed hyperparameters.
"""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from temperance.crosscat.annealing.executors import fit_many
from temperance.crosscat.encoding.cells import Cells, column_cells
from temperance.crosscat.views.predictive import (
    CategoricalPredictive,
    CountPredictive,
    RealPredictive,
    SpikePredictive,
    StatePredictive,
    ViewPredictive,
)

ALPHA = 1.0
NUM_CLUSTERS = 2


@dataclass(frozen=True)
class MadeState:
    table: object
    views: np.ndarray
    labels: np.ndarray
    trace: dict

    def arrays(self):
        return {"views": self.views, "labels": self.labels}

    def predictive(self) -> StatePredictive:
        found = []
        for view in np.unique(self.views):
            columns = tuple(int(c) for c in np.flatnonzero(self.views == view))
            labels = self.labels[view]
            sizes = np.bincount(labels, minlength=NUM_CLUSTERS)
            mass = np.log(np.append(sizes, ALPHA) / (sizes.sum() + ALPHA))
            laws = tuple(_law(self.table, column, labels) for column in columns)
            found.append(ViewPredictive(columns, mass, laws, labels))
        return StatePredictive(tuple(found), 0.0)


def _law(table, column, labels):
    cells = column_cells(table.cells, table.features, column)
    num_values = len(table.schema.columns[column].values)
    here = [(labels == k) & ~cells.missing for k in range(NUM_CLUSTERS)]
    here.append(np.zeros(len(labels), bool))
    match table.schema.columns[column].kind:
        case "categorical":
            return CategoricalPredictive(_codes(cells.codes, here, np.full(num_values + 1, 0.5)))
        case "boolean":
            return CategoricalPredictive(_codes(cells.codes, here, np.array([0.5, 0.5, 0.0])))
        case "real":
            return _real(cells.numbers, here)
        case "count":
            shape = np.array([2.0 + cells.numbers[rows].sum() for rows in here])
            return CountPredictive(shape, np.array([1.0 + rows.sum() for rows in here]))
        case _:
            off = [rows & (cells.codes == 0) for rows in here]
            log_probs = _codes(cells.codes, here, np.full(2, 0.5))
            return SpikePredictive(log_probs, _real(cells.numbers, off))


def _codes(codes, here, weights):
    counts = np.array([np.bincount(codes[rows], minlength=len(weights)) for rows in here])
    with np.errstate(divide="ignore"):
        total = counts + weights
        return np.log(total / total.sum(axis=1, keepdims=True))


def _real(numbers, here):
    n = np.array([rows.sum() for rows in here])
    mean = np.array([numbers[rows].mean() if rows.any() else 0.0 for rows in here])
    square = np.array([((numbers[r] - m) ** 2).sum() for r, m in zip(here, mean, strict=True)])
    kappa, nu = 0.1 + n, 3.0 + n
    variance = (3.0 + square + n * 0.1 / kappa * mean**2) / nu
    return RealPredictive(n * mean / kappa, np.sqrt(variance * (1.0 + 1.0 / kappa)), nu)


def fit_one(table, settings, seed):
    rng = np.random.default_rng(seed)
    num = 1 if settings["model"] != "crosscat" else 2
    views = rng.integers(num, size=len(table.schema))
    views = np.unique(views, return_inverse=True)[1]
    labels = rng.integers(NUM_CLUSTERS, size=(num, table.num_rows)).astype(np.int32)
    return MadeState(table, views, labels, {"score": rng.normal(size=3), "rows": np.arange(3)})


def fit_states(
    table, settings, seeds, *, callback, max_seconds, executor, num_workers, checkpoint=None
):
    return fit_many(fit_one, table, settings, seeds, executor, num_workers)


def append_rows(table, kept, rows, settings, seeds, *, callback, max_seconds):
    cells = Cells(*(np.concatenate(pair) for pair in zip(table.cells, rows, strict=True)))
    longer = replace(table, cells=cells)
    states = []
    for arrays, seed in zip(kept, seeds, strict=True):
        rng = np.random.default_rng(seed)
        shape = len(arrays["labels"]), rows.num_rows
        new = rng.integers(NUM_CLUSTERS, size=shape).astype(np.int32)
        labels = np.concatenate([arrays["labels"], new], axis=1)
        states.append(MadeState(longer, arrays["views"], labels, {}))
    return longer, states


KERNELS = SimpleNamespace(fit_states=fit_states, append_rows=append_rows)
