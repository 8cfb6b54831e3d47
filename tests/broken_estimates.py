"""Broken twins of the estimates, each named after its slip; the tests must reject every one."""

import numpy as np
import numpy.typing as npt
from scipy.interpolate import PchipInterpolator

from temperance.estimates import diagnostics, evidence
from temperance.estimates.diagnostics import FloatArray
from temperance.estimates.evidence import Estimate


def stepping_stones_with_the_sign_flipped(log_densities: FloatArray) -> Estimate:
    """exp(-I) under the hotter rung."""
    hotter, _ = evidence._increments(log_densities)
    return _stones(-hotter)


def stepping_stones_at_the_wrong_rung(log_densities: FloatArray) -> Estimate:
    """exp(I) averaged at the colder rung of the step."""
    _, colder = evidence._increments(log_densities)
    return _stones(colder)


def stepping_stones_of_mean_logs(log_densities: FloatArray) -> Estimate:
    """The mean of I in place of the log of the mean of exp(I): Jensen's bound."""
    hotter, _ = evidence._increments(log_densities)
    per_step = hotter.mean(axis=(0, 1))
    error = float(diagnostics.standard_error(hotter.sum(axis=-1)))
    return Estimate(float(per_step.sum()), error, per_step)


def mbar_error_of_independent_draws(log_densities: FloatArray) -> Estimate:
    """The influence is right, but its draws are taken for independent."""
    influence = _mbar_influence(log_densities)
    error = float(influence.std(ddof=1) / np.sqrt(influence.size))
    return evidence.mbar(log_densities)._replace(error=error)


def mbar_error_of_independent_rungs(log_densities: FloatArray) -> Estimate:
    """Variances summed over rungs as if they exchanged nothing."""
    errors = diagnostics.standard_error(_mbar_influence_by_rung(log_densities))
    error = float(np.sqrt(np.sum(errors**2)))
    return evidence.mbar(log_densities)._replace(error=error)


def mbar_error_within_chains(log_densities: FloatArray) -> Estimate:
    """Chains that disagree are each compared with themselves only."""
    influence = _mbar_influence(log_densities)
    centred = influence - influence.mean(axis=1, keepdims=True)
    error = float(diagnostics.standard_error(centred))
    return evidence.mbar(log_densities)._replace(error=error)


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


def _stones(increments: FloatArray) -> Estimate:
    per_step, weights = evidence._log_mean_exp(increments)
    error = float(diagnostics.standard_error(weights.sum(axis=-1)))
    return Estimate(float(per_step.sum()), error, per_step)


def _mbar_influence_by_rung(log_densities: FloatArray) -> FloatArray:
    """(chain, draw, rung), by the book: weights, Hessian and its inverse, all dense."""
    num_chains, num_draws, num_rungs, _ = log_densities.shape
    num_times = num_chains * num_draws
    log_z = np.r_[0.0, np.cumsum(evidence.mbar(log_densities).per_step)]
    shifted = log_densities.reshape(-1, num_rungs) - log_z
    weights = np.exp(shifted - np.logaddexp.reduce(shifted, axis=1, keepdims=True))
    hessian = np.diag(weights.sum(axis=0)) - weights.T @ weights
    direction = np.linalg.solve(hessian[1:, 1:], np.eye(num_rungs - 1)[-1])
    return (num_times * weights[:, 1:] @ direction).reshape(num_chains, num_draws, num_rungs)


def _mbar_influence(log_densities: FloatArray) -> FloatArray:
    return _mbar_influence_by_rung(log_densities).sum(axis=-1)
