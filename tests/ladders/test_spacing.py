"""Rungs that share the barrier equally, and the numbers of rungs that the mathematics asks for."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from scipy.stats import norm
from tests.ladders import broken_spacing as broken

from temperance.errors import ArgumentError
from temperance.estimates.diagnostics import FloatArray
from temperance.ladders import spacing as schedule

BARRIER = 4.0


def path_rejection(betas: FloatArray) -> FloatArray:
    """Of a path whose barrier is like log(1 + 300 beta), as it is for conjugate normal models."""
    return 1.0 - np.exp(-np.diff(BARRIER * np.log1p(300.0 * betas) / np.log1p(300.0)))


def spread_after(equalise: Callable[[FloatArray, FloatArray], FloatArray], rounds: int) -> float:
    """The largest over the smallest rejection rate."""
    betas = schedule.initial_betas(12)
    for _ in range(rounds):
        betas = equalise(betas, path_rejection(betas))
    rates = path_rejection(betas)
    return float(rates.max() / rates.min())


def test_equalise_makes_rejection_equal() -> None:
    assert spread_after(schedule.equalise, 0) > 2.0
    assert spread_after(schedule.equalise, 4) < 1.02


def test_equalise_twin_does_not() -> None:
    assert spread_after(broken.equalise_reading_the_barrier_at_equal_betas, 4) > 2.0


def test_equal_rates_are_left_alone() -> None:
    betas = np.array([0.0, 0.01, 0.2, 0.3, 1.0])
    np.testing.assert_allclose(schedule.equalise(betas, np.full(4, 0.3)), betas, atol=1e-14)
    np.testing.assert_allclose(schedule.equalise(betas, np.zeros(4)), betas, atol=1e-14)


@pytest.mark.parametrize("num_rungs", [2, 3, 5, 8, 24, 128])
@pytest.mark.parametrize(
    "rejection", [[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1e-9, 0.9, 0.0, 0.9], [0.0] * 4]
)
def test_new_betas_increase_between_the_same_ends(num_rungs: int, rejection: list[float]) -> None:
    betas = np.array([1e-3, 1e-2, 0.1, 0.5, 1.0])
    new = schedule.equalise(betas, rejection, num_rungs)
    assert new.shape == (num_rungs,)
    assert (new[0], new[-1]) == (betas[0], betas[-1])
    assert np.all(np.diff(new) > 0.0)


def test_more_rungs_take_equal_shares_too() -> None:
    betas = schedule.initial_betas(12)
    betas = schedule.equalise(betas, path_rejection(betas), 24)
    rates = path_rejection(schedule.equalise(betas, path_rejection(betas)))
    np.testing.assert_allclose(rates, 1.0 - np.exp(-BARRIER / 23), rtol=0.02)


def test_initial_betas() -> None:
    powers = schedule.initial_betas(5)
    np.testing.assert_allclose(
        powers, [0.0, 0.25 ** (1 / 0.3), 0.5 ** (1 / 0.3), 0.75 ** (1 / 0.3), 1]
    )
    np.testing.assert_allclose(schedule.initial_betas(4, 0.125), [0.125, 0.25, 0.5, 1.0])
    assert schedule.initial_betas(1).tolist() == [1.0]


@pytest.mark.parametrize(
    ("barrier", "num_rungs"),
    [(0.0, 4), (1.5, 4), (1.51, 6), (4.5, 10), (5.5, 12), (5.6, 16), (63.5, 128), (1e9, 128)],
)
def test_rungs_for(barrier: float, num_rungs: int) -> None:
    assert schedule.rungs_for(barrier) == num_rungs


@pytest.mark.parametrize(
    ("barrier", "num_rungs"), [(0.0, 2), (0.1, 2), (1.0, 4), (3.0, 21), (7.0, 96), (np.inf, 96)]
)
def test_transition_rungs_for(barrier: float, num_rungs: int) -> None:
    assert schedule.transition_rungs_for(barrier) == num_rungs


# A path N(0, 1 / beta) in 200 dimensions: energies are nearly normal, and all steps of a geometric
# ladder are alike. The energy |x|^2 / 2 at beta is a gamma variable over beta.
DIMENSIONS = 200


def energies(rng: Generator, betas: FloatArray, num: int) -> FloatArray:
    return rng.gamma(DIMENSIONS / 2, size=(num, betas.size)) / betas


def gaussian_barrier(rng: Generator, hottest: float) -> float:
    betas = np.geomspace(hottest, 1.0, 100)
    energy = energies(rng, betas, 4000)
    log_ratio = np.diff(betas) * np.diff(-energy, axis=1) * -1.0
    return float(np.sum(1.0 - np.exp(np.minimum(log_ratio, 0.0)).mean(axis=0)))


def transition_acceptance(rng: Generator, betas: FloatArray, num: int = 20_000) -> float:
    """Where every rung forgets: downhill the draw is of a step's hotter rung, uphill the colder."""
    climb, descent = energies(rng, betas[1:], num), energies(rng, betas[:-1], num)
    log_ratio = ((climb - descent) * np.diff(betas)).sum(axis=1)
    return float(np.exp(np.minimum(log_ratio, 0.0)).mean())


def test_transitions_with_the_rungs_asked_for_accept_as_derived() -> None:
    rng = default_rng(0)
    barrier = gaussian_barrier(rng, 0.5)
    assert 3.0 < barrier < 5.0
    num_rungs = schedule.transition_rungs_for(barrier)
    acceptance = transition_acceptance(rng, np.geomspace(0.5, 1.0, num_rungs))
    derived = 2.0 * norm.cdf(-0.5 * np.sqrt(2.0 * np.pi * barrier**2 / (num_rungs - 1)))
    assert acceptance == pytest.approx(derived, abs=0.02)
    assert acceptance == pytest.approx(0.40, abs=0.03)
    twin = broken.transition_rungs_of_parallel_tempering(barrier)
    assert transition_acceptance(rng, np.geomspace(0.5, 1.0, twin)) < 0.2


# Costs, on the ladder of paper 1's experiments: M = 6, from 1/8.
HALVES = 2.0 ** (-0.5 * np.arange(6, -1, -1))


@pytest.mark.parametrize(
    ("cost", "linear", "cubic", "powers"),
    [
        (schedule.spt_cost, 3.1124, 1.5458, 7),
        (schedule.stt_cost, 5.0999, 2.0897, 12),
        (partial(schedule.stt_cost, moves_at_hottest=2), 5.2249, 2.0917, 13),
        (partial(schedule.stt_cost, moves_at_target=0), 4.0999, 1.0897, 11),
        (partial(schedule.stt_cost, moves_at_target=0, moves_at_hottest=2), 4.2249, 1.0917, 12),
        (lambda sizes, a: broken.stt_cost_as_printed(sizes / sizes[-1], a), 4.5178, 1.7381, 12),
    ],
)
def test_costs_are_those_of_the_audited_table(
    cost: Callable[[FloatArray, float], float], linear: float, cubic: float, powers: int
) -> None:
    for sizes in (HALVES, 1024 * HALVES):
        assert cost(sizes, 1.0) == pytest.approx(linear, abs=5e-5)
        assert cost(sizes, 3.0) == pytest.approx(cubic, abs=5e-5)
        assert cost(sizes, 0.0) == pytest.approx(powers)


def test_costs_count_moves() -> None:
    """One by one, for sizes in no particular proportion."""
    sizes = np.array([2.0, 3.0, 7.0, 10.0])
    sweep, transition = sizes, sizes[[3, 2, 1, 0, 1, 2]]
    assert schedule.spt_cost(sizes, 2.0) == pytest.approx(np.sum(sweep**2) / 100)
    assert schedule.stt_cost(sizes, 2.0) == pytest.approx(np.sum(transition**2) / 100)
    assert broken.stt_cost_as_printed(sizes / 10, 2.0) < schedule.stt_cost(sizes, 2.0) - 0.2
    assert schedule.spt_cost(sizes, 0.0) == sweep.size != broken.pt_cost_as_printed(4)
    assert schedule.stt_cost(sizes, 0.0) == transition.size != broken.tt_cost_as_printed(4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: schedule.spt_cost([4, 2, 1]), "sizes must be two or more and strictly increase"),
        (lambda: schedule.spt_cost([4]), "sizes must be two or more"),
        (lambda: schedule.spt_cost([0, 4]), "sizes must be positive"),
        (lambda: schedule.stt_cost([-1, 4]), "sizes must not be negative"),
        (lambda: schedule.stt_cost([1, 4], -1.0), "exponent"),
        (lambda: schedule.stt_cost([1, 4], np.nan), "exponent"),
        (lambda: schedule.equalise([0.0, 0.5, 0.5, 1.0], [0.1] * 3), "strictly increase"),
        (lambda: schedule.equalise([-0.1, 1.0], [0.1]), "negative"),
        (lambda: schedule.equalise([1.0], []), "two or more"),
        (lambda: schedule.equalise([0.0, 1.0], [0.1, 0.2]), "shape"),
        (lambda: schedule.equalise([0.0, 1.0], [np.nan]), "between 0 and 1"),
        (lambda: schedule.equalise([0.0, 1.0], [1.1]), "between 0 and 1"),
        (lambda: schedule.equalise([0.0, 1.0], [0.1], 1), "num_rungs"),
        (lambda: schedule.initial_betas(0), "num_rungs"),
        (lambda: schedule.initial_betas(4, 1.0), "hottest"),
        (lambda: schedule.initial_betas(4, -0.1), "hottest"),
        (lambda: schedule.rungs_for(np.nan), "barrier"),
        (lambda: schedule.transition_rungs_for(-1.0), "barrier"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()
