"""log Z on conjugate problems, where it is known: the value, the laws of MBAR, the intervals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import expit
from tests.estimates import broken_evidence as broken

from temperance.errors import ArgumentError
from temperance.estimates import evidence, mbar as mixture
from temperance.estimates.diagnostics import FloatArray
from temperance.estimates.evidence import Estimate, bridges, mbar, stepping_stones

Estimator = Callable[..., Estimate]

PRECISION, CENTRE = 20.0, 2.0  # the likelihood exp(-PRECISION (x - CENTRE)^2 / 2); prior N(0, 1)
BETAS = np.linspace(0.0, 1.0, 6) ** (1.0 / 0.3)
LOG_Z = -0.5 * np.log1p(PRECISION) - 0.5 * PRECISION * CENTRE**2 / (1.0 + PRECISION)


def noise(
    rng: Generator, shape: tuple[int, int, int], autoregression: float, shared: float
) -> FloatArray:
    """Standard normal, stationary in time, with correlation `shared` between rungs."""
    fresh = np.sqrt(1.0 - shared) * rng.normal(size=shape)
    fresh += np.sqrt(shared) * rng.normal(size=(*shape[:2], 1))
    fresh[:, 1:] *= np.sqrt(1.0 - autoregression**2)
    return np.asarray(lfilter([1.0], [1.0, -autoregression], fresh, axis=1))


def conjugate_record(
    rng: Generator,
    num_chains: int = 4,
    num_draws: int = 150,
    autoregression: float = 0.0,
    shared: float = 0.0,
    betas: FloatArray = BETAS,
) -> FloatArray:
    """Draws with the exact law at every rung of the power posterior."""
    total = 1.0 + PRECISION * betas
    draws = noise(rng, (num_chains, num_draws, betas.size), autoregression, shared)
    x = PRECISION * betas * CENTRE / total + draws / np.sqrt(total)
    log_likelihood = -0.5 * PRECISION * (x - CENTRE) ** 2
    log_prior = -0.5 * x**2 - 0.5 * np.log(2.0 * np.pi)
    return log_prior[..., None] + log_likelihood[..., None] * betas


def prefix_record(rng: Generator, y: FloatArray, sizes: FloatArray, num_draws: int) -> FloatArray:
    """A normal mean with prior N(0, 1), unit noise, given the first 0, 1, 2, 4 .. rows."""
    sums, squares = np.r_[0.0, np.cumsum(y)][sizes], np.r_[0.0, np.cumsum(y**2)][sizes]
    x = (sums + np.sqrt(1.0 + sizes) * rng.normal(size=(1, num_draws, sizes.size))) / (1.0 + sizes)
    at = x[..., None]
    log_likelihood = -0.5 * (squares - 2.0 * at * sums + sizes * at**2 + sizes * np.log(2 * np.pi))
    return log_likelihood - 0.5 * at**2 - 0.5 * np.log(2.0 * np.pi)


def coverage(estimator: Estimator, seed: int, num_replicates: int = 400, **how: Any) -> float:
    rng = default_rng(seed)
    estimates = [estimator(conjugate_record(rng, **how)) for _ in range(num_replicates)]
    score = np.array([(found.value - LOG_Z) / found.error for found in estimates])
    return float(np.mean(np.abs(score) < 1.96))


# --- Laws, exact ---------------------------------------------------------------------------------


def test_mbar_solves_its_equations() -> None:
    record = conjugate_record(default_rng(0), num_draws=50)
    log_z = np.r_[0.0, np.cumsum(mbar(record).per_step)]
    rows = record.reshape(-1, BETAS.size)
    log_mixture = np.logaddexp.reduce(rows - log_z, axis=1, keepdims=True)
    again = np.logaddexp.reduce(rows - log_mixture, axis=0) - np.log(4 * 50)
    np.testing.assert_allclose(again, log_z, rtol=0, atol=1e-9)


def test_mbar_of_two_rungs_is_bennetts_ratio() -> None:
    record = conjugate_record(default_rng(1), num_draws=50, betas=np.array([0.1, 1.0]))
    increment = record[..., 1] - record[..., 0]

    def imbalance(log_ratio: float) -> float:
        forward = expit(increment[..., 0] - log_ratio).sum()
        return float(forward - expit(log_ratio - increment[..., 1]).sum())

    bennett = brentq(imbalance, -99.0, 99.0, xtol=1e-13)
    assert mbar(record).value == pytest.approx(bennett, abs=1e-9)
    assert bridges(record).value == pytest.approx(bennett, abs=1e-9)
    assert bridges(record).error == pytest.approx(mbar(record).error, rel=1e-6)


@pytest.mark.parametrize("estimator", [stepping_stones, bridges, mbar])
def test_constants_move_what_they_should(estimator: Estimator) -> None:
    rng = default_rng(2)
    record = conjugate_record(rng, num_draws=50)
    per_draw = 1e4 * rng.normal(size=(*record.shape[:3], 1))
    per_rung = 1e3 * rng.normal(size=BETAS.size)
    plain, moved = estimator(record), estimator(record + per_draw + per_rung)
    np.testing.assert_allclose(moved.per_step, plain.per_step + np.diff(per_rung), atol=1e-7)
    assert moved.error == pytest.approx(plain.error, rel=1e-6)
    assert estimator(record, 7.0).value == pytest.approx(plain.value + 7.0, abs=1e-12)


def test_the_order_of_chains_and_the_chunks_are_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    record = conjugate_record(default_rng(3), num_draws=51)
    whole = mbar(record)
    monkeypatch.setattr(mixture, "_CHUNK", 100)
    parts = mbar(record[::-1])
    np.testing.assert_allclose(parts.per_step, whole.per_step, atol=1e-9)
    assert parts.error == pytest.approx(whole.error, rel=1e-7)


def test_the_error_is_that_of_the_influence_by_the_book() -> None:
    record = conjugate_record(default_rng(4), autoregression=0.8)
    by_the_book = evidence.standard_error(broken._mbar_influence(record))
    assert mbar(record).error == pytest.approx(float(by_the_book), rel=1e-7)


def test_a_poor_start_ends_in_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    record = conjugate_record(default_rng(5), num_draws=50)
    good = mbar(record)
    monkeypatch.setattr(evidence, "_bridge", lambda _: np.array([300.0, -900.0, 50.0, 0.0, 1e3]))
    np.testing.assert_allclose(mbar(record).per_step, good.per_step, atol=1e-8)


# --- Impossible draws ----------------------------------------------------------------------------


def boxes_record(rng: Generator, num_draws: int = 400) -> FloatArray:
    """Uniform on nested intervals of width 1, 1/2, 1/4: log Z = log 1/4."""
    widths = np.array([1.0, 0.5, 0.25])
    x = widths * rng.uniform(size=(4, num_draws, 3))
    return np.where(x[..., None] < widths, 0.0, -np.inf)


@pytest.mark.parametrize("estimator", [stepping_stones, bridges, mbar])
def test_densities_may_be_zero_and_nan_is_zero(estimator: Estimator) -> None:
    record = boxes_record(default_rng(6))
    found = estimator(record)
    assert abs(found.value - np.log(0.25)) < 4.0 * found.error < 0.4
    as_nan = estimator(np.where(np.isfinite(record), record, np.nan))
    assert as_nan[:2] == found[:2]


@pytest.mark.parametrize("estimator", [stepping_stones, bridges, mbar])
def test_a_draw_from_nowhere_is_left_out(estimator: Estimator) -> None:
    record = conjugate_record(default_rng(7), num_draws=2000)
    record[0, :3, 2] = -np.inf
    found = estimator(record)
    assert abs(found.value - LOG_Z) < 4.0 * found.error < 0.4


@pytest.mark.parametrize("estimator", [stepping_stones, bridges, mbar])
def test_rungs_that_share_nothing_have_no_ratio(estimator: Estimator) -> None:
    record = np.broadcast_to(np.where(np.eye(3) > 0.0, 0.0, -np.inf), (2, 20, 3, 3))
    assert estimator(record).error == np.inf


# --- Known constants -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prefix_runs() -> dict[str, FloatArray]:
    """Errors of log p(y) for 256 rows, 60 replicates of 500 exact draws a rung."""
    rng = default_rng(9)
    sizes = np.r_[0, 2 ** np.arange(9)]
    y = rng.normal(loc=0.5, size=256)
    covariance = np.eye(256) + 1.0
    exact = -0.5 * (
        y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(2 * np.pi * covariance)[1]
    )
    estimators = {
        "stones": stepping_stones,
        "mbar": mbar,
        "flipped": broken.stepping_stones_with_the_sign_flipped,
        "wrong rung": broken.stepping_stones_at_the_wrong_rung,
        "mean logs": broken.stepping_stones_of_mean_logs,
    }
    records = [prefix_record(rng, y, sizes, 500) for _ in range(60)]
    return {
        name: np.array([estimator(record).value - exact for record in records])
        for name, estimator in estimators.items()
    }


def unbiased_score(errors: FloatArray) -> float:
    """z of the mean of Z / exact: on weights, not on their logs."""
    ratio = np.exp(np.clip(errors, -50.0, 50.0))
    return float((ratio.mean() - 1.0) / (ratio.std(ddof=1) / np.sqrt(ratio.size)))


def test_stepping_stones_are_unbiased_for_z(prefix_runs: dict[str, FloatArray]) -> None:
    assert np.std(prefix_runs["stones"]) < 0.2  # else a mean of 60 ratios would mean nothing
    assert abs(unbiased_score(prefix_runs["stones"])) < 4.0


@pytest.mark.parametrize("slip", ["flipped", "wrong rung", "mean logs"])
def test_stepping_stones_twins_are_biased(prefix_runs: dict[str, FloatArray], slip: str) -> None:
    assert abs(unbiased_score(prefix_runs[slip])) > 8.0


def test_mbar_is_right_and_the_more_precise(prefix_runs: dict[str, FloatArray]) -> None:
    errors = prefix_runs["mbar"]
    assert abs(errors.mean()) < 4.0 * errors.std(ddof=1) / np.sqrt(errors.size)
    assert 0.02 < errors.std() < 0.7 * prefix_runs["stones"].std()


# --- Intervals -----------------------------------------------------------------------------------

CASES: dict[str, dict[str, Any]] = {
    "independent": {},
    "correlated": {"autoregression": 0.8, "shared": 0.5},
    "two short chains": {
        "autoregression": 0.8,
        "shared": 0.5,
        "num_chains": 2,
        "num_draws": 100,
    },
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("estimator", [stepping_stones, bridges, mbar])
def test_intervals_cover(estimator: Estimator, case: str) -> None:
    assert 0.90 <= coverage(estimator, seed=9, **CASES[case]) <= 0.99


@pytest.mark.parametrize(
    "twin", [broken.mbar_error_of_independent_draws, broken.mbar_error_of_independent_rungs]
)
def test_intervals_of_twins_do_not_cover(twin: Estimator) -> None:
    assert coverage(twin, seed=10, num_replicates=200, autoregression=0.8, shared=0.5) < 0.90


def disagreeing_record(rng: Generator) -> FloatArray:
    """Two rungs; each chain stays in a mode of its own, where the increment differs."""
    level = np.array([-1.0, 0.0, 0.5, 2.0])[:, None, None]
    increment = level + 0.1 * rng.normal(size=(4, 200, 2))
    return np.stack([np.zeros_like(increment), increment], axis=-1)


def chain_spread(record: FloatArray) -> float:
    values = [mbar(chain[None]).value for chain in record]
    return float(np.std(values, ddof=1) / 2.0)


def test_chains_that_disagree_widen_the_error() -> None:
    record = disagreeing_record(default_rng(11))
    assert mbar(record).error > chain_spread(record)
    assert broken.mbar_error_within_chains(record).error < 0.1 * chain_spread(record)


# --- Wrong calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [stepping_stones, bridges, mbar])
@pytest.mark.parametrize(
    ("record", "message"),
    [
        (np.zeros((10, 3, 3)), "rung of the density"),
        (np.zeros((2, 10, 3, 4)), "rung of the density"),
        (np.zeros((2, 0, 3, 3)), "not empty"),
        (np.full((2, 10, 3, 3), np.inf), "inf"),
    ],
)
def test_wrong_calls_say_what_is_wrong(
    estimator: Estimator, record: FloatArray, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        estimator(record)


def test_one_rung_is_its_own_answer() -> None:
    assert mbar(np.zeros((2, 10, 1, 1)), 1.5)[:2] == (1.5, 0.0)
    assert stepping_stones(np.zeros((2, 10, 1, 1)), 1.5)[:2] == (1.5, 0.0)
