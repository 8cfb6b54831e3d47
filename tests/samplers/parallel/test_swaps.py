"""Swap schemes, exactly: permutations, acceptance, and the joint law of T1's table left alone."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.samplers.parallel import broken_swaps as broken

from temperance.errors import UnknownNameError
from temperance.moves.metropolis import metropolis
from temperance.moves.move import Params
from temperance.samplers.parallel.swaps import SwapOutcome, hot_to_cold, swap, swap_pairs
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.testing import CurvedGamma, enumeration, subsamples

# T1: log likelihoods of four rows in four states.
TABLE = subsamples.sine_terms(4, 4, 1.5)
POWERS = np.array([0.2, 0.5, 1.0])[:, None] * TABLE.sum(axis=0)
ROWS = subsamples.ladder_table(subsamples.independent(TABLE), (2, 1, 0, 3), (1, 2, 4))
TABLES = {"powers": POWERS, "rows": ROWS}


def brute_force(uniforms: np.ndarray, increments: np.ndarray, pairs: list[int]):
    """SwapOutcome one after another, by moving points about."""
    at = list(range(increments.shape[0]))
    acceptance = np.zeros(increments.shape[1])
    for k in pairs:
        log_ratio = increments[at[k], k] - increments[at[k + 1], k]
        acceptance[k] = min(1.0, np.exp(log_ratio))
        if np.log(uniforms[k]) < log_ratio:
            at[k], at[k + 1] = at[k + 1], at[k]
    return np.array(at), acceptance


@pytest.mark.parametrize("num_rungs", [2, 3, 6])
def test_schemes_are_the_swaps_done_one_by_one(num_rungs: int, seed: int):
    rng = np.random.default_rng(seed)
    num_pairs = num_rungs - 1
    uniforms = rng.uniform(size=(50, num_pairs))
    increments = rng.normal(size=(50, num_rungs, num_pairs))
    half = np.arange(50) % 2
    compared = np.arange(num_pairs) % 2 == half[:, None]
    swaps = jax.vmap(swap_pairs)(*map(jnp.asarray, (uniforms, increments, compared)))
    sweeps = jax.vmap(hot_to_cold)(*map(jnp.asarray, (uniforms, increments)))
    swaps, sweeps = jax.tree.map(np.asarray, (swaps, sweeps))
    moved = 0
    for i in range(50):
        pairs = list(range(half[i], num_pairs, 2))
        order, acceptance = brute_force(uniforms[i], increments[i], pairs)
        np.testing.assert_array_equal(swaps.order[i], order)
        np.testing.assert_allclose(swaps.acceptance[i][pairs], acceptance[pairs], rtol=1e-12)
        np.testing.assert_array_equal(np.flatnonzero(swaps.swapped[i]), exchanged(order))
        order, acceptance = brute_force(uniforms[i], increments[i], list(range(num_pairs)))
        np.testing.assert_array_equal(sweeps.order[i], order)
        np.testing.assert_allclose(sweeps.acceptance[i], acceptance, rtol=1e-12)
        moved += (order != np.arange(num_rungs)).any()
    assert moved > 10


@pytest.mark.parametrize(("pairs", "disjoint"), [([0, 3], True), ([1, 3], True), ([0, 1], False)])
def test_pairs_that_share_no_rung_swap_one_by_one(pairs: list[int], disjoint: bool, seed: int):
    """Whatever pairs a rule compares; pairs that share a rung do not, as is said there."""
    rng = np.random.default_rng(seed)
    uniforms, increments = rng.uniform(size=(200, 4)), rng.normal(size=(200, 5, 4))
    compared = jnp.isin(jnp.arange(4), jnp.asarray(pairs))
    swaps = jax.vmap(swap_pairs, (0, 0, None))(
        jnp.asarray(uniforms), jnp.asarray(increments), compared
    )
    wanted = [brute_force(u, i, pairs)[0] for u, i in zip(uniforms, increments, strict=True)]
    assert (np.asarray(swaps.order) != np.arange(5)).any()
    assert np.array_equal(swaps.order, wanted) == disjoint


def exchanged(order: np.ndarray) -> np.ndarray:
    """The lower rungs of the pairs that an even-odd order exchanges."""
    return np.flatnonzero(order > np.arange(order.size))


def test_the_swap_ratio_is_antisymmetric(seed: int):
    """Exchanged points have minus the log ratio, so one of the two swaps is always accepted."""
    ladder = CurvedGamma().ladder([0.0, 0.3, 1.0])
    x = jnp.asarray(np.random.default_rng(seed).normal(size=(3, 2)))
    components = jax.vmap(lambda x: ladder.evaluate(x, gradient=False).components)(x)
    increments = jax.vmap(ladder.increments)(components)
    back = increments[jnp.array([1, 0, 2])]
    first = jnp.asarray([True, False])
    there = swap_pairs(jnp.zeros(2), increments, first).acceptance[0]
    again = swap_pairs(jnp.zeros(2), back, first).acceptance[0]
    both = [ladder.log_density(k, x[i]) for k, i in [(0, 1), (1, 0), (0, 0), (1, 1)]]
    ratio = np.exp(float(both[0] + both[1] - both[2] - both[3]))
    np.testing.assert_allclose(there, min(1, ratio), rtol=1e-12)
    np.testing.assert_allclose(there / again, ratio, rtol=1e-12)
    assert max(float(there), float(again)) == 1.0


def test_unknown_schemes_are_refused():
    ladder = CurvedGamma().ladder([0.0, 1.0])
    with pytest.raises(UnknownNameError, match="deo"):
        ParallelTempering(ladder, metropolis(), Params(jnp.ones((2, 1)), jnp.ones((2, 2))), "de")


# JAX's schemes as matrices on the product space, from their own acceptance probabilities.


def every_state(table: np.ndarray) -> tuple[list[tuple[int, ...]], jax.Array]:
    num_rungs, n = table.shape
    states = list(product(range(n), repeat=num_rungs))
    steps = np.diff(table, axis=0)
    return states, jnp.asarray(np.array([steps[:, list(x)].T for x in states]))


def matrix_of(scheme: str, table: np.ndarray, parity: int = 0) -> np.ndarray:
    """Sums over every pattern of accepted and refused pairs, each with its probability."""
    num_rungs, n = table.shape
    states, increments = every_state(table)
    matrix = np.zeros((len(states), len(states)))
    for pattern in product([True, False], repeat=num_rungs - 1):
        # u = 0 accepts whatever the ratio, and infinity refuses.
        forced = jnp.where(jnp.asarray(pattern), 0.0, jnp.inf)
        if scheme == "sweep":
            swaps: SwapOutcome = jax.vmap(lambda i, u=forced: hot_to_cold(u, i))(increments)
            tried = np.ones(num_rungs - 1, bool)
        else:
            tried = np.arange(num_rungs - 1) % 2 == parity
            compared = jnp.asarray(tried)
            swaps = jax.vmap(lambda i, u=forced, c=compared: swap_pairs(u, i, c))(increments)
        if not tried[np.asarray(pattern)].all():
            continue
        acceptance = np.asarray(swaps.acceptance)
        chances = np.where(np.asarray(pattern), acceptance, np.where(tried, 1 - acceptance, 1.0))
        for here, x in enumerate(states):
            there = np.ravel_multi_index(np.array(x)[swaps.order[here]], (n,) * num_rungs)
            matrix[here, there] += chances[here].prod()
    return matrix


@pytest.mark.parametrize("name", TABLES)
def test_schemes_on_a_finite_space_have_the_exact_probabilities(name: str):
    table = TABLES[name]
    law = enumeration.joint(table)
    pair = [enumeration.swap_pair(table, k) for k in (0, 1)]
    for parity in (0, 1):
        matrix = matrix_of("deo", table, parity)
        np.testing.assert_allclose(matrix, pair[parity], atol=1e-14)
        assert enumeration.defect(matrix, law) < 1e-14
        assert enumeration.imbalance(matrix, law) < 1e-14
    sweep = matrix_of("sweep", table)
    np.testing.assert_allclose(sweep, pair[0] @ pair[1], atol=1e-14)
    assert enumeration.defect(sweep, law) < 1e-14
    assert enumeration.imbalance(sweep, law) > 1e-4


@pytest.mark.parametrize("scheme", ["deo", "seo", "sweep"])
def test_swap_draws_what_its_acceptance_says(scheme: str, seed: int):
    """Frequencies over independent keys against the probabilities that the scheme reports."""
    _, increments = every_state(POWERS)
    keys = jax.random.split(jax.random.key(seed), 20_000)
    swaps = jax.vmap(lambda k: swap(scheme, k, increments[27], jnp.asarray(0)))(keys)
    expected = np.asarray(swaps.acceptance)
    if scheme == "deo":
        expected = expected * np.array([1.0, 0.0])
    if scheme == "seo":
        expected = expected * 0.5
    error = np.sqrt((expected * (1 - expected)).mean(axis=0) / keys.size) + 1e-12
    z = (np.asarray(swaps.swapped) - expected).mean(axis=0) / error
    assert (np.abs(z) < 5).all(), z
    assert (np.asarray(swaps.swapped).mean(axis=0) > 0.02).any()


# Whole algorithms on T1, right and as printed.


@pytest.mark.parametrize("name", TABLES)
def test_parallel_tempering_is_exact_on_t1(name: str):
    table = TABLES[name]
    kernels = [enumeration.cycle_metropolis(row) for row in table]
    law = enumeration.joint(table)
    for pairs in ([0], [1], [0, 1], [1, 0]):
        assert enumeration.defect(enumeration.parallel_sweep(table, kernels, pairs), law) < 1e-14
    sweep = enumeration.parallel_sweep(table, kernels, [0, 1])
    assert enumeration.total_variation(enumeration.stationary(sweep), law) < 1e-12


@pytest.mark.parametrize("name", TABLES)
def test_exchanging_another_pair_than_was_compared_is_rejected(name: str):
    table = TABLES[name]
    kernels = [enumeration.cycle_metropolis(row) for row in table]
    law = enumeration.joint(table)
    printed = broken.printed_swaps(table, kernels)
    assert enumeration.defect(printed, law) > 1e-3
    assert enumeration.total_variation(enumeration.stationary(printed), law) > 0.03


@pytest.mark.parametrize("name", TABLES)
def test_literal_algorithm_1_never_moves_the_target(name: str):
    """The paper's theta_0 is our last rung: the probability that it changes is zero, exactly."""
    table = TABLES[name]
    kernels = [enumeration.cycle_metropolis(row) for row in table]
    printed = broken.printed_parallel_sweep(table, kernels)
    right = enumeration.parallel_sweep(table, kernels, [0, 1])
    assert chance_of_a_new_target(printed) == 0.0
    assert chance_of_a_new_target(right) > 0.2


def chance_of_a_new_target(matrix: np.ndarray) -> float:
    cube = matrix.reshape(16, 4, 16, 4)
    return max(cube[:, x, :, y].sum(axis=1).max() for x in range(4) for y in range(4) if x != y)
