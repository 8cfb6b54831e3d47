"""A view of 68 categorical columns with its rows in it, and what is timed of it.

`steps` are the sampler's: a row leaves, is scored against every cluster, draws one and enters. The others bound them:

    adds      rows enter clusters that are given, which no step can do without
    counts    one whole number of each column is lowered and one raised: what any sampler must write, and nothing else
"""

import sys
from pathlib import Path

import numpy as np
from numba import njit

sys.path.append(str(Path(__file__).parents[2] / "studies" / "subsample_annealing"))

from census import census

from temperance.crosscat import categorical_table as categorical
from temperance.crosscat.clusters import NUM_CLUSTERS, empty_clusters, padded, weigh_places
from temperance.crosscat.count_table import count_table
from temperance.crosscat.real_table import real_table
from temperance.crosscat.rows import ViewTables, enter_row, run_steps

ALPHA, DISCOUNT, WEIGHT = 1.0, 0.1, 0.5
NUM_COLUMNS = 68


class View:
    """Rows of a census of one view, each in the cluster that it was drawn from."""

    def __init__(self, num_rows, num_clusters, seed=0):
        law = census(seed, ((NUM_COLUMNS, num_clusters),), num_rare=0)
        self.rows, self.num_rows = law.draw(num_rows, seed), num_rows
        self.labels = law.draw_clusters(num_rows, seed)[:, 0].copy()
        self.order = np.random.default_rng(seed).permutation(num_rows)
        self.rng = np.random.default_rng(seed)
        stride = padded(num_clusters + 40)
        num_values = np.array(law.num_values)
        shares = [
            (np.bincount(column, minlength=num + 1) + 0.5) / num_rows
            for column, num in zip(self.rows.T, law.num_values, strict=True)
        ]
        places = np.arange(NUM_COLUMNS)
        none, nothing = np.zeros(0, np.int64), np.zeros((num_rows, 0))
        self.tables = ViewTables(
            empty_clusters(num_rows, ALPHA, DISCOUNT, stride),
            categorical.categorical_table(
                self.rows, places, num_values, NUM_COLUMNS, shares, stride
            ),
            categorical.categorical_table(nothing.astype(np.int32), none, none, 0, [], stride),
            real_table(nothing, none, stride),
            count_table(nothing.astype(np.int64), none, stride),
            np.zeros(stride),
            np.zeros(stride),
        )
        for f, num in enumerate(law.num_values):
            categorical.set_weights(self.tables.narrow, f, np.full(num + 1, WEIGHT))
        self.counts = np.zeros(int((num_values + 2).sum()) * stride, np.int32)
        self.start = self.tables.narrow.start
        self.fill(self.labels)
        # Row by row, each leaves and comes back.
        self.steps = np.column_stack([-1 - self.order, self.order]).ravel().astype(np.int64)

    def fill(self, labels):
        """Every row in its cluster, or none in any where labels are negative."""
        clusters, narrow = self.tables.clusters, self.tables.narrow
        clusters.labels[:] = labels
        present = np.flatnonzero(labels >= 0)
        clusters.size[:] = np.bincount(labels[present], minlength=len(clusters.size))
        weigh_places(clusters)
        categorical.recount(narrow, clusters.labels, present, len(clusters.size))
        categorical.refresh(narrow, clusters.size)

    @property
    def num_clusters(self):
        return int(self.tables.clusters.head[NUM_CLUSTERS])

    def run_steps(self):
        done, _ = run_steps(self.tables, self.steps, 0, self.rng, False)
        return done // 2

    def run_adds(self):
        add_rows(self.tables, self.order, self.labels)
        return self.num_rows

    def run_counts(self):
        stride = len(self.tables.clusters.size)
        move_counts(self.rows, self.order, self.labels, self.start, self.counts, stride)
        return self.num_rows

    def before_adds(self):
        self.fill(np.full(self.num_rows, -1, np.int32))

    def before_steps(self):
        self.fill(self.labels)


@njit(cache=True, nogil=True)
def add_rows(tables, order, labels):
    for row in order:
        enter_row(tables, row, labels[row])


@njit(cache=True, nogil=True, boundscheck=False)
def move_counts(rows, order, labels, start, counts, stride):
    step = np.uint64(stride)
    for i in range(len(order)):
        row = order[i]
        old, new = np.uint64(labels[row]), np.uint64(labels[order[i - 1]])
        for f in range(rows.shape[1]):
            at = np.uint64(start[f] + np.int64(rows[row, f])) * step
            counts[at + old] -= 1
            counts[at + new] += 1
