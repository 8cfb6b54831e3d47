"""Tempering by subsampling, exactly: kernels as matrices on T1's table, right and with slips.

T1 is four rows in four states with subsamples of 1, 2 and 4 rows. Its posterior, its kernel with
two moves at the top and what the printed kernels miss by were computed apart from this code; the
other numbers are this code's own, kept so that a change is noticed.
"""

from collections.abc import Sequence
from itertools import pairwise, product
from math import factorial

import numpy as np
import pytest
from tests.samplers import broken_subsampled_enumeration as broken
from tests.samplers.parallel import broken_swaps

from temperance.testing import enumeration, refreshes, subsamples
from temperance.testing.enumeration import Matrix, Table, defect, stationary, total_variation
from temperance.testing.subsamples import Build

SIZES = (1, 2, 4)
TERMS = subsamples.sine_terms(4, 4, 1.5)
LIKELIHOOD = subsamples.independent(TERMS)
FAMILIES = subsamples.families(SIZES)
TABLES = subsamples.ladder_tables(LIKELIHOOD, FAMILIES, SIZES)
POSTERIOR = np.array([0.21892817, 0.34563211, 0.13918119, 0.29625853])
LAW = subsamples.posterior(TABLES[0])
EXACT = 1e-15


def cycles(table: Table) -> list[Matrix]:
    return [enumeration.cycle_metropolis(row) for row in table]


# Families of subsamples


def test_the_table_is_t1():
    wanted = [[1.5 * np.sin(1.7 * i + 2.3 * x + 0.5) for x in range(4)] for i in range(4)]
    np.testing.assert_allclose(TERMS, wanted, rtol=1e-14)
    np.testing.assert_allclose(LAW, POSTERIOR, atol=5e-9)


@pytest.mark.parametrize(("sizes", "count"), [(SIZES, 12), ((1, 3, 6), 60), ((2, 4), 6), ((4,), 1)])
def test_every_family_stands_for_as_many_orders(sizes: tuple[int, ...], count: int):
    orders = subsamples.all_orders(sizes[-1])
    assert len(orders) == factorial(sizes[-1])
    families = [subsamples.family_of(order, sizes) for order in orders]
    assert {families.count(family) for family in families} == {len(orders) // count}
    chosen = [subsamples.family_of(order, sizes) for order in subsamples.families(sizes)]
    assert len(chosen) == count
    assert set(chosen) == set(families)
    for family in chosen:
        assert tuple(map(len, family)) == sizes
        assert all(one < two for one, two in pairwise(family))


def test_a_ladder_is_the_prior_and_the_first_rows():
    prior = np.array([0.1, -0.2, 0.3, 0.0])
    table = subsamples.ladder_table(LIKELIHOOD, (2, 0, 3, 1), SIZES, prior)
    wanted = np.stack([TERMS[2], TERMS[2] + TERMS[0], TERMS.sum(axis=0)]) + prior
    np.testing.assert_allclose(table, wanted, rtol=1e-13)


# Tempered transitions with a new family each time


@pytest.mark.parametrize(
    ("build", "row"),
    [
        (enumeration.tempered_transition, [0.68203222, 0.09186024, 0.07964047, 0.14646707]),
        (enumeration.single_top_transition, [0.67963815, 0.09897231, 0.06099736, 0.16039218]),
    ],
)
def test_transitions_leave_the_posterior_alone(build: Build, row: list[float]):
    matrix = subsamples.mixture(TABLES, build)
    np.testing.assert_allclose(matrix[0], row, atol=5e-9)
    assert defect(matrix, LAW) < EXACT
    assert enumeration.imbalance(matrix, LAW) < EXACT
    assert 0.2 < 1 - LAW @ np.diag(matrix) < 0.4
    all_orders = subsamples.ladder_tables(LIKELIHOOD, subsamples.all_orders(4), SIZES)
    np.testing.assert_allclose(subsamples.mixture(all_orders, build), matrix, atol=1e-14)


def test_one_move_at_the_top_is_a_sum_over_paths():
    wanted = np.zeros((4, 4))
    for hot, warm, cold in TABLES:
        top, middle, _ = cycles(np.stack([hot, warm, cold]))
        for start, a, b, end in product(range(4), repeat=4):
            up = (warm[start] - cold[start]) + (hot[a] - warm[a])
            down = (warm[b] - hot[b]) + (cold[end] - warm[end])
            path = middle[start, a] * top[a, b] * middle[b, end] * min(1.0, np.exp(up + down))
            wanted[start, end] += path / len(TABLES)
    found = subsamples.mixture(TABLES, enumeration.single_top_transition)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(found[off], wanted[off], atol=1e-15)


@pytest.mark.parametrize(
    ("build", "wanted", "distance"),
    [
        (broken.printed_transition, 2.443e-2, 0.037326),
        (broken.printed_transition_with_sum, 2.826e-2, 0.047655),
        (broken.transition_with_sum, 7.211e-2, 0.081668),
    ],
)
def test_transitions_as_printed_are_rejected(build: Build, wanted: float, distance: float):
    matrix = subsamples.mixture(TABLES, build)
    assert abs(defect(matrix, LAW) - wanted) < 5e-6
    assert abs(total_variation(stationary(matrix), LAW) - distance) < 5e-7


def test_coming_down_through_other_rows_is_rejected():
    matrix = broken.rows_redrawn_at_the_top(TABLES)
    assert abs(defect(matrix, LAW) - 6.171e-3) < 5e-7
    assert abs(total_variation(stationary(matrix), LAW) - 0.015018) < 5e-7
    # With one family, up and down are the same rows.
    alone = broken.rows_redrawn_at_the_top(TABLES[:1])
    right = subsamples.mixture(TABLES[:1])
    np.testing.assert_allclose(alone, right, atol=1e-15)


def scan(row: np.ndarray) -> Matrix:
    """Along the pairs 01 and 23, then along 12 and 30: in this order it is not reversible."""
    first, second = np.eye(4)[[1, 0, 3, 2]], np.eye(4)[[3, 2, 1, 0]]
    return enumeration.metropolis(first, row) @ enumeration.metropolis(second, row)


def scan_reversed(table: Table, kernels: Sequence[Matrix]) -> Matrix:
    back = [enumeration.reversal(kernel, enumeration.normalised(row))
            for kernel, row in zip(kernels, table, strict=True)]  # fmt: skip
    return enumeration.transition(table, list(kernels[-2::-1]), back[:-1])


def test_a_reversal_is_the_scan_run_backwards():
    row = TABLES[0][1]
    first, second = np.eye(4)[[1, 0, 3, 2]], np.eye(4)[[3, 2, 1, 0]]
    backwards = enumeration.metropolis(second, row) @ enumeration.metropolis(first, row)
    law = enumeration.normalised(row)
    np.testing.assert_allclose(enumeration.reversal(scan(row), law), backwards, atol=1e-15)
    assert enumeration.imbalance(scan(row), law) > 1e-2
    assert defect(scan(row), law) < EXACT


def test_moves_that_are_not_reversible_are_reversed_on_the_way_down():
    right = subsamples.mixture(TABLES, scan_reversed, scan)
    assert defect(right, LAW) < EXACT
    assert total_variation(stationary(right), LAW) < 1e-12


@pytest.mark.parametrize(
    ("build", "wanted", "distance"),
    [
        (broken.scan_not_reversed, 6.9956e-3, 0.028677),
        (broken.scan_reversed_around_one_top, 7.6524e-3, 0.020469),
    ],
)
def test_scans_that_are_not_reversed_are_rejected(build: Build, wanted: float, distance: float):
    matrix = subsamples.mixture(TABLES, build, scan)
    assert abs(defect(matrix, LAW) - wanted) < 5e-8
    assert abs(total_variation(stationary(matrix), LAW) - distance) < 5e-7


# Parallel tempering with one family, kept


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_fixed_subsamples_do_not_bias_the_target(table: Table):
    law = enumeration.joint(table)
    matrix = enumeration.parallel_sweep(table, cycles(table), [0, 1])
    assert defect(matrix, law) < EXACT
    assert total_variation(refreshes.target_marginal(stationary(matrix), 4), LAW) < 1e-12


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_algorithm_1_as_printed_is_rejected(table: Table):
    law = enumeration.joint(table)
    wrong_pair = broken_swaps.printed_swaps(table, cycles(table))
    assert defect(wrong_pair, law) > 1e-2
    assert total_variation(stationary(wrong_pair), law) > 0.1
    literal = broken_swaps.printed_parallel_sweep(table, cycles(table)).reshape(16, 4, 16, 4)
    stays = literal[:, np.arange(4), :, np.arange(4)].sum(axis=2)
    np.testing.assert_allclose(stays, 1.0, atol=1e-15)
