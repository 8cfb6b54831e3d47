"""log Z of the target, from what parallel tempering records.

Rungs 0 (hottest) .. K-1 (target) have unnormalised densities pi_j = Z_j p_j. For the draw x that
sits at rung i when a sweep ends, the record is l[i, j] = log pi_j(x), for every j: an array
`log_densities` of shape (chain, draw, rung of the sample, rung of the density). Write n for the
number of draws in all chains, and I_k = log pi_{k+1} - log pi_k for the increments.

**Stepping stones** use each increment under the hotter of its two rungs,

    log Z_{k+1} / Z_k = log mean_{x ~ p_k} exp I_k(x),

and their Z is unbiased where draws are exact. They fail first where a hot rung hardly ever
visits what the next one likes.

**Bridges** (Meng and Wong 1996) use it under both. With as many draws at each rung, the best bridge
between two of them is the f = log Z_{k+1} / Z_k at which

    mean_{p_k} s(I_k - f) = mean_{p_{k+1}} s(f - I_k),      s(t) = 1 / (1 + exp(-t)),

and both sides are monotone in f.

**MBAR** (Shirts and Chodera 2008) uses every draw at every rung. With f_j = log Z_j and n_j the
draws at rung j, the mixture weights

    W_j(x) = n_j exp(l_j(x) - f_j) / sum_i n_i exp(l_i(x) - f_i)

must add up to n_j over all draws of all rungs, with f_0 held at 0 (`estimates/mbar.py`). The start
is the geometric bridge of Meng and Wong (1996),

    log Z_{k+1} / Z_k = log mean_{p_k} exp(I_k / 2) - log mean_{p_{k+1}} exp(-I_k / 2).

**Standard errors.** Draws are correlated in time, and the rungs of one chain with each other, for
they exchange replicas. Each estimate is, to first order, a mean over time of an influence

    stepping stones:  h_t = sum_k exp I_k(x_{t,k}) / mean exp I_k,
    bridges:          h_t = sum_k (s(I_k(x_{t,k}) - f_k) - s(f_k - I_k(x_{t,k+1}))) / d_k,
                      d_k = the mean of s (1 - s) over both rungs' draws, added,
    MBAR:             h_t = n a . sum_i W(x_{t,i}),   a = H^-1 e_{K-1},   H as in mbar.py,

summed over rungs *at the same time*, which leaves one series per chain for
`diagnostics.standard_error`: its long-run variance holds both kinds of correlation, and chains
that disagree widen it. What no draw has seen, such as a mode that no replica found, no error of
this kind can know.

A density that is -inf has probability zero. NaN is read as -inf.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import root_scalar
from scipy.special import expit

from temperance.errors import ArgumentError
from temperance.estimates.diagnostics import standard_error
from temperance.estimates.mbar import Mixture, solve

FloatArray = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """log Z of the target; 1.96 of `error` on both sides are a 95 % interval.

    `per_step` are the log Z_{k+1} / Z_k. Where no draw joins two rungs `error` is infinite, and
    `value` says nothing.
    """

    value: float
    error: float
    per_step: FloatArray


def stepping_stones(log_densities: npt.ArrayLike, log_z_hottest: float = 0.0) -> Estimate:
    """Log Z by one importance step per rung, from the hotter to the colder.

    `log_densities` is (chain, draw, rung of the sample, rung of the density). `log_z_hottest`
    is 0 where the hottest rung is a normalised base or prior.
    """
    record = _record(log_densities)
    hotter, _ = _increments(record)
    per_step, weights = _log_mean_exp(hotter)
    return Estimate(float(per_step.sum()) + log_z_hottest, _error(weights.sum(axis=-1)), per_step)


def bridges(log_densities: npt.ArrayLike, log_z_hottest: float = 0.0) -> Estimate:
    """Log Z by one optimal bridge between each pair of neighbouring rungs.

    `log_densities` is (chain, draw, rung of the sample, rung of the density). `log_z_hottest`
    is 0 where the hottest rung is a normalised base or prior.
    """
    record = _record(log_densities)
    hotter, colder = _increments(record)
    per_step = np.zeros(hotter.shape[-1])
    influence = np.zeros(record.shape[:2])
    for k in range(per_step.size):
        up, down = hotter[..., k], colder[..., k]
        per_step[k] = _best_bridge(up, down)
        there, back = expit(up - per_step[k]), expit(per_step[k] - down)
        slope = np.mean(there * (1 - there)) + np.mean(back * (1 - back))
        with np.errstate(divide="ignore", invalid="ignore"):
            influence += (there - back) / slope
    return Estimate(float(per_step.sum()) + log_z_hottest, _error(influence), per_step)


def _best_bridge(up: FloatArray, down: FloatArray) -> float:
    """The f at which both means of the docstring agree; 0 where no draw joins the rungs."""
    known = np.concatenate([up[np.isfinite(up)], down[np.isfinite(down)]])
    if known.size == 0:
        return 0.0

    def excess(f: float) -> float:
        return float(np.mean(expit(up - f)) - np.mean(expit(f - down)))

    low, high = known.min() - 50.0, known.max() + 50.0
    if not excess(low) > 0 > excess(high):
        return 0.0
    return root_scalar(excess, bracket=(low, high), xtol=1e-12).root


def mbar(log_densities: npt.ArrayLike, log_z_hottest: float = 0.0) -> Estimate:
    """Log Z from every draw at every rung; the most precise, and never much dearer.

    `log_densities` is (chain, draw, rung of the sample, rung of the density). `log_z_hottest`
    is 0 where the hottest rung is a normalised base or prior.
    """
    record = _record(log_densities)
    num_chains, num_draws, num_rungs, _ = record.shape
    if num_rungs == 1:
        return Estimate(log_z_hottest, 0.0, np.zeros(0))
    mixture = Mixture(record)
    log_z, solution = solve(mixture, np.r_[0.0, np.cumsum(_bridge(record))])
    influence = mixture.influence(log_z, solution.hessian).reshape(num_chains, num_draws)
    per_step = np.diff(log_z)
    return Estimate(float(per_step.sum()) + log_z_hottest, _error(influence), per_step)


def _error(influence: FloatArray) -> float:
    if not np.isfinite(influence).all():
        return np.inf
    # An influence of zero everywhere is a log ratio that does not depend on the draws.
    return float(standard_error(influence)) if np.ptp(influence) > 0.0 else 0.0


def _bridge(record: FloatArray) -> FloatArray:
    """The log Z_{k+1} / Z_k by geometric bridges; 0 where two rungs share no draw."""
    hotter, colder = _increments(record)
    with np.errstate(invalid="ignore"):
        per_step = _log_mean_exp(0.5 * hotter)[0] - _log_mean_exp(-0.5 * colder)[0]
    return np.where(np.isfinite(per_step), per_step, 0.0)


def _increments(record: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(chain, draw, step): I_k at the draws of rung k, and at those of rung k + 1.

    A draw impossible at its own rung gets weight zero on both sides.
    """
    own = np.diagonal(record, axis1=2, axis2=3)
    at_the_colder = np.diagonal(record, offset=1, axis1=2, axis2=3)
    at_the_hotter = np.diagonal(record, offset=-1, axis1=2, axis2=3)
    with np.errstate(invalid="ignore"):
        of_hotter_draws = at_the_colder - own[..., :-1]
        of_colder_draws = own[..., 1:] - at_the_hotter
    of_hotter_draws = np.where(np.isfinite(own[..., :-1]), of_hotter_draws, -np.inf)
    return of_hotter_draws, np.where(np.isfinite(own[..., 1:]), of_colder_draws, np.inf)


def _log_mean_exp(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Over chains and draws; and exp(values) relative to its mean, the influence of each draw."""
    top = values.max(axis=(0, 1))
    weights = np.exp(values - np.where(np.isfinite(top), top, 0.0))
    mean = weights.mean(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(mean) + top, weights / mean


def _record(log_densities: npt.ArrayLike) -> FloatArray:
    record = np.asarray(log_densities, dtype=np.float64)
    if record.ndim != 4 or record.shape[2] != record.shape[3] or 0 in record.shape:
        raise ArgumentError(
            "log_densities must be (chain, draw, rung of the sample, rung of the density) "
            f"and not empty, got shape {record.shape}"
        )
    if np.isfinite(record.sum()):
        return record
    if np.isposinf(record).any():
        raise ArgumentError("log_densities has +inf: no density is infinite at a draw")
    return np.where(np.isnan(record), -np.inf, record)
