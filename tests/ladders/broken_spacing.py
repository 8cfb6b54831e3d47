"""Broken twins of spacings and costs of ladders, each named after its slip."""

import numpy as np
from scipy.interpolate import PchipInterpolator

from temperance.estimates.diagnostics import FloatArray


def equalise_reading_the_barrier_at_equal_betas(
    betas: FloatArray, rejection: FloatArray, num_rungs: int | None = None
) -> FloatArray:
    """The cumulative barrier as a function of beta, not the other way round."""
    barrier = np.r_[0.0, np.cumsum(rejection)] / np.sum(rejection)
    count = betas.size if num_rungs is None else num_rungs
    place = PchipInterpolator(betas, betas[0] + (betas[-1] - betas[0]) * barrier)
    return np.asarray(place(np.linspace(betas[0], betas[-1], count)))


def transition_rungs_of_parallel_tempering(barrier: float) -> int:
    """Twice the barrier, which is for swaps: a transition needs its square."""
    return int(np.ceil(2.0 * barrier)) + 1


def stt_cost_as_printed(betas: FloatArray, exponent: float) -> float:
    """Paper 1, (16): the hottest rung's cost with an exponent alpha / M instead of alpha."""
    steps = betas.size - 1
    return float(2 * np.sum(betas**exponent) - (1 + betas[0] ** (exponent / steps)))


def pt_cost_as_printed(num_rungs: int) -> int:
    """Paper 1, (17): M, though there are M + 1 chains."""
    return num_rungs - 1


def tt_cost_as_printed(num_rungs: int) -> int:
    """Paper 1, (18): twice the rungs between the ends, and the ends not at all."""
    return 2 * (num_rungs - 2)
