"""Expectations, effective sizes and log Z from weighted draws that remember each other.

Draws x_s with weights w_s (chain, draw) estimate an expectation by f^ = sum w f / sum w. To first
order its error is the mean of an *influence* series,

    h_s = (w_s / w-) (f_s - f^)            for an expectation,
    h_s = w1_s / w1- - w0_s / w0-          for log Z = log zeta + log sum w1 - log sum w0,

with w- the mean weight, whose long-run variance over the number of draws is the squared standard
error (diagnostics.py): it knows of the weights and of the chain's memory. The effective size of f
is how many independent draws of the target would do as well, Var(f) / error^2. Kish's
(sum w)^2 / sum w^2 knows of the weights alone.

Weights of an anneal are independent, so that theirs is the plain variance of the mean. Weights are
kept as logarithms and are never more than relative to their largest.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from temperance.estimates.diagnostics import standard_error
from temperance.estimates.resampling import relative

FloatArray = npt.NDArray[np.float64]


class Expectation(NamedTuple):
    """A weighted mean, its standard error, the standard deviation of f, and f's effective size."""

    value: Any
    error: Any
    sd: Any
    ess: Any


class LogRatio(NamedTuple):
    """A log ratio of constants, and its standard error."""

    value: float
    error: float


def weighted_mean(
    values: npt.ArrayLike, log_weights: npt.ArrayLike | None, *, independent: bool = False
) -> Expectation:
    """The expectation of `values`, (chain, draw, ...), under weights (chain, draw).

    `independent` says that draws do not remember each other, as anneals do not.
    """
    f = np.asarray(values, float)
    weights = relative(log_weights, f.shape[:2])
    w = weights.reshape(*weights.shape, *(1,) * (f.ndim - 2))
    mean = np.mean(w * f, axis=(0, 1))
    variance = np.mean(w * (f - mean) ** 2, axis=(0, 1))
    influence = w * (f - mean)
    error = _error(influence, independent=independent)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.where(error > 0, variance / error**2, np.nan)
    return Expectation(mean, error, np.sqrt(variance), ess)


def log_ratio(
    log_target: npt.ArrayLike, log_base: npt.ArrayLike, log_zeta: float = 0.0
) -> LogRatio:
    """Log Z from draws with weights for the target and for the base, (chain, draw)."""
    one, zero = np.asarray(log_target, float), np.asarray(log_base, float)
    value = log_zeta + log_sum(one) - log_sum(zero)
    influence = relative(one, one.shape) - relative(zero, zero.shape)
    return LogRatio(value, float(_error(influence)))


def log_mean_weight(log_weights: npt.ArrayLike) -> LogRatio:
    """The log of the mean of independent weights: log Z of an anneal."""
    logs = np.asarray(log_weights, float)
    value = log_sum(logs) - float(np.log(logs.size))
    if not np.isfinite(value):
        return LogRatio(value, np.inf)
    return LogRatio(value, float(_error(relative(logs, logs.shape) - 1.0, independent=True)))


def kish(log_weights: npt.ArrayLike) -> float:
    """The effective size (sum w)^2 / sum w^2 of independent draws; zero where none has weight."""
    logs = np.ravel(np.asarray(log_weights, float))
    if not np.any(logs > -np.inf):
        return 0.0
    return float(np.exp(2 * log_sum(logs) - log_sum(2 * logs)))


def log_sum(log_weights: npt.ArrayLike) -> float:
    """The log of a sum of weights."""
    return float(np.logaddexp.reduce(np.ravel(np.asarray(log_weights, float))))


def _error(influence: FloatArray, *, independent: bool = False) -> Any:
    if independent:
        flat = influence.reshape(influence.shape[0] * influence.shape[1], *influence.shape[2:])
        return np.std(flat, axis=0, ddof=1) / np.sqrt(len(flat))
    still = np.ptp(influence, axis=(0, 1)) == 0
    return np.where(still, 0.0, standard_error(influence))
