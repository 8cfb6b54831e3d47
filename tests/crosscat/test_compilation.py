"""Compiled functions: what compiled callers run, and what the interpreter runs."""

import math
from typing import Any

import numba
import numpy as np
import pytest

from temperance.crosscat.compilation import compiled, inner, reordered
from temperance.crosscat.views import row_gibbs


@inner
def halved(x: float) -> float:
    """Half of it."""
    return x / 2.0


@inner
def inverse(x: float) -> float:
    return 1.0 / x


@reordered
def total(values: np.ndarray) -> float:
    found = 0.0
    for value in values:
        found += value
    return found


@compiled
def all_of_them(values: np.ndarray) -> tuple[float, float, float]:
    return halved(values[0]), inverse(values[1]), total(values)


def test_compiled_functions_call_inner_ones():
    found = all_of_them(np.array([3.0, 0.0, 5.0]))
    assert found == (1.5, math.inf, 8.0)
    # A caller that is kept on disk is read as a whole, so this one is not kept.
    caller = numba.njit(lambda x: halved(x))
    assert caller(3.0) == 1.5
    made: Any = halved
    assert made.signatures  # it was compiled for its caller


def test_the_interpreter_runs_what_was_written():
    assert halved(3.0) == 1.5
    assert halved.__doc__ == "Half of it."
    # Division by zero is Python's.
    with pytest.raises(ZeroDivisionError):
        inverse(0.0)


def test_inner_functions_of_the_sampler_are_the_same_either_way(seed: int):
    weights = np.array([0.0, 3.0, 1.0, 2.0])
    drawn = [
        draw(weights, 4, 6.0, 1, np.random.default_rng([seed, i]))
        for draw in (row_gibbs.draw_place, _draw_compiled)
        for i in range(50)
    ]
    assert drawn[:50] == drawn[50:]


@compiled
def _draw_compiled(
    weights: np.ndarray, used: int, total: float, first: int, rng: np.random.Generator
) -> int:
    return row_gibbs.draw_place(weights, used, total, first, rng)
