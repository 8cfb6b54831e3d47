"""Broken twins of the diagnostics, each named after its slip; the tests must reject them."""

import numpy as np
import numpy.typing as npt

from temperance.estimates import diagnostics
from temperance.estimates.diagnostics import FloatArray


def rhat_as_printed(draws: FloatArray) -> FloatArray:
    """Eq. 6 without its squares: the within-chain variance is zero, up to rounding."""
    num_draws = draws.shape[1]
    means = draws.mean(axis=1)
    between = num_draws * means.var(axis=0, ddof=1)
    within = np.mean(np.sum(draws - means[:, None], axis=1) / (num_draws - 1), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(((num_draws - 1) / num_draws * within + between / num_draws) / within)


def ess_between_uncapped(draws: FloatArray) -> FloatArray:
    """Eq. 8 without its minimum."""
    num_chains, num_draws = draws.shape[:2]
    between = num_draws * draws.mean(axis=1).var(axis=0, ddof=1)
    pooled = draws.var(axis=1, ddof=1).mean(axis=0) * (num_draws - 1) / num_draws
    return num_chains * num_draws * (pooled + between / num_draws) / between


def effective_size_of_one_long_chain(series: FloatArray) -> FloatArray:
    """All chains laid end to end, so that their disagreement looks like one slow drift."""
    return diagnostics.effective_size(series.reshape(1, -1))


def long_run_variance_on_one_side(series: FloatArray) -> FloatArray:
    """gamma(0) + sum gamma(t): the lags of one side only."""
    both = diagnostics.long_run_variance(series).variance
    return 0.5 * (both + series.var())


def round_trips_between_the_wrong_ends(replica: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """From the hottest rung to its neighbour and back."""
    return diagnostics.round_trips(replica[:, :, :2])


def round_trips_of_one_way(replica: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Every arrival at the target after the hottest rung, whether or not it comes back."""
    return diagnostics.round_trips(np.concatenate([replica, replica[:, :, ::-1]], axis=1))


def round_trips_from_the_target(replica: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Target to hottest to target: the other trip."""
    return diagnostics.round_trips(replica[:, :, ::-1])


def round_trip_rate_of_the_barrier(rejection: FloatArray) -> FloatArray:
    """The sum of r in place of that of r / (1 - r)."""
    return 1.0 / (2.0 + 2.0 * np.sum(rejection, axis=-1))
