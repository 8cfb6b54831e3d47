"""Ends where chains turn back: the neck of a funnel, and what only looks like one."""

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from temperance.estimates.diagnostics import FloatArray
from temperance.estimates.turning_back import FEWEST_DRAWS, End, ends_that_turn_back

CHAINS, DRAWS = 4, 1000


def found(positions: FloatArray, usual: FloatArray) -> list[End]:
    """Moves that start at each draw are accepted as `usual` says; a third of the others diverge."""
    rng = default_rng(0)
    rates = np.clip(rng.normal(usual, 0.1), 0.0, 1.0)
    led = np.concatenate([rates[:, :1], rates[:, :-1]], axis=1)
    return ends_that_turn_back(positions, led, (led < 0.1) & (rng.random(led.shape) < 1 / 3))


def normal(rng: Generator, d: int = 3) -> FloatArray:
    return rng.normal(size=(CHAINS, DRAWS, d))


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_neck_is_told_with_its_end(seed: int, sign: int):
    x = normal(default_rng(seed))
    x[..., 1] *= sign
    ends = found(x, 0.9 / (1 + np.exp(3.0 * (-x[..., 1] * sign - 1.2))) * np.ones(x.shape[:2]))
    # Low where the sign is positive: acceptance falls where sign * x is small.
    assert [(end.variable, end.sign) for end in ends] == [(1, -sign)]
    assert ends[0].acceptance < 0.2 < 0.6 < ends[0].usual
    assert ends[0].diverging > 5


def test_right_moves_have_no_such_end(seed: int):
    x = normal(default_rng(seed))
    for usual in (0.85 * np.ones(x.shape[:2]), 0.2 * np.ones(x.shape[:2])):
        assert found(x, usual) == []
    # Trajectories diverge at both ends of a ridge, and still half of the moves are accepted.
    assert found(x, np.where(np.abs(x[..., 0]) > 2.0, 0.5, 0.85)) == []


@pytest.mark.parametrize("share", [0.03, 0.1, 0.4])
def test_a_narrow_mode_at_an_end_is_none(seed: int, share: float):
    """Moves are refused all over it, since their step fits the wide one."""
    rng = default_rng(seed)
    x = normal(rng)
    inside = rng.random(x.shape[:2]) < share
    refused = np.where(inside, 0.08, 0.85)
    assert found(np.where(inside[..., None], -6.0 + 0.05 * x, x), refused) == []
    # Nothing lies between the two here, but acceptance is level in the narrow one.
    if share > 0.35:
        beside = np.where(inside[..., None], -1.5 - 0.3 * np.abs(x), np.maximum(x, -1.5))
        assert found(beside, refused) == []


def test_few_draws_are_not_judged():
    short = (1, FEWEST_DRAWS - 1)
    none = np.zeros(short)
    assert ends_that_turn_back(none[..., None], none, none > 0) == []
    unknown = np.full((4, 1000), np.nan)
    assert ends_that_turn_back(unknown[..., None], unknown, unknown > 0) == []
