"""The shape of a tail: known laws, and a mode far away, which is no tail."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.random import default_rng
from scipy import stats

from temperance.estimates.tails import pareto_shape, tail_shape
from temperance.results.chain_checks import NO_VARIANCE

LAWS = {
    "normal": (stats.norm(), -0.3, 0.3),
    "exponential": (stats.expon(), -0.3, 0.35),
    "student 4": (stats.t(4), -0.1, 0.5),
    "student 1": (stats.t(1), 0.5, 1.5),
    "student 0.5": (stats.t(0.5), 1.1, 3.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_tails_of_known_laws(seed: int, name: str):
    law, low, high = LAWS[name]
    shapes = [tail_shape(law.rvs(4000, random_state=default_rng(seed + i))) for i in range(20)]
    assert low < np.min(shapes) <= np.max(shapes) < high
    # A constant is added and a factor applied without a change.
    draws = law.rvs(4000, random_state=default_rng(seed))
    assert tail_shape(7.0 - 3.0 * draws) == pytest.approx(tail_shape(draws), abs=1e-6)


def test_the_fit_is_that_of_arviz(seed: int):
    draws = stats.genpareto(0.7).rvs(300, random_state=default_rng(seed))
    theirs, _ = array_stats._gpdfit(np.sort(draws))
    assert pareto_shape(np.sort(draws)) == pytest.approx(theirs, rel=1e-6)


def test_a_mode_far_away_is_no_tail(seed: int):
    rng = default_rng(seed)
    for share in (0.01, 0.03, 0.1):
        draws = rng.normal(size=4000) + 60.0 * (rng.random(4000) < share)
        assert not tail_shape(draws) > NO_VARIANCE


def test_what_has_no_tail_is_not_judged():
    assert np.isnan(tail_shape(np.arange(100.0)))
    assert np.isnan(tail_shape(np.ones(1000)))
    assert np.isnan(tail_shape(np.r_[np.inf, np.arange(1000.0)]))
