"""Grids and prior draws of the hyperparameters of a table's features, and their Gibbs sweeps.

Hyperparameters belong to features and not to views: they go with a column when it moves.
"""

from typing import Any, NamedTuple

import numpy as np

from temperance.crosscat.encoding.features import COUNT, NARROW, REAL, WIDE
from temperance.crosscat.encoding.table import Table
from temperance.crosscat.families import dirichlet, gamma_poisson, normal
from temperance.crosscat.partitions import pitman_yor
from temperance.crosscat.views.view import Hyperparameters, View

MODELS = ("crosscat", "pitman-yor", "dirichlet-process")


class Prior(NamedTuple):
    """The grids of every feature, whether it may have values never seen, and those of processes."""

    features: tuple[Any, ...]
    unseen: tuple[bool, ...]
    rows: Any
    columns: Any


def prior_of(table: Table, model: str) -> Prior:
    """The grids of a table's features, which are as wide as its cells are."""
    features, unseen = [], []
    layout = table.features
    for f in range(len(layout)):
        family, place = int(layout.family[f]), int(layout.place[f])
        column = table.schema.columns[int(layout.column[f])]
        unseen.append(family == WIDE or (family == NARROW and column.kind == "categorical"))
        values = table.cells[family][:, place]
        if family in (NARROW, WIDE):
            features.append(dirichlet.grids(max(int(layout.num_values[f]), 1)))
        elif family == REAL:
            seen = values[~np.isnan(values)]
            low, high = (float(seen.min()), float(seen.max())) if seen.size else (-1.0, 1.0)
            floor = (column.resolution / column.scale) ** 2 / 12.0
            features.append(normal.grids(low, high, floor))
        else:
            seen = values[values >= 0]
            features.append(gamma_poisson.grids(float(seen.mean()) if seen.size else 0.0))
    discounts = (0.0,) if model == "dirichlet-process" else pitman_yor.DISCOUNTS
    return Prior(tuple(features), tuple(unseen), pitman_yor.grids(discounts), pitman_yor.grids())


def draw_hyper(table: Table, prior: Prior, rng: np.random.Generator) -> Hyperparameters:
    """Hyperparameters of all features before anything is seen."""
    hyper: Hyperparameters = []
    layout = table.features
    for f, grids in enumerate(prior.features):
        family = int(layout.family[f])
        if family in (NARROW, WIDE):
            weights = np.zeros(int(layout.num_values[f]) + 1)
            dirichlet.draw_prior(weights, prior.unseen[f], grids, rng)
            hyper.append(weights)
        else:
            found = np.zeros(4 if family == REAL else 2)
            (normal if family == REAL else gamma_poisson).draw_prior(found, grids, rng)
            hyper.append(found)
    return hyper


def sweep_hyper(view: View, prior: Prior, hyper: Hyperparameters, rng: np.random.Generator) -> None:
    """Draws the hyperparameters of a view and its features, each given all else."""
    alpha, d = pitman_yor.draw_hyper(view.sizes, view.num_clusters, prior.rows, rng)
    view.set_process(alpha, d)
    for family in (NARROW, WIDE, REAL, COUNT):
        for f in view.features[family]:
            found, grids = view.statistics(f), prior.features[f]
            num = found[0].shape[-1]
            if family in (NARROW, WIDE):
                dirichlet.draw_hyper(found[0], num, hyper[f], prior.unseen[f], grids, rng)
            elif family == REAL:
                normal.draw_hyper(found[0], found[1], found[2], num, hyper[f], grids, rng)
            else:
                gamma_poisson.draw_hyper(found[0], found[1], num, hyper[f], grids, rng)
    view.set_hyper(hyper)
