"""Refreshing the subsamples of parallel tempering, exactly, with the points of all rungs.

T2 is the table of T1 and one iteration: every rung moved, both pairs of rungs swapped, both
subsamples refreshed. What a uniform redraw misses by was computed apart from this code; the other
numbers are this code's own, kept so that a change is noticed.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
from tests.samplers.parallel import broken_refresh as twins
from tests.samplers.test_subsampled_enumeration import EXACT, LAW, LIKELIHOOD, SIZES, TERMS, cycles

from temperance.samplers.parallel.refresh import exchange_log_ratios
from temperance.testing import enumeration, refreshes, subsamples
from temperance.testing.enumeration import Matrix, defect, stationary, total_variation

ORDERS = subsamples.all_orders(4)
EXTENDED = subsamples.ladder_tables(LIKELIHOOD, ORDERS, SIZES)
JOINT = refreshes.extended_law(EXTENDED)


def sweep() -> Matrix:
    """Every rung moved, then the hotter pair of rungs swapped and the colder."""
    return refreshes.within(
        EXTENDED, lambda table: enumeration.parallel_sweep(table, cycles(table), [0, 1])
    )


def by_family(matrix: Matrix) -> Matrix:
    """On points and subsamples, where two orders of the same subsamples are one state."""
    labels = [
        (subsamples.family_of(order, SIZES), point) for order in ORDERS for point in range(64)
    ]
    return refreshes.lumped(matrix, labels)


def exchange(pair: refreshes.Pair) -> Matrix:
    return refreshes.exchange(TERMS, SIZES, [pair])


def level_move(rung: int) -> Matrix:
    return np.mean([exchange(pair) for pair in refreshes.level_pairs(SIZES, rung)], axis=0)


def test_the_order_is_not_uniform_and_the_target_does_not_notice():
    np.testing.assert_allclose(refreshes.target_marginal(JOINT, 4), LAW, atol=1e-15)
    chances = refreshes.order_marginal(JOINT, 24)
    evidences = np.exp(EXTENDED).sum(axis=2).prod(axis=1)
    np.testing.assert_allclose(chances, evidences / evidences.sum(), rtol=1e-12)
    assert chances.min() < 0.4 / 24
    assert chances.max() > 2.0 / 24


def test_ratios_are_differences_of_the_joint_density():
    rng = np.random.default_rng(0)
    sizes, num_rows = (1, 3, 4, 7), 7
    terms = rng.normal(size=(num_rows, 5))
    order, points = tuple(rng.permutation(num_rows).tolist()), rng.integers(5, size=4)
    pairs = refreshes.every_pair(num_rows)
    first, second = np.array(pairs).T

    def log_density(order: subsamples.Order) -> float:
        table = subsamples.ladder_table(subsamples.independent(terms), order, sizes)
        return table[np.arange(4), points].sum()

    at = terms[np.array(order)][:, points].T
    ratios = exchange_log_ratios(*map(jnp.asarray, (at[:, first], at[:, second])), sizes,
                                 jnp.asarray(first), jnp.asarray(second))  # fmt: skip
    wanted = [log_density(refreshes.exchanged(order, [p])) - log_density(order) for p in pairs]
    np.testing.assert_allclose(ratios, wanted, atol=1e-13)
    assert np.sum(np.abs(wanted) < 1e-13) == 1 + 3  # both in one rung's own rows: 1, 2 and 4, 5, 6


def test_rungs_that_an_exchange_leaves_alone_may_be_infinite():
    at_first = jnp.array([[-jnp.inf], [0.5], [-jnp.inf]])
    at_second = jnp.array([[-jnp.inf], [0.2], [-jnp.inf]])
    first, second = jnp.array([1]), jnp.array([2])
    ratios = exchange_log_ratios(at_first, at_second, SIZES, first, second)
    np.testing.assert_allclose(ratios, -0.3, rtol=1e-12)
    never = exchange_log_ratios(at_first, at_second - jnp.inf, SIZES, first, second)
    assert never[0] == -jnp.inf


@pytest.mark.parametrize("pair", refreshes.every_pair(4))
def test_one_exchange_is_exact(pair: refreshes.Pair):
    matrix = exchange(pair)
    assert defect(matrix, JOINT) < EXACT
    assert enumeration.imbalance(matrix, JOINT) < EXACT
    together = refreshes.exchange_together(LIKELIHOOD, SIZES, [pair])
    np.testing.assert_allclose(matrix, together, atol=1e-14)


def test_refreshed_parallel_tempering_is_exact_on_t2():
    explored = sweep()
    matrix = explored @ level_move(1) @ level_move(0)
    assert defect(matrix, JOINT) < 1e-16
    families = by_family(matrix)
    assert families.shape == (768, 768)
    law = stationary(families)
    assert total_variation(refreshes.target_marginal(law, 4), LAW) < 1e-12
    everywhere = np.mean([exchange(pair) for pair in refreshes.every_pair(4)], axis=0)
    assert defect(explored @ everywhere, JOINT) < 1e-16
    assert 0.3 < 1 - JOINT @ np.diag(everywhere) < 0.9


def test_a_uniform_redraw_is_rejected_on_t2():
    matrix = sweep() @ twins.uniform_redraw(24, 64)
    assert defect(matrix, JOINT) > 1e-3
    law = stationary(by_family(matrix))
    assert abs(total_variation(refreshes.target_marginal(law, 4), LAW) - 0.035912) < 5e-7


def test_a_level_move_exchanges_rows_of_neighbouring_rungs():
    assert refreshes.level_pairs((1, 3, 5), 0) == [(0, 1), (0, 2)]
    assert refreshes.level_pairs((1, 3, 5), 1) == [(1, 3), (1, 4), (2, 3), (2, 4)]
    by_family(level_move(0))
    with pytest.raises(ValueError, match="other probabilities"):
        by_family(exchange((0, 2)))


# Many pairs at a time


@pytest.mark.parametrize(("sizes", "num_states"), [(SIZES, 4), ((1, 2, 3, 4), 3), ((2, 3, 4), 3)])
def test_disjoint_pairs_at_once_are_exact(sizes: tuple[int, ...], num_states: int):
    terms = subsamples.sine_terms(4, num_states, 1.5)
    likelihood = subsamples.independent(terms)
    law = refreshes.extended_law(subsamples.ladder_tables(likelihood, ORDERS, sizes))
    pairings = list(refreshes.pairings(4, 2))
    assert len(pairings) == 3
    for pairs in pairings:
        parallel = refreshes.exchange(terms, sizes, pairs)
        assert defect(parallel, law) < EXACT
        assert defect(refreshes.exchange_together(likelihood, sizes, pairs), law) < EXACT
        assert 0.3 < 1 - law @ np.diag(parallel) <= 1.0


def test_pairs_at_once_are_pairs_in_turn():
    one, two = exchange((0, 2)), exchange((1, 3))
    both = refreshes.exchange(TERMS, SIZES, [(0, 2), (1, 3)])
    np.testing.assert_allclose(both, one @ two, atol=1e-14)
    np.testing.assert_allclose(both, two @ one, atol=1e-14)


def test_pairs_that_share_a_position_are_rejected():
    assert defect(refreshes.exchange(TERMS, SIZES, [(0, 1), (1, 3)]), JOINT) > 1e-3


@pytest.mark.parametrize(
    ("ratios", "wanted", "distance"),
    [
        (twins.ratio_of_the_hottest_affected, 1.340e-3, 0.005721),
        (twins.ratio_of_shifted_rungs, 5.487e-3, 0.016745),
        (twins.ratio_upside_down, 8.392e-3, 0.071098),
        (twins.ratio_at_the_targets_point, 6.152e-3, 0.045013),
    ],
)
def test_wrong_ratios_are_rejected(ratios: Callable, wanted: float, distance: float):
    matrix = np.mean(
        [refreshes.exchange(TERMS, SIZES, pairs, ratios) for pairs in refreshes.pairings(4, 2)], 0
    )
    assert abs(defect(matrix, JOINT) - wanted) < 5e-7
    kernel, law = sweep() @ matrix, JOINT
    for _ in range(200):
        law = law @ kernel
    assert defect(kernel, law) < 1e-12
    assert abs(total_variation(refreshes.target_marginal(law, 4), LAW) - distance) < 5e-7


# Rows that are not independent: a Gaussian process whose length scale is the state

Y = np.array([0.8, -1.1, 0.3, 1.4])


def process(rows: subsamples.Order) -> np.ndarray:
    at = np.array(rows)
    distance = np.abs(at[:, None] - at[None, :])
    found = []
    for length in (0.3, 1.0, 2.5):
        covariance = np.exp(-distance / length) + 0.1 * np.eye(at.size)
        fit = Y[at] @ np.linalg.solve(covariance, Y[at])
        found.append(-0.5 * (fit + np.linalg.slogdet(covariance)[1]))
    return np.array(found)


def test_dependent_rows_are_exchanged_together():
    law = refreshes.extended_law(subsamples.ladder_tables(process, ORDERS, SIZES))
    for num_pairs in (1, 2):
        for pairs in refreshes.pairings(4, num_pairs):
            matrix = refreshes.exchange_together(process, SIZES, pairs)
            assert defect(matrix, law) < EXACT
            assert 0.3 < 1 - law @ np.diag(matrix) <= 1.0


def test_dependent_rows_judged_pair_by_pair_are_rejected():
    law = refreshes.extended_law(subsamples.ladder_tables(process, ORDERS, SIZES))
    pairs = [(0, 2), (1, 3)]
    assert defect(twins.dependent_pairs_one_by_one(process, SIZES, pairs), law) > 1e-3
    # Where rows are independent that is no slip.
    assert defect(twins.dependent_pairs_one_by_one(LIKELIHOOD, SIZES, pairs), JOINT) < EXACT
