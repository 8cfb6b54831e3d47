"""Diagnostics against ArviZ, against what is known exactly, and against their broken twins."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from arviz_stats.base import array_stats
from numpy.random import Generator, default_rng
from scipy.signal import lfilter
from tests.estimates import broken_diagnostics as broken

from temperance.errors import ArgumentError
from temperance.estimates import diagnostics
from temperance.estimates.diagnostics import FloatArray

IntArray = npt.NDArray[np.int64]


def autoregressive(rng: Generator, shape: tuple[int, ...], coefficient: float) -> FloatArray:
    """Stationary, of variance 1 and long-run variance (1 + a) / (1 - a)."""
    fresh = rng.normal(size=shape)
    fresh[:, 1:] *= np.sqrt(1.0 - coefficient**2)
    return np.asarray(lfilter([1.0], [1.0, -coefficient], fresh, axis=1))


def arviz_ess(series: FloatArray) -> float:
    return np.asarray(array_stats.ess(series, chain_axis=0, draw_axis=1, method="mean")).item()


def arviz_rhat(series: FloatArray) -> float:
    return np.asarray(array_stats.rhat(series, chain_axis=0, draw_axis=1, method="split")).item()


# --- Autocovariance and what is made of it -------------------------------------------------------


@pytest.mark.parametrize("num_draws", [2, 7, 64])
def test_autocovariance_is_its_definition(num_draws: int) -> None:
    series = default_rng(0).normal(size=(2, num_draws, 3))
    centred = series - series.mean(axis=1, keepdims=True)
    direct = [
        (centred[:, lag:] * centred[:, : num_draws - lag]).sum(axis=1) for lag in range(num_draws)
    ]
    expected = np.stack(direct, axis=1) / num_draws
    np.testing.assert_allclose(diagnostics.autocovariance(series), expected, atol=1e-12)


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.95, -0.5])
def test_effective_size_and_rhat_are_those_of_arviz(coefficient: float) -> None:
    series = autoregressive(default_rng(1), (4, 200, 5), coefficient)
    series[..., 4] += np.arange(4)[:, None]
    for entry in range(5):
        one = series[..., entry]
        ess, rhat = arviz_ess(one), arviz_rhat(one)
        assert diagnostics.effective_size(series)[entry] == pytest.approx(ess, rel=1e-9)
        assert diagnostics.rhat_live(series)[entry] == pytest.approx(rhat, rel=1e-9)


def test_effective_size_counts_stuck_chains_as_one_draw_each() -> None:
    series = np.arange(4.0)[:, None] + 1e-3 * default_rng(2).normal(size=(4, 1000))
    assert 1.0 < diagnostics.effective_size(series) < 8.0
    assert diagnostics.rhat_live(series) > 100.0


def test_effective_size_twin_does_not_agree_with_arviz() -> None:
    series = np.arange(4.0)[:, None] + default_rng(2).normal(size=(4, 200))
    ess = arviz_ess(series)
    assert broken.effective_size_of_one_long_chain(series) != pytest.approx(ess, rel=0.05)


def long_run_score(estimator: Callable[[FloatArray], FloatArray], coefficient: float) -> float:
    rng = default_rng(3)
    truth = (1.0 + coefficient) / (1.0 - coefficient)
    found = [estimator(autoregressive(rng, (4, 4000), coefficient)) for _ in range(30)]
    return float(np.mean(found) / truth)


@pytest.mark.parametrize("coefficient", [0.0, 0.8])
def test_long_run_variance_of_an_autoregression(coefficient: float) -> None:
    def right(series: FloatArray) -> FloatArray:
        return diagnostics.long_run_variance(series).variance

    assert long_run_score(right, coefficient) == pytest.approx(1.0, abs=0.06)


def test_long_run_variance_twin_is_far_off() -> None:
    assert long_run_score(broken.long_run_variance_on_one_side, 0.8) < 0.8


def mean_coverage(num_draws: int, widened: bool) -> float:
    """Of 95 % intervals for the mean of 2 chains, over 1000 replicates at once."""
    series = autoregressive(default_rng(4), (2, num_draws, 1000), 0.8)
    error = diagnostics.standard_error(series)
    if not widened:
        error = np.sqrt(diagnostics.long_run_variance(series).variance / (2 * num_draws))
    return float(np.mean(np.abs(series.mean(axis=(0, 1))) < 1.96 * error))


@pytest.mark.parametrize("num_draws", [60, 200, 1000])
def test_the_standard_error_covers_even_when_chains_are_short(num_draws: int) -> None:
    assert 0.92 < mean_coverage(num_draws, widened=True) < 0.99


def test_without_students_quantile_short_chains_are_overconfident() -> None:
    assert mean_coverage(60, widened=False) < 0.92


def test_what_never_moved_and_what_is_too_short_is_not_a_number() -> None:
    assert np.isnan(diagnostics.effective_size(np.ones((4, 100))))
    assert np.isnan(diagnostics.rhat_live(np.ones((4, 100))))
    assert np.isnan(diagnostics.effective_size(np.ones((4, 3))))
    assert diagnostics.rhat_live(np.repeat([[1.0], [2.0]], 100, axis=1)) == np.inf
    assert np.isnan(diagnostics.standard_error(np.ones((4, 100))))


def test_replicas_far_from_every_draw_are_left_behind() -> None:
    draws = np.random.default_rng(0).normal(size=(2, 500, 3))
    betas = np.array([0.0, 0.25, 0.5, 1.0])
    replicas = np.zeros((2, 4, 3))
    assert not diagnostics.left_behind(draws, replicas, betas).any()
    replicas[1, :, 2] = 13.0
    # The prior may be anywhere, and a rung of a quarter is twice as wide.
    np.testing.assert_array_equal(
        diagnostics.left_behind(draws, replicas, betas),
        [[False] * 4, [False, False, True, True]],
    )
    both = np.concatenate([draws, draws + np.array([0.0, 0.0, 13.0])])
    assert not diagnostics.left_behind(both, replicas, betas).any()
    assert not diagnostics.left_behind(draws, np.full((2, 4, 3), np.nan), betas).any()


# --- The paper's ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def independent() -> FloatArray:
    """Three chains of 50 independent draws, in 20000 replicates."""
    return default_rng(5).normal(size=(3, 50, 20_000))


def below_one(rhat: FloatArray) -> float:
    return float(np.mean(rhat < 1.0))


def test_rhat_between_is_below_one_as_often_as_it_should(independent: FloatArray) -> None:
    rhat = diagnostics.rhat_between(independent)
    # B / Var is exponential with mean 1, nearly, and R-hat is below 1 where it is.
    assert below_one(rhat) == pytest.approx(0.632, abs=0.015)
    assert np.all(rhat >= np.sqrt(49 / 50))


def test_rhat_between_as_printed_is_rejected(independent: FloatArray) -> None:
    assert below_one(broken.rhat_as_printed(independent[..., :1000])) < 0.1


def test_rhat_between_by_hand() -> None:
    draws = np.array([[0.0, 2.0], [4.0, 6.0]])  # W = 2, B = 16, Var = 1 + 8
    assert diagnostics.rhat_between(draws) == pytest.approx(np.sqrt(4.5))
    assert diagnostics.ess_between(draws) == pytest.approx(4 * 9 / 16)


def test_ess_between_of_independent_draws(independent: FloatArray) -> None:
    share = diagnostics.ess_between(independent).mean() / 150
    assert share == pytest.approx(0.8515, abs=0.01)
    assert broken.ess_between_uncapped(independent).mean() / 150 > 1.5


# --- Round trips ---------------------------------------------------------------------------------


def even_odd_trace(rng: Generator, rejection: FloatArray, shape: tuple[int, int]) -> IntArray:
    """Which replica sits where under even-odd swaps that are rejected at the given rates."""
    num_chains, num_draws = shape
    num_rungs = rejection.size + 1
    sits = np.tile(np.arange(num_rungs), (num_chains, 1))
    trace = np.empty((num_chains, num_draws, num_rungs), dtype=np.int64)
    for draw in range(num_draws):
        trace[:, draw] = sits
        lower = np.arange(draw % 2, num_rungs - 1, 2)
        swapped = rng.uniform(size=(num_chains, lower.size)) >= rejection[lower]
        hot, cold = sits[:, lower], sits[:, lower + 1]
        sits[:, lower] = np.where(swapped, cold, hot)
        sits[:, lower + 1] = np.where(swapped, hot, cold)
    return trace


def trips_one_by_one(trace: IntArray) -> IntArray:
    """By following every replica."""
    counts = np.zeros(trace.shape[0], dtype=np.int64)
    for chain, rows in enumerate(trace):
        stage: dict[int, str] = {}
        for row in rows:
            hot, target = int(row[0]), int(row[-1])
            counts[chain] += stage.get(hot) == "back"
            stage[hot] = "out"
            if stage.get(target) == "out":
                stage[target] = "back"
    return counts


REJECTION = np.array([0.2, 0.5, 0.1, 0.4])
TWIN_TRIPS = [
    broken.round_trips_between_the_wrong_ends,
    broken.round_trips_of_one_way,
    broken.round_trips_from_the_target,
]


@pytest.fixture(scope="module")
def trace() -> IntArray:
    return even_odd_trace(default_rng(6), REJECTION, (6, 4000))


def test_round_trips_are_those_of_each_replica(trace: IntArray) -> None:
    np.testing.assert_array_equal(diagnostics.round_trips(trace), trips_one_by_one(trace))
    short = trace[:, :23]
    np.testing.assert_array_equal(diagnostics.round_trips(short), trips_one_by_one(short))


@pytest.mark.parametrize("twin", TWIN_TRIPS)
def test_round_trips_twins_are_rejected(
    trace: IntArray, twin: Callable[[IntArray], IntArray]
) -> None:
    assert np.any(twin(trace) != trips_one_by_one(trace))


def test_round_trips_without_rejection_are_exact() -> None:
    # Every replica goes round in 2 K sweeps; those that set out in time make one trip each.
    num_rungs = 6
    whole = even_odd_trace(default_rng(7), np.zeros(num_rungs - 1), (2, 40 * num_rungs + 1))
    longer = even_odd_trace(default_rng(7), np.zeros(num_rungs - 1), (2, 60 * num_rungs + 1))
    gained = diagnostics.round_trips(longer) - diagnostics.round_trips(whole)
    assert np.all(gained == 20 * num_rungs * diagnostics.round_trip_rate(np.zeros(5)))


def test_round_trip_rate_is_what_happens(trace: IntArray) -> None:
    happened = diagnostics.round_trips(trace).mean() / trace.shape[1]
    assert diagnostics.round_trip_rate(REJECTION) == pytest.approx(happened, rel=0.05)
    assert broken.round_trip_rate_of_the_barrier(REJECTION) != pytest.approx(happened, rel=0.15)


def test_rates_and_barriers_by_hand() -> None:
    assert diagnostics.communication_barrier(REJECTION) == pytest.approx(1.2)
    assert diagnostics.round_trip_rate([0.5, 0.5]) == pytest.approx(1 / 6)
    assert diagnostics.round_trip_rate([0.5, 1.0]) == 0.0


def test_one_rung_makes_no_trips() -> None:
    assert diagnostics.round_trips(np.zeros((3, 10, 1), dtype=np.int64)).tolist() == [0, 0, 0]


# --- Wrong calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: diagnostics.autocovariance(np.zeros(5)), "chain, draw"),
        (lambda: diagnostics.effective_size(np.zeros((2, 0))), "not empty"),
        (lambda: diagnostics.rhat_between(np.zeros((1, 10))), "two chains"),
        (lambda: diagnostics.ess_between(np.zeros((1, 10))), "two chains"),
        (lambda: diagnostics.round_trips(np.zeros((3, 10), dtype=int)), "chain, draw, rung"),
        (lambda: diagnostics.round_trips(np.zeros((3, 10, 2))), "integers"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()
