"""Columns between views: every state of three columns on three rows, auxiliaries summed over."""

import functools
import math
from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats
from tests.crosscat import tiny_tables as tiny
from tests.crosscat.partitions import broken

from temperance.crosscat.partitions import column_marginals, column_moves, pitman_yor
from temperance.crosscat.partitions.partition import draw_partition
from temperance.crosscat.partitions.pitman_yor import PitmanYorGrids
from temperance.testing import enumeration, tables

COLUMN_SEATING = tables.Seating(0.7, 0.35)
ROW_SEATING = tables.Seating(0.9, 0.25)
TABLE = tuple(tiny.first_rows(column, 3) for column in (tiny.SPIKE, tiny.REALS, tiny.COUNTS))
STATES = tables.crosscat_states(3, 3)
ROW_PARTITIONS = {
    labels: tiny.as_partition(labels, ROW_SEATING.alpha, ROW_SEATING.d)
    for labels in tables.partitions(3)
}
ROW_PRIOR = {labels: math.exp(tables.log_seating(labels, ROW_SEATING)) for labels in ROW_PARTITIONS}
LABELS = {partition: labels for labels, partition in ROW_PARTITIONS.items()}


@functools.cache
def score(column: int, labels: tables.Labels) -> float:
    return tiny.compiled_log_marginal(TABLE[column], labels, max(labels) + 1)


def log_marginal(column, partition) -> float:
    return score(column, tuple(partition.labels.tolist()))


@functools.cache
def posterior() -> np.ndarray:
    return tables.law(STATES, lambda s: tables.log_crosscat(s, TABLE, COLUMN_SEATING, ROW_SEATING))


def read(state: tables.CrossState):
    views, rows = state
    return np.array(views), [ROW_PARTITIONS[labels] for labels in rows]


def write(views, partitions) -> tables.CrossState:
    return tables.crosscat_in_order(views, [partition.labels for partition in partitions])


def fresh_draws(num: int):
    """Every choice of `num` partitions from the prior, in no order, with its probability."""
    for labels in combinations_with_replacement(ROW_PARTITIONS, num):
        orders = math.factorial(num) / math.prod(
            math.factorial(times) for times in Counter(labels).values()
        )
        yield (
            [ROW_PARTITIONS[each] for each in labels],
            orders * math.prod(ROW_PRIOR[each] for each in labels),
        )


@functools.cache
def destination(column: int, state: tables.CrossState, place: int | tables.Labels):
    """The state with `column` in a view that is there, or in a new one of that partition."""
    views, partitions = read(state)
    places = column_moves.find_proposals(column, views)
    if isinstance(place, int):
        return write(*column_moves.put(column, views, partitions, places, place))
    founded = places._replace(auxiliary=(ROW_PARTITIONS[place],))
    return write(*column_moves.put(column, views, partitions, founded, len(places.views)))


def reached(column: int, state: tables.CrossState, places: column_moves.Places, choice: int):
    if choice < len(places.views):
        return destination(column, state, choice)
    return destination(column, state, LABELS[places.auxiliary[choice - len(places.views)]])


def algorithm_8(column: int, num_auxiliary: int):
    """One column's step by the kernel's own weights."""

    def step(state):
        views, partitions = read(state)
        for fresh, chance in fresh_draws(column_moves.num_fresh(column, views, num_auxiliary)):
            places = column_moves.find_places(column, views, partitions, fresh)
            weights = column_moves.log_weights(
                column, places, partitions, log_marginal, COLUMN_SEATING.alpha, COLUMN_SEATING.d
            )
            for choice, p in enumerate(np.exp(weights - weights.max()) / _sum_exp(weights)):
                yield reached(column, state, places, choice), chance * p

    return step


def _sum_exp(weights: np.ndarray) -> float:
    return np.exp(weights - weights.max()).sum()


def metropolis(column: int):
    """One column's Metropolis step, rejections and all."""

    def step(state):
        views, partitions = read(state)
        places = column_moves.find_proposals(column, views)
        weights = column_moves.log_prior_weights(
            places.sizes, 1, COLUMN_SEATING.alpha, COLUMN_SEATING.d
        )
        proposal = np.exp(weights - weights.max()) / _sum_exp(weights)
        for fresh, chance in fresh_draws(1):
            founded = places._replace(auxiliary=tuple(fresh))
            for choice, q in enumerate(proposal):
                accept = math.exp(
                    column_moves.log_acceptance(
                        column, views, partitions, founded, choice, log_marginal
                    )
                )
                yield reached(column, state, founded, choice), chance * q * accept
                yield state, chance * q * (1.0 - accept)

    return step


def sweep(kernel) -> np.ndarray:
    matrix = np.eye(len(STATES))
    for column in range(3):
        matrix = matrix @ tables.transitions(STATES, kernel(column))
    return matrix


@pytest.mark.parametrize("num_auxiliary", [1, 2, 3])
def test_algorithm_8_is_exact(num_auxiliary):
    law = posterior()
    for column in range(3 if num_auxiliary < 3 else 1):
        matrix = tables.transitions(STATES, algorithm_8(column, num_auxiliary))
        assert enumeration.defect(matrix, law) < 1e-12
        assert enumeration.imbalance(matrix, law) < 1e-12


def test_metropolis_from_the_prior_is_exact():
    law = posterior()
    for column in range(3):
        matrix = tables.transitions(STATES, metropolis(column))
        assert enumeration.defect(matrix, law) < 1e-12
        assert enumeration.imbalance(matrix, law) < 1e-12


@pytest.mark.parametrize("num_auxiliary", [1, 2])
def test_a_lone_column_that_forgets_its_partition_is_found(monkeypatch, num_auxiliary):
    monkeypatch.setattr(column_moves, "find_places", broken.own_partition_forgotten)
    monkeypatch.setattr(column_moves, "num_fresh", broken.all_fresh)
    matrix = sweep(lambda column: algorithm_8(column, num_auxiliary))
    off = enumeration.total_variation(enumeration.stationary(matrix), posterior())
    assert off > 0.02


@pytest.mark.parametrize("slip", [broken.mass_not_shared, broken.column_discount_dropped])
def test_wrong_masses_are_found(monkeypatch, slip):
    monkeypatch.setattr(column_moves, "log_prior_weights", slip)
    matrix = sweep(lambda column: algorithm_8(column, 2))
    off = enumeration.total_variation(enumeration.stationary(matrix), posterior())
    assert off > 0.02


@pytest.mark.parametrize(
    ("name", "slip"),
    [
        ("log_acceptance", broken.always_accepted),
        ("log_prior_weights", broken.proposed_from_sizes),
        ("log_prior_weights", broken.column_discount_dropped),
    ],
)
def test_slips_of_metropolis_are_found(monkeypatch, name, slip):
    monkeypatch.setattr(column_moves, name, slip)
    matrix = sweep(metropolis)
    off = enumeration.total_variation(enumeration.stationary(matrix), posterior())
    assert off > 0.02


@pytest.mark.parametrize("kernel", ["algorithm 8", "metropolis"])
def test_a_sweep_keeps_the_posterior(kernel, seed):
    """States drawn from the enumerated posterior and swept have its law again, alphas included."""
    rng = np.random.default_rng([seed, 71])
    grids = PitmanYorGrids(np.array([ROW_SEATING.alpha]), np.array([ROW_SEATING.d]))
    law = posterior()
    counts = np.zeros(len(STATES))
    index = {state: i for i, state in enumerate(STATES)}
    for start in rng.choice(len(STATES), size=400, p=law):
        moved = column_moves.move_columns(
            *read(STATES[start]), log_marginal, 3,
            COLUMN_SEATING.alpha, COLUMN_SEATING.d, grids, rng, num_auxiliary=2, kernel=kernel,
        )  # fmt: skip
        counts[index[write(*moved)]] += 1
    assert _chi_square(counts, law) > 1e-4


def test_a_sweep_moves(seed):
    """From one state, the chain's law after a sweep is that of the matrices in random order."""
    rng = np.random.default_rng([seed, 72])
    grids = PitmanYorGrids(np.array([ROW_SEATING.alpha]), np.array([ROW_SEATING.d]))
    start = STATES.index(((0, 1, 1), ((0, 1, 2), (0, 0, 1))))
    one = [tables.transitions(STATES, algorithm_8(column, 1)) for column in range(3)]
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    law = np.mean([(one[a] @ one[b] @ one[c])[start] for a, b, c in orders], axis=0)
    counts = np.zeros(len(STATES))
    index = {state: i for i, state in enumerate(STATES)}
    for _ in range(400):
        moved = column_moves.move_columns(
            *read(STATES[start]), log_marginal, 3,
            COLUMN_SEATING.alpha, COLUMN_SEATING.d, grids, rng, num_auxiliary=1,
        )  # fmt: skip
        counts[index[write(*moved)]] += 1
    assert _chi_square(counts, law) > 1e-4


def _chi_square(counts: np.ndarray, law: np.ndarray) -> float:
    """The p-value, with the states expected fewer than five times put together."""
    expected = law * counts.sum()
    large = expected >= 5.0
    observed = np.r_[counts[large], counts[~large].sum()]
    wanted = np.r_[expected[large], expected[~large].sum()]
    return float(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)


def test_fresh_partitions_seat_the_rows_that_are_present(seed):
    rng = np.random.default_rng([seed, 73])
    drawn = draw_partition(3, pitman_yor.grids(), rng)
    assert len(drawn.labels) == 3
    assert sorted(set(drawn.labels)) == list(range(drawn.num))


def test_views_stay_packed_and_scores_are_computed_once(seed):
    rng = np.random.default_rng([seed, 74])
    asked = []

    def log_marginals(partition):
        asked.append(partition)
        return np.sin(np.arange(5) + partition.num)

    scores = column_marginals.TableScores(log_marginals)
    held = [draw_partition(6, pitman_yor.grids(), rng) for _ in range(3)]
    views = np.array([0, 1, 2, 0, 1])
    for _ in range(20):
        views, held = column_moves.move_columns(
            views, held, scores, 6, 1.0, 0.1, pitman_yor.grids(), rng
        )
        assert sorted(set(views)) == list(range(len(held)))
    assert len(asked) == len({id(partition) for partition in asked})


def test_one_column_alone_keeps_or_renews_its_view(seed):
    rng = np.random.default_rng([seed, 75])
    held = [draw_partition(4, pitman_yor.grids(), rng)]
    views, held = column_moves.move_columns(
        np.array([0]), held, lambda *_: 0.0, 4, 1.0, 0.5, pitman_yor.grids(), rng
    )
    assert views.tolist() == [0]
    assert len(held) == 1
