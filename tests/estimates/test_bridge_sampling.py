"""Log Z by a bridge from independent draws to a run's: right on average, with honest errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter
from scipy.special import logsumexp
from tests.estimates import broken_bridge as broken

from temperance.estimates.bridge_sampling import bridge_sampling
from temperance.estimates.tails import ratio_shape
from temperance.estimates.weighted import LogRatio

LOG_Z, WIDTH = 3.0, 1.6
Bridge = Callable[[Any, Any], LogRatio]


def log_ratio(x: np.ndarray) -> np.ndarray:
    """Of a normal density with mean 1 and Z = e^3 to one that is wider."""
    return LOG_Z + stats.norm(1.0, 1.0).logpdf(x) - stats.norm(0.0, WIDTH).logpdf(x)


def samples(
    rng: np.random.Generator, memory: float, num: int = 500, chains: int = 4, draws: int = 250
) -> tuple[np.ndarray, np.ndarray]:
    """Log ratios at draws of the base and at draws, (chain, draw), of autoregressive chains."""
    noise = rng.standard_normal((chains, draws))
    noise[:, 1:] *= np.sqrt(1 - memory**2)
    run = 1.0 + lfilter([1.0], [1.0, -memory], noise, axis=1)
    return log_ratio(WIDTH * rng.standard_normal(num)), log_ratio(run)


def scores(bridge: Bridge, seed: int, memory: float, num_replicates: int = 300) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = [bridge(*samples(rng, memory)) for _ in range(num_replicates)]
    return np.array([(one.value - LOG_Z) / one.error for one in found])


def honest(z: np.ndarray) -> bool:
    """Whether scores have mean 0 and, by and large, standard deviation 1."""
    unbiased = abs(z.mean()) < 4.5 * max(z.std(), 1.0) / np.sqrt(len(z))
    return bool(unbiased and 0.75 < z.std() < 1.25)


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_scores_are_standard(memory: float, seed: int) -> None:
    assert honest(scores(bridge_sampling, seed, memory))


def test_slips_are_seen(seed: int) -> None:
    assert not honest(scores(broken.without_offset, seed, 0.0, 100))
    assert not honest(scores(broken.error_of_independent_draws, seed, 0.8))
    # It is right where draws are.
    assert honest(scores(broken.error_of_independent_draws, seed, 0.0))


def test_a_run_with_memory_counts_for_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fresh, slow = (bridge_sampling(*samples(rng, memory)).error for memory in (0.0, 0.95))
    assert 1.15 * fresh < slow < 20 * fresh


def test_the_two_densities_may_be_one() -> None:
    found = bridge_sampling(np.full(100, 2.5), np.full((2, 50), 2.5))
    assert found.value == pytest.approx(2.5)
    assert found.error == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("constant", [-1e4, 0.0, 1e4])
def test_a_constant_is_added(constant: float, seed: int) -> None:
    base, run = samples(np.random.default_rng(seed), 0.5)
    plain, moved = bridge_sampling(base, run), bridge_sampling(base + constant, run + constant)
    assert moved.value - constant == pytest.approx(plain.value, abs=1e-6)
    assert moved.error == pytest.approx(plain.error, rel=1e-4)


def test_the_base_may_miss_the_support(seed: int) -> None:
    """A third of a uniform base lies where the target is zero."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 3.0, 3000)
    base = np.where(x < 2.0, np.log(3.0 / 2.0) + LOG_Z, -np.inf)
    found = bridge_sampling(base, np.full((2, 200), np.log(3.0 / 2.0) + LOG_Z))
    assert abs(found.value - LOG_Z) < 4.5 * found.error < 0.2


def test_what_shares_nothing_has_no_estimate() -> None:
    found = bridge_sampling(np.full(50, -np.inf), np.zeros((2, 50)))
    assert not np.isfinite(found.value) or found.error == np.inf


# -- the tail of ratios ----------------------------------------------------------------------------


def shape_of(power: float, seed: int, num: int = 4000) -> float:
    """Of ratios with a Pareto law's tail."""
    rng = np.random.default_rng(seed)
    return ratio_shape(power * rng.exponential(size=num) - 1e4)


@pytest.mark.parametrize(("power", "low", "high"), [(0.2, 0.0, 0.45), (0.9, 0.7, 1.2)])
def test_the_shape_of_known_tails(power: float, low: float, high: float, seed: int) -> None:
    found = [shape_of(power, seed + i) for i in range(20)]
    assert low < np.mean(found) < high


def test_ratios_of_a_base_that_covers_and_of_one_that_does_not(seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal(4000)
    wide, narrow = stats.norm(0, 1), stats.norm(0, 2.5)
    assert ratio_shape(stats.norm(0, 0.8).logpdf(x) - wide.logpdf(x)) < 0.5
    assert ratio_shape(narrow.logpdf(x) - wide.logpdf(x)) > 0.7


def test_infinite_logs_are_left_out_and_few_have_no_shape() -> None:
    logs = np.random.default_rng(0).normal(size=500)
    assert ratio_shape(np.r_[logs, [-np.inf] * 9]) == ratio_shape(logs)
    assert np.isnan(ratio_shape(logs[:20]))
    assert np.isnan(ratio_shape(np.full(50, -np.inf)))


def test_the_estimate_is_that_of_importance_where_only_the_base_tells(seed: int) -> None:
    """With many draws of the base and hardly any of the run, the bridge is their mean ratio."""
    base, run = samples(np.random.default_rng(seed), 0.0, 200_000, 2, 10)
    mean = float(logsumexp(base) - np.log(len(base)))
    assert bridge_sampling(base, run).value == pytest.approx(mean, abs=0.01)
