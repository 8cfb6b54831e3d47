"""Tiny tables with cells of every family, for the kernels and for the independent scorer."""

from typing import Any

import numpy as np

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.features import COUNT, NARROW, REAL, WIDE, Features
from temperance.crosscat.encoding.table import Table
from temperance.crosscat.families.dirichlet import DirichletGrids
from temperance.crosscat.families.gamma_poisson import GammaPoissonGrids
from temperance.crosscat.families.normal import NormalGrids
from temperance.crosscat.frames.schema import Column, Schema
from temperance.crosscat.partitions.pitman_yor import PitmanYorGrids
from temperance.crosscat.views.hyperparameters import Prior
from temperance.crosscat.views.view import Ground
from temperance.testing import tables

MANY = 300
NORMAL, POISSON = (0.2, 0.7, 2.5, 0.6), (1.3, 0.4)
# A code that is None is missing.
NARROW_CODES = ((0, 1, 1, 0, 1), (2, 0, None, 2, 1))
WIDE_CODES = (0, 1, 0, 1, 2)
REALS = ((0.3, -1.2, 0.9, None, 0.4), (None, 2.0, None, 1.5, -0.5))
COUNTS = (3, 0, None, 5, 1)
SPIKES = (1, 0, 1, 0, 0)
WEIGHTS = (
    (0.5, 0.8, 0.0),
    (0.4, 0.7, 1.1, 0.2),
    (0.6, 0.9, 0.0),
    tuple([0.3, 0.9, 0.5] + [0.01] * (MANY - 3) + [0.1]),
)
EQUAL_WEIGHTS = ((0.5, 0.5, 0.0), (0.6,) * 4, (0.7, 0.7, 0.0), (0.05,) * (MANY + 1))


def mixed(num_rows: int, equal: bool = False) -> tuple[Ground, list[Any], list[np.ndarray]]:
    """A boolean, a gappy category, a wide one, a real, a count and a spike column.

    If `equal`, all weights of a category are the same, as a grid of one point has them.
    """
    weights = EQUAL_WEIGHTS if equal else WEIGHTS
    schema = Schema(
        (
            Column("boolean", "boolean", (False, True)),
            Column("category", "categorical", ("a", "b", "c")),
            Column("wide", "categorical", tuple(range(MANY))),
            Column("real", "real"),
            Column("count", "count"),
            Column("spike", "spike"),
        )
    )
    narrow = [NARROW_CODES[0], [4 if x is None else x for x in NARROW_CODES[1]], SPIKES]
    real = [[np.nan if x is None else x for x in column] for column in REALS]
    cells = Cells(
        np.array(narrow, np.uint8).T[:num_rows].copy(),
        np.array([WIDE_CODES], np.int32).T[:num_rows].copy(),
        np.array(real, np.float64).T[:num_rows].copy(),
        np.array([[-1 if x is None else x for x in COUNTS]], np.int64).T[:num_rows].copy(),
    )
    columns: list[Any] = [
        tables.Categories(NARROW_CODES[0][:num_rows], weights[0]),
        tables.Categories(NARROW_CODES[1][:num_rows], weights[1]),
        tables.Categories(WIDE_CODES[:num_rows], weights[3]),
        tables.Reals(REALS[0][:num_rows], *NORMAL),
        tables.Counts(COUNTS[:num_rows], *POISSON),
        tables.Joined(
            (
                tables.Categories(SPIKES[:num_rows], weights[2]),
                tables.Reals(REALS[1][:num_rows], *NORMAL),
            )
        ),
    ]
    hyper = [*weights[:2], weights[3], NORMAL, POISSON, weights[2], NORMAL]
    table = Table(schema, Features.of(schema), cells)
    return Ground.of(table), columns, [np.array(x, np.float64) for x in hyper]


def known_prior(ground: Ground, hyper: list[np.ndarray], alpha: float, d: float) -> Prior:
    """Grids of one point, which are the hyperparameters that are told: nothing of them is drawn."""
    features: list[Any] = []
    for family, values in zip(ground.table.features.family, hyper, strict=True):
        points = [np.array([x]) for x in values]
        if family in (NARROW, WIDE):
            features.append(DirichletGrids(points[0], np.zeros((1, 1))))
        elif family == REAL:
            features.append(NormalGrids(*points))
        elif family == COUNT:
            features.append(GammaPoissonGrids(*points))
    process = PitmanYorGrids(np.array([alpha]), np.array([d]))
    unseen = tuple(bool(values[-1] > 0) for values in hyper)
    return Prior(tuple(features), unseen, process, process)


def three_columns(num_rows: int, equal: bool = False) -> tuple[Ground, list[Any], list[np.ndarray]]:
    """The real, the count and the spike column alone."""
    ground, columns, hyper = mixed(num_rows, equal)
    schema = Schema(ground.table.schema.columns[3:])
    cells = ground.table.cells
    kept = Cells(cells.narrow[:, 2:].copy(), cells.wide[:, :0].copy(), cells.real, cells.count)
    made = Ground.of(Table(schema, Features.of(schema), kept))
    return made, columns[3:], [hyper[f] for f in (3, 4, 5, 6)]
