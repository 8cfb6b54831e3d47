"""One draw from the posterior in the making: views, hyperparameters, and the rows that are in.

The joint density of a state given its hyperparameters is

    p(columns in views) prod_v p(pi_v) prod_(f in v) p(X_f | pi_v),

the Pitman-Yor laws of the column partition and of each view's row partition, times the marginal
likelihoods of features (dirichlet.py, normal.py, gamma_poisson.py), all of the rows that are in.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from temperance.crosscat import dirichlet, gamma_poisson, normal, pitman_yor
from temperance.crosscat.columns import ColumnScores, move_columns
from temperance.crosscat.features import COUNT, NARROW, REAL, WIDE
from temperance.crosscat.partition import Partition
from temperance.crosscat.prior import Prior, draw_hyper, sweep_hyper
from temperance.crosscat.view import Ground, Hyperparameters, View


class State:
    """Views of a table, their hyperparameters, and a source of random numbers."""

    def __init__(self, ground: Ground, prior: Prior, rng: np.random.Generator):
        self.ground, self.prior, self.rng = ground, prior, rng
        self.hyper: Hyperparameters = []
        self.views: list[View] = []
        self.process = (1.0, 0.0)

    @classmethod
    def drawn(
        cls, ground: Ground, prior: Prior, rng: np.random.Generator, num_views: int | None = None
    ) -> "State":
        """A state of the prior with no row in; `num_views=1` puts all columns into one view."""
        state = cls(ground, prior, rng)
        state.hyper = draw_hyper(ground.table, prior, rng)
        state.process = pitman_yor.draw_prior(prior.columns, rng)
        num = len(ground.table.schema)
        labels = np.zeros(num, np.int32)
        if num_views is None:
            labels, _ = pitman_yor.draw_partition(num, *state.process, rng)
        for view in range(int(labels.max()) + 1):
            columns = np.flatnonzero(labels == view).tolist()
            made = View(ground, columns, *pitman_yor.draw_prior(prior.rows, rng))
            made.set_hyper(state.hyper)
            state.views.append(made)
        return state

    def seat_by_prior(self, rows: np.ndarray) -> None:
        """All of `rows` enter, their clusters drawn from the prior of each view."""
        for view in self.views:
            params = view.tables.clusters.params
            seats, _ = pitman_yor.draw_partition(len(rows), params[0], params[1], self.rng)
            labels = np.full(self.ground.table.num_rows, -1, np.int32)
            labels[rows] = seats
            view.seat_rows(labels, rows, self.hyper)

    def run(self, steps: np.ndarray, weighed: bool = False) -> float:
        """Every view follows the same entries and removals; returns the log weight."""
        return sum(view.run(steps, self.rng, weighed) for view in self.views)

    def sweep_hyper(self) -> None:
        """Draws all hyperparameters, each given all else."""
        if len(self.ground.table.schema) > 1:
            sizes = np.array([len(view.columns) for view in self.views], np.int64)
            self.process = pitman_yor.draw_hyper(sizes, len(sizes), self.prior.columns, self.rng)
        for view in self.views:
            sweep_hyper(view, self.prior, self.hyper, self.rng)

    def move_columns(self, rows: np.ndarray, num_auxiliary: int, kernel: Any) -> int:
        """One sweep of columns between views; returns how many are now elsewhere."""
        before = np.zeros(len(self.ground.table.schema), np.int64)
        for number, view in enumerate(self.views):
            before[list(view.columns)] = number
        partitions = [_packed(view, rows) for view in self.views]
        held = dict(zip(partitions, self.views, strict=True))
        scores = ColumnScores(lambda column, partition: self._log_marginal(column, partition, rows))
        after, partitions = move_columns(
            before, partitions, scores, rows, *self.process, self.prior.rows, self.rng,
            num_auxiliary=num_auxiliary, kernel=kernel,
        )  # fmt: skip
        views, moved = [], 0
        for number, partition in enumerate(partitions):
            columns = tuple(np.flatnonzero(after == number).tolist())
            old = held.get(partition)
            if old is not None and old.columns == columns:
                views.append(old)
                continue
            made = View(self.ground, columns, partition.alpha, partition.d)
            made.seat_rows(partition.labels, rows, self.hyper)
            views.append(made)
            moved += len(set(columns) - set(old.columns if old else ()))
        self.views = views
        return moved

    def _log_marginal(self, column: int, partition: Partition, rows: np.ndarray) -> float:
        """log p(X_c | pi) of the rows that are in, of all features of a column."""
        features, cells = self.ground.table.features, self.ground.table.cells
        total = 0.0
        for f in features.of_column(column):
            family, place = int(features.family[f]), int(features.place[f])
            matrix, labels, num = cells[family], partition.labels, partition.num
            if family in (NARROW, WIDE):
                found = dirichlet.gather(
                    matrix, place, labels, rows, int(features.num_values[f]), num
                )
                total += dirichlet.log_marginal(found, num, self.hyper[f])
            elif family == REAL:
                moments = normal.gather(matrix, place, labels, rows, num)
                total += normal.log_marginal(*moments, num, self.hyper[f])
            else:
                sums = gamma_poisson.gather(matrix, place, labels, rows, num)
                total += gamma_poisson.log_marginal(*sums, num, self.hyper[f])
        return total

    def log_joint(self, rows: np.ndarray) -> float:
        """The log joint density of the state and of the rows that are in, hyperparameters given."""
        sizes = np.array([len(view.columns) for view in self.views], np.int64)
        total = pitman_yor.log_eppf(sizes, len(sizes), *self.process)
        for view in self.views:
            params = view.tables.clusters.params
            total += pitman_yor.log_eppf(view.sizes, view.num_clusters, params[0], params[1])
            for family in (NARROW, WIDE, REAL, COUNT):
                for f in view.features[family]:
                    total += self._log_feature(view, family, f, rows)
        return float(total)

    def _log_feature(self, view: View, family: int, f: int, rows: np.ndarray) -> float:
        found = view.statistics(f)
        num = found[0].shape[-1]
        if family in (NARROW, WIDE):
            return dirichlet.log_marginal(*found, num, self.hyper[f])
        if family == REAL:
            return normal.log_marginal(*found, num, self.hyper[f])
        place = int(self.ground.table.features.place[f])
        base = gamma_poisson.log_base(self.ground.table.cells.count, place, rows)
        return base + gamma_poisson.log_marginal(*found, num, self.hyper[f])

    def arrays(self) -> dict[str, np.ndarray]:
        """All that a state is, but its table and its random numbers, as named arrays."""
        sizes = [len(found) for found in self.hyper]
        view_of = np.zeros(len(self.ground.table.schema), np.int64)
        for number, view in enumerate(self.views):
            view_of[list(view.columns)] = number
        sums = {
            f"sums-{number}": view.tables.real.sums
            for number, view in enumerate(self.views)
            if view.features[REAL]
        }
        return sums | {
            "hyper": np.concatenate(self.hyper),
            "hyper_sizes": np.array(sizes, np.int64),
            "process": np.array(self.process),
            "view_of_column": view_of,
            "processes": np.array([view.tables.clusters.params for view in self.views]),
            "labels": np.stack([view.labels for view in self.views]),
        }

    @classmethod
    def from_arrays(
        cls, ground: Ground, prior: Prior, rng: np.random.Generator, arrays: Mapping[str, Any]
    ) -> "State":
        """The state that `arrays` took apart; rows that it does not know of are not in."""
        state = cls(ground, prior, rng)
        ends = np.cumsum(arrays["hyper_sizes"])
        state.hyper = [part.copy() for part in np.split(np.asarray(arrays["hyper"]), ends[:-1])]
        state.process = (float(arrays["process"][0]), float(arrays["process"][1]))
        for number, (alpha, d) in enumerate(arrays["processes"]):
            columns = np.flatnonzero(arrays["view_of_column"] == number).tolist()
            known = arrays["labels"][number]
            labels = np.full(ground.table.num_rows, -1, np.int32)
            labels[: len(known)] = known
            view = View(ground, columns, float(alpha), float(d))
            view.seat_rows(labels, np.flatnonzero(labels >= 0), state.hyper, packed=False)
            if view.features[REAL]:
                view.restore_sums(arrays[f"sums-{number}"])
            state.views.append(view)
        return state


def _packed(view: View, rows: np.ndarray) -> Partition:
    """A view's partition with clusters numbered from 0 without holes."""
    size, params = view.tables.clusters.size, view.tables.clusters.params
    numbers = np.where(size > 0, np.cumsum(size > 0) - 1, -1).astype(np.int32)
    labels = np.full(len(view.labels), -1, np.int32)
    labels[rows] = numbers[view.labels[rows]]
    return Partition(labels, view.num_clusters, float(params[0]), float(params[1]))
