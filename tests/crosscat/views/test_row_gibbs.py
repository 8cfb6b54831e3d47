"""Steps of rows: exact by enumeration of all partitions, and statistics that do not drift."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from tests.crosscat.mixed_table import mixed
from tests.crosscat.views import broken

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.features import NARROW, REAL, WIDE, Features
from temperance.crosscat.encoding.table import Table
from temperance.crosscat.frames.schema import Column, Schema
from temperance.crosscat.views.clusters import EMPTY, USED, empty_clusters, widened
from temperance.crosscat.views.row_gibbs import (
    _weigh_by_logs,
    draw_place,
    leave_row,
    log_predictive,
    weigh_row,
)
from temperance.crosscat.views.view import Ground, View
from temperance.testing import tables

ALPHA, D, NUM_ROWS = 0.7, 0.35, 4
SEATING = tables.Seating(ALPHA, D)
# Products of single-precision entries: six features, of which each is rounded to 6e-8.
ROUNDING = 1e-6

Weigh = Callable[[View, int], np.ndarray]


def exact_weights(view: View, row: int) -> np.ndarray:
    weigh_row(view.tables, row)
    return view.tables.weights


def log_weights_of(weigh: Weigh, columns: tuple[int, ...] = tuple(range(6))) -> Callable:
    """The kernel's weights, as `reseat` wants them."""
    ground, _, hyper = mixed(NUM_ROWS)

    def log_weights(labels: tables.Labels, row: int) -> np.ndarray:
        view = View(ground, columns, ALPHA, D)
        view.seat_rows(np.array(labels), np.arange(NUM_ROWS), hyper)
        leave_row(view.tables, row)
        found = weigh(view, row)
        others = [int(view.labels[r]) for r in range(NUM_ROWS) if r != row]
        places = [*dict.fromkeys(others), int(view.tables.clusters.head[EMPTY])]
        return np.log(found[places])

    return log_weights


def defect(weigh: Weigh, columns: tuple[int, ...] = tuple(range(6))) -> float:
    """How much a scan over all rows changes the posterior."""
    _, scored, _ = mixed(NUM_ROWS)
    states = tables.partitions(NUM_ROWS)
    log_weights = log_weights_of(weigh, columns)
    chosen = [scored[c] for c in columns]
    before = tables.law(states, lambda labels: tables.log_mixture(labels, chosen, SEATING))
    after = before
    for row in range(NUM_ROWS):
        matrix = tables.transitions(
            states, lambda labels, row=row: tables.reseat(labels, row, log_weights)
        )
        after = after @ matrix
    return 0.5 * float(np.abs(after - before).sum())


@pytest.mark.parametrize("columns", [tuple(range(6)), (0, 1), (2,), (3, 4), (5,)])
def test_gibbs_steps_leave_the_posterior_as_it_is(columns: tuple[int, ...]):
    assert defect(exact_weights, columns) < ROUNDING


@pytest.mark.parametrize(
    "weigh", [broken.drop_the_discount, broken.forget_the_clusters, broken.count_missing_cells]
)
def test_broken_steps_do_not(weigh: Weigh):
    assert defect(weigh) > 100 * ROUNDING


def test_predictives_are_those_of_the_scorer():
    ground, columns, hyper = mixed(NUM_ROWS)
    view = View(ground, range(6), ALPHA, D)
    labels = np.array([0, 1, 0, 2])
    view.seat_rows(labels, np.arange(NUM_ROWS), hyper)
    for row in range(NUM_ROWS):
        others = [r for r in range(NUM_ROWS) if r != row]
        view.seat_rows(labels, np.arange(NUM_ROWS), hyper)
        leave_row(view.tables, row)
        found = log_predictive(
            view.tables.clusters, view.tables.narrow, view.tables.wide,
            *weigh_row(view.tables, row),
        )  # fmt: skip
        # The row comes last, and is summed over where it may go.
        order = (*others, row)
        kept = tables.in_order(labels[others].tolist())
        logs = []
        for k in range(max(kept) + 2):
            seats = (*kept, k)
            total = tables.log_seating(seats, SEATING) - tables.log_seating(kept, SEATING)
            where = dict(zip(order, seats, strict=True))
            whole = tuple(where[r] for r in range(NUM_ROWS))
            alone = tuple(90 if r == row else where[r] for r in range(NUM_ROWS))
            for column in columns:
                without = tables.log_cells(column, alone) - _lone(column, row)
                total += tables.log_cells(column, whole) - without
            logs.append(total)
        assert found == pytest.approx(np.logaddexp.reduce(logs), abs=10 * ROUNDING)


def _lone(column: tables.Column, row: int) -> float:
    """Log p of the cells of a row by themselves."""
    parts = column.parts if isinstance(column, tables.Joined) else (column,)
    values = [(part, part.values[row]) for part in parts]
    return sum(part.log_predictive(x, []) for part, x in values if x is not None)


def test_weights_by_logarithms_are_the_same():
    ground, _, hyper = mixed(NUM_ROWS)
    view = View(ground, range(6), ALPHA, D)
    view.seat_rows(np.array([0, 1, 0, 2]), np.arange(NUM_ROWS), hyper)
    leave_row(view.tables, 1)
    total, factor = weigh_row(view.tables, 1)
    used = view.tables.clusters.head[USED]
    found = view.tables.weights[:used] / total
    log_total = np.log(total) + factor
    tables_of = view.tables
    total, factor = _weigh_by_logs(
        tables_of.clusters, tables_of.narrow, tables_of.wide, tables_of.real, tables_of.count,
        tables_of.weights, tables_of.logs, 1,
    )  # fmt: skip
    assert np.allclose(tables_of.weights[:used] / total, found, rtol=10 * ROUNDING)
    assert np.log(total) + factor == pytest.approx(log_total, abs=10 * ROUNDING)


def test_products_that_leave_the_range_of_numbers_are_taken_by_logarithms():
    ground, _, hyper = many_categories(num_columns=3000, num_values=40, seed=0)
    view = View(ground, range(3000), ALPHA, D)
    view.seat_rows(np.arange(20) % 3, np.arange(20), hyper)
    leave_row(view.tables, 0)
    total, factor = weigh_row(view.tables, 0)
    # Six others are like it in all cells.
    shares = [ground.frequencies[f][x] for f, x in enumerate(ground.table.cells.narrow[0])]
    score = np.log((0.1 + 6) / (4.1 + 6) / np.array(shares)).sum() + np.log(6 - D)
    assert np.log(total) + factor == pytest.approx(score, rel=1e-6)
    assert np.argmax(view.tables.weights) == 0


def many_categories(
    num_columns: int, num_values: int, seed: int, num_rows: int = 20
) -> tuple[Ground, None, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    names = tuple(range(num_values))
    schema = Schema(tuple(Column(f"c{i}", "categorical", names) for i in range(num_columns)))
    # Rows of a kind are alike, so that the ratios of predictives multiply up.
    kinds = rng.integers(0, num_values, (3, num_columns))
    codes = kinds[np.arange(num_rows) % 3].astype(np.uint8)
    empty = (np.zeros((num_rows, 0), dtype) for dtype in (np.int32, np.float64, np.int64))
    table = Table(schema, Features.of(schema), Cells(codes, *empty))
    return Ground.of(table), None, [np.full(num_values + 1, 0.1) for _ in range(num_columns)]


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_statistics_are_those_of_a_rebuild(seed: int, offset: float):
    """After any number of entries and removals, however far the values are from zero."""
    rng = np.random.default_rng(seed)
    num = 60
    _, _, hyper = mixed(4)
    small = mixed(4)[0].table
    real = rng.normal(offset, 1e-3 if offset else 1.0, (num, 2))
    real[rng.random((num, 2)) < 0.2] = np.nan
    cells = Cells(
        np.column_stack(
            [rng.integers(0, 2, num), rng.choice([0, 1, 2, 4], num), rng.integers(0, 2, num)]
        ).astype(np.uint8),
        rng.integers(0, 300, (num, 1)).astype(np.int32),
        real,
        rng.integers(-1, 9, (num, 1)),
    )
    ground = Ground.of(Table(small.schema, small.features, cells))
    view = View(ground, range(6), 20.0, 0.5)
    view.set_hyper(hyper)
    order = rng.permutation(num)
    steps, inside = [], []
    for row in order:
        steps.append(row)
        inside.append(row)
        for _ in range(20):
            out = inside.pop(rng.integers(len(inside)))
            steps += [-1 - out, out]
            inside.append(out)
    view.run(np.array(steps), rng)
    # More clusters than there was room for at first.
    assert offset or view.num_clusters > 20
    again = View(ground, range(6), 20.0, 0.5)
    again.seat_rows(view.labels, np.arange(num), hyper, packed=False)
    for family in (NARROW, WIDE, REAL, 3):
        for f in view.features[family]:
            for kept, built in zip(view.statistics(f), again.statistics(f), strict=True):
                width = min(kept.shape[-1], built.shape[-1])
                assert np.allclose(kept[..., :width], built[..., :width], rtol=1e-9, atol=1e-12)
                assert not kept[..., width:].any()
    for name in ("narrow", "wide"):
        old, new = getattr(view.tables, name), getattr(again.tables, name)
        shapes = [(len(group.weight), -1) for group in (old, new)]
        width = min(old.counts.reshape(shapes[0]).shape[1], new.counts.reshape(shapes[1]).shape[1])
        for part in ("counts", "table"):
            left, right = (
                getattr(g, part).reshape(s) for g, s in zip((old, new), shapes, strict=True)
            )
            assert np.array_equal(left[:, :width], right[:, :width])
    used = view.tables.clusters.head[USED]
    assert np.array_equal(view.tables.clusters.mass[:used], again.tables.clusters.mass[:used])


def test_plain_sums_lose_what_a_rebuild_has(seed: int):
    """The broken twin of sums to twice double precision."""
    rng = np.random.default_rng(seed)
    values = rng.normal(1e6, 1e-3, 60)
    steps = [step for row in range(60) for step in (row, *([-1 - row, row] * 20))]
    assert not np.isclose(broken.plain_squares(values, steps), 60 * values.var(), rtol=1e-9)


WEIGHTS = np.array([0.0, 3.0, 1.0, 0.0, 2.0, 0.0])


def p_of_draws(draw: Callable[..., int], first: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    found = np.bincount([draw(WEIGHTS, 6, 6.0, first, rng) for _ in range(6000)], minlength=6)
    assert not found[WEIGHTS == 0].any()
    return scipy.stats.chisquare(found[WEIGHTS > 0], 1000 * WEIGHTS[WEIGHTS > 0]).pvalue


@pytest.mark.parametrize("first", [0, 1, 4, 5, 9])
def test_draws_follow_the_weights(first: int, seed: int):
    assert p_of_draws(draw_place, first, seed) > 1e-4


@pytest.mark.parametrize("first", [1, 4])
def test_a_place_that_is_looked_at_twice_is_drawn_too_often(first: int, seed: int):
    assert p_of_draws(broken.look_twice, first, seed) < 1e-12


@pytest.mark.parametrize(("num_columns", "num_values"), [(2, 3), (127, 3), (129, 3)])
def test_products_without_frequencies_draw_the_same_places(
    num_columns: int, num_values: int, seed: int
):
    ground, _, hyper = many_categories(num_columns, num_values, seed, num_rows=40)
    steps = np.array([step for row in range(40) for step in (row, *([-1 - row, row] * 5))])
    seats = []
    for weighed in (False, True):
        view = View(ground, range(num_columns), ALPHA, D)
        view.set_hyper(hyper)
        view.run(steps, np.random.default_rng(seed), weighed)
        seats.append(view.labels.copy())
    assert np.array_equal(*seats)


def test_labels_are_long_where_places_are_many():
    short = empty_clusters(5, ALPHA, D)
    short.labels[:3] = 0, 1, 0
    assert short.labels.itemsize == 2
    assert widened(short, 2**15 - 1).labels.itemsize == 2
    long = widened(short, 2**15)
    assert long.labels.itemsize == 4
    assert long.labels.tolist() == [0, 1, 0, -1, -1]


@pytest.mark.slow
def test_more_clusters_than_a_short_label_can_name(seed: int):
    num = 2**15 + 10
    ground, _, hyper = many_categories(1, 2, seed, num_rows=num)
    view = View(ground, [0], ALPHA, D)
    rows = np.arange(num)
    view.seat_rows(rows, rows, hyper)
    assert view.num_clusters == num
    last = num - 1
    view.run(np.array([-1 - last, last]), np.random.default_rng(seed))
    assert view.labels[:-1].tolist() == rows[:-1].tolist()
    assert view.sizes.sum() == num
    again = View(ground, [0], ALPHA, D)
    again.seat_rows(view.labels, rows, hyper, packed=False)
    assert np.array_equal(again.tables.narrow.counts, view.tables.narrow.counts)
