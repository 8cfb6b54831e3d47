"""Algorithm 8 with a pool that is kept: every state with every pool, fresh draws summed over."""

import functools
import math
from itertools import product

import numpy as np
import pytest
from tests.crosscat import tiny_tables as tiny
from tests.crosscat.partitions import broken

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.partitions import (
    auxiliary_pool,
    column_marginals,
    column_moves,
    pitman_yor,
)
from temperance.crosscat.partitions.partition import draw_partition
from temperance.testing import enumeration, tables

COLUMNS = tables.Seating(0.7, 0.35)
ROWS = tables.Seating(0.9, 0.25)


class Enumerated:
    """A table of three columns on a few rows, with pools of m partitions."""

    def __init__(self, num_rows: int, num_auxiliary: int):
        self.table = [
            tiny.first_rows(column, num_rows) for column in (tiny.SPIKE, tiny.REALS, tiny.COUNTS)
        ]
        self.m = num_auxiliary
        self.rows = {
            labels: tiny.as_partition(labels, ROWS.alpha, ROWS.d)
            for labels in tables.partitions(num_rows)
        }
        self.states = [
            (state, pool)
            for state in tables.crosscat_states(num_rows, 3)
            for pool in product(self.rows, repeat=num_auxiliary)
        ]
        self.law = tables.law(self.states, self.log_joint)

    def log_joint(self, state) -> float:
        views, pool = state
        return tables.log_crosscat(views, self.table, COLUMNS, ROWS) + sum(
            tables.log_seating(labels, ROWS) for labels in pool
        )

    @functools.cached_property
    def scores(self):
        return column_marginals.TableScores(
            lambda partition: np.array(
                [
                    tiny.compiled_log_marginal(column, partition.labels, partition.num)
                    for column in self.table
                ]
            )
        )

    def step(self, column, state):
        (views, rows), labels = state
        views, held = np.array(views), [self.rows[each] for each in rows]
        pool = [self.rows[each] for each in labels]
        alone = column_moves.is_alone(column, views)
        slots = range(self.m) if alone else [auxiliary_pool.NO_SLOT]
        for slot in slots:
            places = auxiliary_pool.find_places(column, views, held, pool, slot)
            weights = column_moves.log_weights(
                column, places, held, self.scores, COLUMNS.alpha, COLUMNS.d
            )
            for choice, p in enumerate(enumeration.normalised(weights)):
                there = column_moves.put(column, views, held, places, choice)
                reached = tables.crosscat_in_order(there[0], [x.labels for x in there[1]])
                for fresh, chance in self.fresh(places, slot, choice):
                    kept = auxiliary_pool.update_pool(pool, places, slot, choice, fresh)
                    names = tuple(tuple(x.labels.tolist()) for x in kept)
                    yield (reached, names), p * chance / len(slots)

    def fresh(self, places, slot, choice):
        if not auxiliary_pool.is_fresh_needed(places, slot, choice):
            return [(None, 1.0)]
        return [
            (partition, math.exp(tables.log_seating(labels, ROWS)))
            for labels, partition in self.rows.items()
        ]

    def matrix(self, column) -> np.ndarray:
        return tables.transitions(self.states, lambda state: self.step(column, state))


@pytest.mark.parametrize(("num_rows", "num_auxiliary"), [(2, 1), (2, 2), (2, 3), (3, 1)])
def test_a_kept_pool_is_exact(num_rows, num_auxiliary):
    case = Enumerated(num_rows, num_auxiliary)
    for column in range(3 if num_rows == 2 else 1):
        matrix = case.matrix(column)
        assert enumeration.defect(matrix, case.law) < 1e-13
        assert enumeration.imbalance(matrix, case.law) < 1e-13


@pytest.mark.parametrize("slip", [broken.founded_slot_not_renewed, broken.own_partition_not_kept])
def test_slips_with_the_pool_are_found(monkeypatch, slip):
    monkeypatch.setattr(auxiliary_pool, "update_pool", slip)
    case = Enumerated(2, 2)
    sweep = case.matrix(0) @ case.matrix(1) @ case.matrix(2)
    assert enumeration.total_variation(case.law @ sweep, case.law) > 0.01


def test_a_sweep_keeps_the_pool_and_packs_the_views(seed):
    rng = np.random.default_rng([seed, 81])

    def draw():
        return draw_partition(6, pitman_yor.grids(), rng)

    views, held, pool = np.array([0, 1, 2, 0, 1]), [draw() for _ in range(3)], [draw(), draw()]
    for _ in range(20):
        views, held, pool = auxiliary_pool.move_columns(
            views, held, pool, lambda c, p: math.sin(c + p.num), draw, 1.0, 0.1, rng
        )
        assert sorted(set(views)) == list(range(len(held)))
        assert len(pool) == 2
        assert len({id(partition) for partition in held + pool}) == len(held) + 2


def test_all_columns_are_scored_in_one_reading(seed):
    """Every column of the five tiny ones, each as if it were read alone."""
    features = Features(
        family=np.array([0, 0, 2, 3, 0, 2]),
        place=np.array([0, 1, 0, 0, 2, 1]),
        column=np.array([0, 1, 2, 3, 4, 4]),
        num_values=np.array([3, 2, 0, 0, 2, 0]),
    )
    parts = [part for column in tiny.ALL for part in getattr(column, "parts", (column,))]
    missing = [4, 3, np.nan, -1, 3, np.nan]
    read = [
        [blank if x is None else x for x in part.values]
        for part, blank in zip(parts, missing, strict=True)
    ]
    cells = Cells(
        np.array([read[0], read[1], read[4]], dtype=np.uint8).T.copy(),
        np.empty((5, 0), dtype=np.int32),
        np.array([read[2], read[5]], dtype=np.float64).T.copy(),
        np.array([read[3]], dtype=np.int64).T.copy(),
    )
    hyper = [np.array([*vars(part).values()][1:]).ravel() for part in parts]
    rows = np.arange(5)
    for labels in tables.partitions(5)[::7]:
        partition = tiny.as_partition(labels)
        scores = column_marginals.table_scores(cells, features, hyper, rows)
        for number, column in enumerate(tiny.ALL):
            alone = tiny.compiled_log_marginal(column, labels, partition.num)
            assert scores(number, partition) == pytest.approx(alone, abs=1e-12)


def test_a_partition_is_read_once():
    partition, asked = tiny.as_partition((0, 1, 0, 1, 1)), []
    scores = column_marginals.TableScores(functools.partial(told, np.arange(5.0), asked))
    assert [scores(c, partition) for c in range(5)] == list(range(5))
    assert asked == [partition]


def told(scores, asked, partition) -> np.ndarray:
    asked.append(partition)
    return scores
