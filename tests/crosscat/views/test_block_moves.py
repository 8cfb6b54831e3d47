"""Blocks of columns that found views made for them: all states of three columns on three rows."""

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.crosscat.mixed_table import three_columns
from tests.crosscat.views import broken

from temperance.crosscat.partitions.partition import Partition
from temperance.crosscat.views import block_moves
from temperance.crosscat.views.block_moves import BlockViews, block_of, draw_seats, log_seats
from temperance.testing import tables

NUM = 3
COLUMN_SEATING, ROW_SEATING = tables.Seating(0.7, 0.35), tables.Seating(0.9, 0.25)
GROUND, COLUMNS, HYPER = three_columns(NUM)
STATES = tables.crosscat_states(NUM, NUM)
PARTITIONS = {
    labels: Partition(np.array(labels, np.int32), max(labels) + 1, ROW_SEATING.alpha, ROW_SEATING.d)
    for labels in tables.partitions(NUM)
}
VIEWS = BlockViews(GROUND)
ROWS = np.arange(NUM)


@functools.cache
def log_weight(block: tuple[int, ...], order: tuple[int, ...], labels: tables.Labels) -> float:
    view = VIEWS.empty(block, ROW_SEATING.alpha, ROW_SEATING.d, HYPER)
    seats = PARTITIONS[labels].labels[list(order)]
    return log_seats(view, np.array(order), seats, HYPER, np.random.default_rng(0))


@functools.cache
def log_score(block: tuple[int, ...], labels: tables.Labels) -> float:
    return sum(tables.log_cells(COLUMNS[c], labels) for c in block)


@functools.cache
def log_seen(block: tuple[int, ...], order: tuple[int, ...], labels: tables.Labels) -> float:
    """Log q: how likely rows in that order are to sit like that."""
    whole = tables.log_seating(labels, ROW_SEATING) + log_score(block, labels)
    return whole - log_weight(block, order, labels)


@pytest.mark.parametrize("block", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_seats_are_drawn_from_a_law(block: tuple[int, ...]):
    for order in itertools.permutations(range(NUM)):
        total = sum(math.exp(log_seen(block, order, labels)) for labels in PARTITIONS)
        assert total == pytest.approx(1.0, abs=1e-6)


def test_seats_are_drawn_from_that_law(seed: int):
    rng, order, block = np.random.default_rng(seed), (2, 0, 1), (0, 2)
    for _ in range(5):
        view = VIEWS.empty(block, ROW_SEATING.alpha, ROW_SEATING.d, HYPER)
        told = draw_seats(view, np.array(order), rng)
        labels = tables.in_order(view.partition(ROWS).labels.tolist())
        view.clear(ROWS)
        assert told == pytest.approx(log_weight(block, order, labels), abs=1e-9)


def defect(
    open_views: Any = block_moves.open_views,
    log_block_weights: Any = block_moves.log_block_weights,
    weigh: Any = lambda log_weight, _: log_weight,
) -> float:
    """How much the worst of all steps changes the posterior."""
    posterior = tables.law(
        STATES, lambda s: tables.log_crosscat(s, COLUMNS, COLUMN_SEATING, ROW_SEATING)
    )
    worst = 0.0
    sets = [np.array(bits, bool) for bits in itertools.product([0, 1], repeat=NUM)]
    for column, inside in itertools.product(range(NUM), sets):
        if not inside[column]:
            continue
        for order in [(0, 1, 2), (2, 0, 1)]:

            def step(
                state: tables.CrossState,
                column: int = column,
                inside: np.ndarray = inside,
                order: tuple[int, ...] = order,
            ) -> Any:
                views, rows = np.array(state[0]), state[1]
                held = [PARTITIONS[labels] for labels in rows]
                block = tuple(block_of(column, inside, views))
                whole = len(block) == int(np.count_nonzero(views == views[column]))
                places = open_views(block, inside, views)
                logs = log_block_weights(
                    len(block), places.sizes, len(held) - whole, COLUMN_SEATING.alpha,
                    COLUMN_SEATING.d,
                )  # fmt: skip
                logs[:-1] += [log_score(block, rows[view]) for view in places.views]
                own = rows[views[column]]
                for labels in [own] if whole else PARTITIONS:
                    share = 1.0 if whole else math.exp(log_seen(block, order, labels))
                    here = logs.copy()
                    here[-1] += weigh(log_weight(block, order, labels), log_score(block, labels))
                    law = np.exp(here - np.logaddexp.reduce(here))
                    for choice, probability in enumerate(law):
                        after, kept = block_moves.put_block(
                            block, views, held, places, choice, PARTITIONS[labels]
                        )
                        reached = tables.crosscat_in_order(
                            after.tolist(), [p.labels.tolist() for p in kept]
                        )
                        # Single-precision tables leave the shares of a law off by 1e-7.
                        yield (
                            reached,
                            share * probability / (1.0 if whole else _total(block, order)),
                        )

            matrix = tables.transitions(STATES, step)
            worst = max(worst, 0.5 * float(np.abs(posterior @ matrix - posterior).sum()))
    return worst


@functools.cache
def _total(block: tuple[int, ...], order: tuple[int, ...]) -> float:
    return sum(math.exp(log_seen(block, order, labels)) for labels in PARTITIONS)


def test_steps_leave_the_posterior_as_it_is():
    assert defect() < 1e-6


@pytest.mark.parametrize(
    "slip",
    [
        {"open_views": broken.let_any_view_be_joined},
        {"log_block_weights": broken.count_the_block_once},
        {"weigh": broken.weigh_by_the_marginal},
    ],
    ids=lambda slip: next(iter(slip)),
)
def test_broken_steps_do_not(slip: dict[str, Any]):
    assert defect(**slip) > 1e-3
