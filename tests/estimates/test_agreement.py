"""Whether chains agree: silent on right chains with few draws, and not on chains that are stuck."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.random import Generator, default_rng
from scipy.signal import lfilter
from tests.estimates import broken_agreement as broken

from temperance.estimates.agreement import agreement, agreement_of_means, normal_scores
from temperance.estimates.diagnostics import BoolArray, FloatArray, effective_size
from temperance.results.chain_checks import FEWEST, RHAT, UNLIKELY

CHAINS, DRAWS = 4, 500
SHAPE = (CHAINS, DRAWS)


def autoregressive(rng: Generator, num: int, size: float) -> FloatArray:
    """Stationary chains of the effective size `size` in all."""
    tau = CHAINS * DRAWS / size
    coefficient = (tau - 1) / (tau + 1)
    fresh = rng.normal(size=(*SHAPE, num))
    fresh[:, 1:] *= np.sqrt(1 - coefficient**2)
    return np.asarray(lfilter([1.0], [1.0, -coefficient], fresh, axis=1))


def two_modes(rng: Generator, num: int, size: float) -> FloatArray:
    """Chains that choose their mode anew now and then, and move freely within it."""
    tau = CHAINS * DRAWS / size
    again = rng.random((*SHAPE, num)) < 2 / (tau + 1)
    again[:, 0] = True
    last = np.maximum.accumulate(np.where(again, np.arange(DRAWS)[:, None], 0), axis=1)
    mode = np.take_along_axis(rng.random((*SHAPE, num)) < 0.3, last, axis=1)
    return rng.normal(size=(*SHAPE, num)) + 4.0 * mode


def warned(series: FloatArray, num_variables: int) -> BoolArray:
    """Of runs (chain, draw, run * variable), whether R-hat or the effective size is warned of."""
    rhat, chance = agreement(series)
    size = effective_size(normal_scores(series))
    apart = (rhat > RHAT) & (chance < UNLIKELY / num_variables)
    found = np.reshape(apart | (size < FEWEST), (-1, num_variables))
    return np.asarray(found.any(axis=1))


@pytest.mark.parametrize("chains", [autoregressive, two_modes])
@pytest.mark.parametrize(("num_variables", "size"), [(1, 250.0), (10, 350.0)])
def test_right_runs_with_few_draws_are_not_warned_of(
    seed: int, chains: Callable[..., Any], num_variables: int, size: float
):
    series = chains(default_rng(seed), 600, size)
    assert warned(series, num_variables).mean() <= 0.02
    # The rule of before, R-hat above 1.01 or an effective size below 100 a chain.
    rhat = agreement(series).rhat.reshape(-1, num_variables).max(axis=1)
    assert (rhat > 1.01).mean() > 0.25


def test_chance_is_a_probability(seed: int):
    """Of 1000 right series about one in a hundred has a chance below 0.01."""
    for chains in (autoregressive, two_modes):
        chance = agreement(chains(default_rng(seed), 1000, 400.0)).chance
        assert (chance < 0.01).mean() < 0.03
        assert 0.2 < (chance < 0.5).mean() < 0.7


def shares(rng: Generator, num: int, of: tuple[float, ...]) -> FloatArray:
    """Chains that each move freely, between modes that hold another share of each."""
    mode = rng.random((*SHAPE, num)) < np.reshape(of, (CHAINS, 1, 1))
    return rng.normal(size=(*SHAPE, num)) + 4.0 * mode


@pytest.mark.parametrize(
    "of", [(0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0), (0.4, 0.4, 0.65, 0.65), (0.3, 0.5, 0.7, 0.5)]
)
def test_chains_with_other_shares_of_the_modes_are_told(seed: int, of: tuple[float, ...]):
    assert warned(shares(default_rng(seed), 100, of), 1).mean() > 0.95


@pytest.mark.parametrize("visits", [2, 5])
def test_chains_that_cross_rarely_are_told(seed: int, visits: int):
    series = two_modes(default_rng(seed), 100, CHAINS * visits)
    assert warned(series, 1).mean() > 0.9


def test_chains_of_other_widths_are_told(seed: int):
    series = default_rng(seed).normal(size=(*SHAPE, 50)) * np.reshape([1, 1, 1, 2], (4, 1, 1))
    assert (agreement(series).chance < 1e-3).all()
    assert (agreement_of_means(series).chance > 1e-3).mean() > 0.9


def test_rhat_is_that_of_arviz(seed: int):
    series = two_modes(default_rng(seed), 3, 50.0)
    for found, one in zip(agreement(series).rhat, np.moveaxis(series, -1, 0), strict=True):
        known = array_stats.rhat(one, chain_axis=0, draw_axis=1, method="rank")
        assert found == pytest.approx(float(known), rel=2e-3)


def test_the_broken_twins_are_rejected(seed: int):
    rng = default_rng(seed)
    slow, fast = two_modes(rng, 300, 100.0), shares(rng, 100, (0.4, 0.4, 0.65, 0.65))
    assert (agreement(slow).chance < 1e-3).mean() < 0.03
    assert (broken.chance_for_independent_draws(slow) < 1e-3).mean() > 0.5
    assert (agreement(fast).chance < 1e-3).mean() > 0.95
    assert (broken.chance_by_the_effective_size(fast) < 1e-3).mean() < 0.5


def test_what_never_moved_is_not_judged_and_what_is_stuck_is():
    still = np.ones((4, 20, 2))
    still[..., 1] = np.arange(4)[:, None]
    found = agreement(still)
    assert np.isnan(found.chance[0])
    assert found.chance[1] == 0.0
    assert np.isnan(agreement(np.ones((4, 5))).chance)
