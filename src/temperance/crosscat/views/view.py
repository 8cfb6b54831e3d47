"""A view: some columns, and one partition of the rows for all of them.

The tables of a view (row_gibbs.py) have room for a number of clusters, and are made wider when that
is taken. Features without missing cells come first in each family, which is all that the order of a
view's features means.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.crosscat.encoding.features import COUNT, NARROW, REAL, WIDE
from temperance.crosscat.encoding.table import Table
from temperance.crosscat.partitions.partition import Partition
from temperance.crosscat.views import (
    categorical_statistics,
    count_statistics,
    number_statistics,
    real_statistics,
)
from temperance.crosscat.views.clusters import (
    ABSENT,
    EMPTY,
    FULL,
    LANES,
    NUM_CLUSTERS,
    empty_clusters,
    padded,
    weigh_places,
    widened as widened_clusters,
)
from temperance.crosscat.views.row_gibbs import ViewTables, run_steps

Hyperparameters = list[np.ndarray]


@dataclass(frozen=True)
class Ground:
    """A table, and what every view of it needs to know of each feature.

    `frequencies` are those of the values of categorical features, none of them zero, and `gappy`
    says whether a cell of a feature is missing.
    """

    table: Table
    frequencies: tuple[np.ndarray, ...]
    gappy: np.ndarray

    @classmethod
    def of(cls, table: Table) -> "Ground":
        features, cells = table.features, table.cells
        frequencies, gappy = [], []
        for family, place, num in zip(
            features.family, features.place, features.num_values, strict=True
        ):
            values = cells[family][:, place]
            if family in (NARROW, WIDE):
                counts = np.bincount(values, minlength=num + 2)
                gappy.append(counts[num + 1] > 0)
                shares = counts[: num + 1] + 0.5
                frequencies.append(shares / shares.sum())
            else:
                missing = np.isnan(values) if family == REAL else values < 0
                gappy.append(bool(missing.any()))
                frequencies.append(np.zeros(0))
        return cls(table, tuple(frequencies), np.array(gappy, bool))


class View:
    """Columns that share a partition of the rows.

    `labels`, if given, is an array for the rows' places, all of them absent.
    """

    def __init__(
        self, ground: Ground, columns: Iterable[int], alpha: float, d: float,
        labels: np.ndarray | None = None,
    ):  # fmt: skip
        self.ground = ground
        self.columns = tuple(sorted(columns))
        features = ground.table.features
        chosen = [f for column in self.columns for f in features.of_column(column)]
        chosen.sort(key=lambda f: (bool(ground.gappy[f]), f))
        self.features: tuple[tuple[int, ...], ...] = tuple(
            tuple(f for f in chosen if features.family[f] == family) for family in range(4)
        )
        self.tables = ViewTables(
            empty_clusters(ground.table.num_rows, alpha, d, labels),
            ground.table.cells.narrow,
            ground.table.cells.wide,
            self._categorical(NARROW),
            self._categorical(WIDE),
            real_statistics.real_statistics(ground.table.cells.real, self._places(REAL), LANES),
            count_statistics.count_statistics(ground.table.cells.count, self._places(COUNT), LANES),
            np.zeros(LANES),
            np.zeros(LANES),
        )

    def _places(self, family: int) -> np.ndarray:
        return self.ground.table.features.place[list(self.features[family])]

    def _categorical(self, family: int) -> Any:
        chosen = list(self.features[family])
        return categorical_statistics.categorical_statistics(
            self._places(family),
            self.ground.table.features.num_values[chosen],
            int(np.sum(~self.ground.gappy[chosen])),
            [self.ground.frequencies[f] for f in chosen],
            LANES,
        )

    @property
    def num_clusters(self) -> int:
        return int(self.tables.clusters.head[NUM_CLUSTERS])

    @property
    def labels(self) -> np.ndarray:
        """The place of each row's cluster, negative for rows that are not in."""
        return self.tables.clusters.labels

    @property
    def sizes(self) -> np.ndarray:
        """The sizes of clusters, in the order of their places, holes left out."""
        size = self.tables.clusters.size
        return size[size > 0]

    def partition(self, rows: np.ndarray) -> Partition:
        """The partition of the rows that are in, clusters numbered from 0 without holes."""
        size, params = self.tables.clusters.size, self.tables.clusters.params
        numbers = (np.cumsum(size > 0) - 1).astype(np.int32)
        labels = numbers[self.labels[rows]]
        return Partition(labels, self.num_clusters, float(params[0]), float(params[1]))

    def clear(self, rows: np.ndarray) -> None:
        """Empties a view in which no rows but these are; `set_hyper` makes it ready."""
        tables = self.tables
        tables.clusters.labels[rows] = ABSENT
        tables.clusters.size[:] = 0
        weigh_places(tables.clusters)
        for counted in (
            tables.narrow.counts, tables.wide.counts, tables.real.seen, tables.real.sums,
            tables.count.seen, tables.count.sums,
        ):  # fmt: skip
            counted[:] = 0

    def set_process(self, alpha: float, d: float) -> None:
        """New parameters of the rows' Pitman-Yor process."""
        self.tables.clusters.params[:] = alpha, d
        weigh_places(self.tables.clusters)

    def set_hyper(self, hyper: Hyperparameters) -> None:
        """New hyperparameters of all features."""
        for family, group in ((NARROW, self.tables.narrow), (WIDE, self.tables.wide)):
            for i, f in enumerate(self.features[family]):
                categorical_statistics.set_weights(group, i, hyper[f])
        for family, group in ((REAL, self.tables.real), (COUNT, self.tables.count)):
            for i, f in enumerate(self.features[family]):
                group.hyper[i] = hyper[f]
        self._refresh()

    def _refresh(self) -> None:
        tables = self.tables
        categorical_statistics.refresh(tables.narrow, tables.clusters.size)
        categorical_statistics.refresh(tables.wide, tables.clusters.size)
        real_statistics.refresh(tables.real)
        count_statistics.refresh(tables.count)

    def seat_rows(
        self, seats: np.ndarray, rows: np.ndarray, hyper: Hyperparameters, packed: bool = True
    ) -> None:
        """Begins again with the given rows in the given clusters, one for each of them.

        These take the lowest places, or, if not `packed`, the places that they are named for.
        """
        if packed:
            _, seats = np.unique(seats, return_inverse=True)
        self._widen(padded(int(seats.max(initial=-1)) + 2))
        clusters = self.tables.clusters
        clusters.labels[:] = ABSENT
        clusters.labels[rows] = seats
        clusters.size[:] = np.bincount(seats, minlength=len(clusters.size))
        weigh_places(clusters)
        tables, stride = self.tables, len(clusters.size)
        for codes, group in (
            (tables.narrow_codes, tables.narrow),
            (tables.wide_codes, tables.wide),
        ):
            categorical_statistics.recount(codes, group, clusters.labels, rows, stride)
        real_statistics.recount(tables.real, clusters.labels, rows)
        count_statistics.recount(tables.count, clusters.labels, rows)
        self.set_hyper(hyper)

    def restore_sums(self, sums: np.ndarray) -> None:
        """Sums of real features to the last bit, which depend on the order of entries."""
        self.tables.real.sums[:, :, : sums.shape[2]] = sums
        real_statistics.refresh(self.tables.real)

    def run(self, steps: np.ndarray, rng: np.random.Generator, weighed: bool = False) -> float:
        """Follows a list of entries and removals (row_gibbs.py); returns the log weight."""
        done, log_weight = 0, 0.0
        while True:
            done, more = run_steps(self.tables, steps, done, rng, weighed)
            log_weight += more
            if self.tables.clusters.head[EMPTY] == FULL:
                self._widen(padded(len(self.tables.clusters.size) * 3 // 2))
            if done == len(steps):
                return log_weight

    def _widen(self, wider: int) -> None:
        tables = self.tables
        stride = len(tables.clusters.size)
        if wider <= stride:
            return
        self.tables = ViewTables(
            widened_clusters(tables.clusters, wider),
            tables.narrow_codes,
            tables.wide_codes,
            categorical_statistics.widened(tables.narrow, stride, wider),
            categorical_statistics.widened(tables.wide, stride, wider),
            number_statistics.widened(tables.real, wider),
            number_statistics.widened(tables.count, wider),
            np.zeros(wider),
            np.zeros(wider),
        )
        self._refresh()

    def statistics(self, feature: int) -> Any:
        """What the clusters say of a feature of the view, by place: counts, or number and sums."""
        tables = self.tables
        family = int(self.ground.table.features.family[feature])
        i = self.features[family].index(feature)
        if family in (NARROW, WIDE):
            group = tables.narrow if family == NARROW else tables.wide
            counts = group.counts.reshape(len(group.weight), -1)
            return (counts[group.start[i] : group.missing[i]],)
        if family == COUNT:
            return tables.count.seen[i], tables.count.sums[i]
        return tables.real.seen[i], *real_statistics.moments(tables.real, i)
