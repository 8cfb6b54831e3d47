"""Broken twins of estimates of log evidence, each named after its slip; tests reject them."""

import numpy as np

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
