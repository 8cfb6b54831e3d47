"""One draw from the posterior in the making: views, hyperparameters, and the rows that are in.

The joint density of a state given its hyperparameters is

    p(columns in views) prod_v p(pi_v) prod_(f in v) p(X_f | pi_v),

the Pitman-Yor laws of the column partition and of each view's row partition, times the marginal
likelihoods of features (dirichlet.py, normal.py, gamma_poisson.py), all of the rows that are in.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from temperance.crosscat.encoding.features import COUNT, NARROW, REAL, WIDE
from temperance.crosscat.families import dirichlet, gamma_poisson, normal
from temperance.crosscat.partitions import auxiliary_pool, column_moves, pitman_yor
from temperance.crosscat.partitions.column_marginals import TableScores, table_scores
from temperance.crosscat.partitions.partition import Partition, draw_partition
from temperance.crosscat.views import initial_views
from temperance.crosscat.views.block_moves import BlockViews, search_views
from temperance.crosscat.views.hyperparameters import Prior, draw_hyper, sweep_hyper
from temperance.crosscat.views.view import Ground, Hyperparameters, View

Views = Literal["prior", "one", "none"]


class State:
    """Views of a table, their hyperparameters, and a source of random numbers."""

    def __init__(self, ground: Ground, prior: Prior, rng: np.random.Generator):
        self.ground, self.prior, self.rng = ground, prior, rng
        self.hyper: Hyperparameters = []
        self.views: list[View] = []
        self.process = (1.0, 0.0)
        self._block_views = BlockViews(ground)

    @classmethod
    def draw(
        cls, ground: Ground, prior: Prior, rng: np.random.Generator, views: Views = "prior"
    ) -> "State":
        """A state with no row in, drawn from the prior but for its views if they are told."""
        state = cls(ground, prior, rng)
        state.hyper = draw_hyper(ground.table, prior, rng)
        state.process = pitman_yor.draw_prior(prior.columns, rng)
        num = len(ground.table.schema)
        if views == "none":
            return state
        labels = np.zeros(num, np.int32)
        if views == "prior":
            labels, _ = pitman_yor.draw_partition(num, *state.process, rng)
        for view in range(int(labels.max()) + 1):
            members = np.flatnonzero(labels == view).tolist()
            made = View(ground, members, *pitman_yor.draw_prior(prior.rows, rng))
            made.set_hyper(state.hyper)
            state.views.append(made)
        return state

    def seat_by_prior(self, rows: np.ndarray) -> None:
        """All of `rows` enter, their clusters drawn from the prior of each view."""
        for view in self.views:
            params = view.tables.clusters.params
            seats, _ = pitman_yor.draw_partition(len(rows), params[0], params[1], self.rng)
            view.seat_rows(seats, rows, self.hyper)

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

    def move_columns(self, rows: np.ndarray, num_auxiliary: int) -> None:
        """Sweeps of columns: by Algorithm 8, by proposals of the prior, and with adapted views."""
        table, prior, rng = self.ground.table, self.prior, self.rng
        view_of = self.view_of_column
        partitions = [view.partition(rows) for view in self.views]
        held = dict(zip(partitions, self.views, strict=True))
        scores = table_scores(table.cells, table.features, self.hyper, rows)

        def fresh() -> Partition:
            return draw_partition(len(rows), prior.rows, rng)

        # The pool is let go at once: each of its partitions has a label for every row that is in.
        view_of, partitions = auxiliary_pool.move_columns(
            view_of, partitions, [fresh() for _ in range(num_auxiliary)], scores, fresh,
            *self.process, rng,
        )[:2]  # fmt: skip
        view_of, partitions = column_moves.move_columns(
            view_of, partitions, scores, len(rows), *self.process, prior.rows, rng,
            kernel="metropolis",
        )  # fmt: skip
        view_of, partitions = self._search_views(view_of, partitions, scores, rows)
        self._take_views(view_of, partitions, rows, held)

    def enter_columns(self, rows: np.ndarray) -> None:
        """Columns, in no view so far, form the first ones, with `rows` in (initial_views.py)."""
        table, prior, rng = self.ground.table, self.prior, self.rng
        num = len(table.schema)
        initial_views.learn_hyper(num, rows, prior, self._block_views, self.hyper, rng)
        scores = table_scores(table.cells, table.features, self.hyper, rows)
        view_of, partitions = initial_views.enter_columns(
            num, scores, rows, self.process, prior, self._block_views, self.hyper, rng
        )
        for _ in range(initial_views.num_searches(table.num_rows)):
            view_of, partitions = self._search_views(view_of, partitions, scores, rows)
        self._take_views(view_of, partitions, rows, {})

    def _search_views(
        self,
        view_of: np.ndarray,
        partitions: list[Partition],
        scores: TableScores,
        rows: np.ndarray,
    ) -> tuple[np.ndarray, list[Partition]]:
        return search_views(
            view_of, partitions, scores, rows, self.process, self.prior.rows, self._block_views,
            self.hyper, self.rng,
        )  # fmt: skip

    def _take_views(
        self,
        view_of: np.ndarray,
        partitions: list[Partition],
        rows: np.ndarray,
        held: dict[Partition, View],
    ) -> None:
        """New views; one that is `held` stays as it is if its columns are the same."""
        members = [tuple(np.flatnonzero(view_of == v).tolist()) for v in range(len(partitions))]
        kept = [held.get(partition) for partition in partitions]
        kept = [
            v if v and v.columns == some else None for v, some in zip(kept, members, strict=True)
        ]
        # Views that have changed are let go before others are made: each has a label for every row.
        self.views = []
        held.clear()
        for old, some, partition in zip(kept, members, partitions, strict=True):
            view = old or View(self.ground, some, partition.alpha, partition.d)
            if old is None:
                view.seat_rows(partition.labels, rows, self.hyper)
            self.views.append(view)

    @property
    def view_of_column(self) -> np.ndarray:
        """The number of each column's view."""
        found = np.zeros(len(self.ground.table.schema), np.int64)
        for number, view in enumerate(self.views):
            found[list(view.columns)] = number
        return found

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
            return dirichlet.log_marginal(found[0], num, self.hyper[f])
        if family == REAL:
            return normal.log_marginal(found[0], found[1], found[2], num, self.hyper[f])
        place = int(self.ground.table.features.place[f])
        base = gamma_poisson.log_base(self.ground.table.cells.count, place, rows)
        return base + gamma_poisson.log_marginal(found[0], found[1], num, self.hyper[f])

    def arrays(self) -> dict[str, np.ndarray]:
        """All that a state is, but its table and its random numbers, as named arrays.

        Labels are the views' own, and not copies.
        """
        sizes = [len(found) for found in self.hyper]
        sums = {
            f"sums-{number}": view.tables.real.sums
            for number, view in enumerate(self.views)
            if view.features[REAL]
        }
        labels = {f"labels-{number}": view.labels for number, view in enumerate(self.views)}
        return (
            sums
            | labels
            | {
                "hyper": np.concatenate(self.hyper),
                "hyper_sizes": np.array(sizes, np.int64),
                "process": np.array(self.process),
                "view_of_column": self.view_of_column,
                "processes": np.array([view.tables.clusters.params for view in self.views]),
            }
        )

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
            members = np.flatnonzero(arrays["view_of_column"] == number).tolist()
            known = arrays[f"labels-{number}"]
            rows = np.flatnonzero(known >= 0)
            view = View(ground, members, float(alpha), float(d))
            view.seat_rows(known[rows], rows, state.hyper, packed=False)
            if view.features[REAL]:
                view.restore_sums(arrays[f"sums-{number}"])
            state.views.append(view)
        return state
