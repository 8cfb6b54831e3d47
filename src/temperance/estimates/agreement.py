"""Whether chains agree: how often chance alone would set them as far apart as they are.

Split R-hat says how far chains are apart, and not whether that is far. Where all M half chains of
n draws follow one law, the M means vary by v / n each, with v the long-run variance, and

    R-hat^2 - 1   is about   v / (n sigma^2) chi^2_{M-1} / (M - 1):

for 4 chains R-hat is 1.01 on average, and not at worst, at an effective size of 400. So the means
are compared with what the draws *within* half chains say of v:

    F = n Var(means) / v,    v = (gamma(0) + 2 sum_{t <= L} gamma(t)) / (1 - (2 L + 1) / n),

where L is where Geyer's sequence ends and the divisor makes good what subtracting each half chain's
own mean takes from every gamma(t). F is held against an F distribution with M - 1 and
M n / (2 L + 1) degrees of freedom. Chains that are stuck in different places have a small v and
means that are far apart. Values are replaced by normal scores of their ranks, once as they are and
once by their distance from the median, as for R-hat (Vehtari et al. 2021), so that chains of
different widths are seen too.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc, ndtri

from temperance.estimates.diagnostics import (
    FEWEST_DRAWS,
    FloatArray,
    halves,
    initial_monotone,
    power_spectrum,
    spread_of,
)

# The most that subtracting means is said to have taken from v.
MOST_TAKEN = 0.9
# Variables whose spectra are held in memory together.
AT_ONCE = 64


class Agreement(NamedTuple):
    """Split R-hat, and the probability that chains of one law are that far apart."""

    rhat: FloatArray
    chance: FloatArray


def agreement(series: npt.ArrayLike) -> Agreement:
    """Of (chain, draw, ...), of ranks and of ranked distances from the median: the worse of both.

    The chance is that of either of the two. NaN where nothing ever moved, or with fewer than four
    draws a chain.
    """
    values = np.asarray(series, float)
    flat = values.reshape(*values.shape[:2], -1)
    found = [_of_ranks(flat[..., i : i + AT_ONCE]) for i in range(0, flat.shape[-1], AT_ONCE)]
    rhat, chance = (
        np.concatenate(parts).reshape(values.shape[2:]) for parts in zip(*found, strict=True)
    )
    return Agreement(rhat, chance)


def _of_ranks(values: FloatArray) -> Agreement:
    median = np.median(values, axis=(0, 1))
    both = [agreement_of_means(normal_scores(v)) for v in (values, np.abs(values - median))]
    chance = np.fmin(both[0].chance, both[1].chance)
    return Agreement(np.fmax(both[0].rhat, both[1].rhat), np.minimum(2.0 * chance, 1.0))


def agreement_of_means(series: npt.ArrayLike) -> Agreement:
    """Of the values of (chain, draw, ...) as they are."""
    parts = halves(np.asarray(series, float))
    num, length = parts.shape[:2]
    if length < FEWEST_DRAWS:
        nothing = np.full(parts.shape[2:], np.nan)
        return Agreement(nothing, nothing)
    spread = spread_of(parts)
    power, size = power_spectrum(parts)
    covariance = np.fft.irfft(power.mean(axis=0), size, axis=0)[:length] / length
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = np.sqrt(spread.pooled / spread.within)
        rho = covariance / covariance[:1]
        rho[0] = 1.0
        tau, num_lags = initial_monotone(rho)
        # Antithetic chains may sum to almost nothing by noise alone; ArviZ has the same floor.
        tau = np.maximum(tau, 1.0 / np.log10(num * length))
        lags = 2.0 * num_lags + 1.0
        variance = covariance[0] * tau / (1.0 - np.minimum(lags / length, MOST_TAKEN))
        ratio = np.asarray(spread.between / variance)
        stuck = (spread.within == 0.0) & (spread.between > 0.0)
        dof = np.maximum(num * length / lags, 1.0)
        chance = np.where(stuck, 0.0, fdtrc(num - 1.0, dof, np.where(stuck, 1.0, ratio)))
    return Agreement(np.asarray(rhat), np.where(np.isnan(ratio), np.nan, chance))


def normal_scores(values: FloatArray) -> FloatArray:
    """Of the ranks among all chains; equal values share the mean of their ranks."""
    flat = values.reshape(values.shape[0] * values.shape[1], -1)
    ranks = np.stack([_mean_ranks(column) for column in flat.T], axis=1)
    return ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(values.shape)


def _mean_ranks(values: FloatArray) -> FloatArray:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts - 1.0))[which.ravel()]
