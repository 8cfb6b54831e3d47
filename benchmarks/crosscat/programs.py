"""A view of 68 categorical columns with its rows in it, and what is timed of it.

A *step* is the sampler's: a row leaves, is scored against every cluster, draws one and enters. `steps` takes rows as they lie in
memory, `scattered` in random order, as a fit does. The others bound them:

    adds      rows enter clusters that are given, which no step can do without
    counts    one whole number of each column is lowered and one raised: what any sampler must write, and nothing else
"""

import sys
from pathlib import Path

import numpy as np
from numba import njit

sys.path.append(str(Path(__file__).parents[2] / "studies" / "subsample_annealing"))

from census import census

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.encoding.table import Table
from temperance.crosscat.frames.schema import Column, Schema
from temperance.crosscat.views.categorical_statistics import change_counts, find_slots
from temperance.crosscat.views.clusters import seat
from temperance.crosscat.views.view import Ground, View

ALPHA, DISCOUNT, WEIGHT = 1.0, 0.1, 0.5
NUM_COLUMNS = 68


class Rows:
    """Rows of a census of one view, each in the cluster that it was drawn from."""

    def __init__(self, num_rows, num_clusters, seed=0):
        law = census(seed, ((NUM_COLUMNS, num_clusters),), num_rare=0)
        self.codes, self.num_rows = law.draw(num_rows, seed), num_rows
        self.labels = law.draw_clusters(num_rows, seed)[:, 0].copy()
        self.in_order = np.arange(num_rows)
        self.by_chance = np.random.default_rng(seed).permutation(num_rows)
        self.rng = np.random.default_rng(seed)
        columns = zip(law.names, law.num_values, strict=True)
        schema = Schema(
            tuple(Column(name, "categorical", tuple(range(num))) for name, num in columns)
        )
        none = [np.zeros((num_rows, 0), dtype) for dtype in (np.int32, np.float64, np.int64)]
        table = Table(schema, Features.of(schema), Cells(self.codes, *none))
        self.hyper = [np.full(num + 1, WEIGHT) for num in law.num_values]
        self.view = View(Ground.of(table), range(NUM_COLUMNS), ALPHA, DISCOUNT)
        self.before_steps()
        self.start = np.concatenate([[0], np.cumsum(law.num_values)])[:-1]
        self.counts = np.zeros((sum(law.num_values), self.stride), np.int32)

    @property
    def stride(self):
        return len(self.view.tables.clusters.size)

    def before_steps(self):
        self.view.seat_rows(self.labels, self.in_order, self.hyper)

    before_scattered = before_steps

    def before_adds(self):
        self.view.seat_rows(self.labels[:0], self.in_order[:0], self.hyper)

    def before_counts(self):
        pass

    def run_steps(self):
        return self._follow(self.in_order)

    def run_scattered(self):
        return self._follow(self.by_chance)

    def _follow(self, order):
        self.view.run(np.column_stack([-1 - order, order]).ravel().astype(np.int64), self.rng)
        return len(order)

    def run_adds(self):
        add_rows(self.view.tables, self.in_order, self.labels)
        return self.num_rows

    def run_counts(self):
        move_counts(self.codes, self.in_order, self.labels, self.start, self.counts)
        return self.num_rows


@njit
def add_rows(tables, order, labels):
    clusters, narrow, codes = tables.clusters, tables.narrow, tables.narrow_codes
    size = clusters.size
    for row in order:
        find_slots(codes, narrow, row)
        seat(clusters, row, labels[row])
        change_counts(narrow, labels[row], size, 1)


@njit(boundscheck=False)
def move_counts(codes, order, labels, start, counts):
    flat, step = counts.ravel(), np.uint64(counts.shape[1])
    for i in range(len(order)):
        row = order[i]
        old, new = np.uint64(labels[row]), np.uint64(labels[order[i - 1]])
        for f in range(codes.shape[1]):
            at = np.uint64(start[f] + np.int64(codes[row, f])) * step
            flat[at + old] -= 1
            flat[at + new] += 1
