"""A base fitted to a target, with a guess of its log Z: what continuous tempering starts from.

A local variational fit i has a mean m_i, a covariance S_i and a bound l_i <= log Z. Several, each
on a mode of its own, combine into one base (paper 4, equation 25):

    log zeta = log sum_i exp l_i,      w = softmax(l),
    mean = sum_i w_i m_i,              covariance = sum_i w_i (S_i + m_i m_i') - mean mean'.

The mixture itself has as many modes as the target, so its moments are kept and the mixture is not.
Two fits of one mode count its mass twice and add up to log 2 to log zeta, so that copies are
dropped first. Fits i and j are of one mode where

    (m_i - m_j)' [(S_i + S_j) / 2]^{-1} (m_i - m_j) < 2^2 :

an even mixture of two normal densities of one covariance has one mode up to this distance, and two
beyond it. Fits a little farther apart still overlap, and log zeta may then exceed log Z.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temperance.errors import ArgumentError
from temperance.problems.gaussian import Gaussian

# Two fits are of one mode where their means are nearer than this many standard deviations.
SAME = 2.0


@dataclass(frozen=True, eq=False)
class LocalFit:
    """One variational fit: N(mean, covariance), its bound on log Z and the bound's standard error.

    `covariance` is a vector of variances or a matrix.
    """

    mean: np.ndarray
    covariance: np.ndarray
    bound: float
    error: float = 0.0


@dataclass(frozen=True, eq=False)
class Fit:
    """A normalised `base`, a guess `log_zeta` of log Z, and the local fits it is made of."""

    base: Gaussian
    log_zeta: float
    local: tuple[LocalFit, ...] = ()


def match_moments(fits: Sequence[LocalFit], *, same: float = SAME) -> Fit:
    """The Gaussian with the moments of the fits' mixture, and the mixture's mass.

    A fit whose mean lies within `same` standard deviations of a better one is a copy of it, and
    dropped. One diagonal fit stays diagonal; several are far apart in a direction that is hardly
    ever an axis, and make a dense base.
    """
    kept = distinct(fits, same=same)
    bounds = np.array([fit.bound for fit in kept])
    log_zeta = float(np.logaddexp.reduce(bounds))
    if len(kept) == 1:
        return Fit(Gaussian(kept[0].mean, kept[0].covariance), log_zeta, tuple(kept))
    shares = np.exp(bounds - log_zeta)
    means = np.stack([fit.mean for fit in kept])
    mean = shares @ means
    away = means - mean
    covariance = (away.T * shares) @ away
    for share, fit in zip(shares, kept, strict=True):
        covariance += share * _matrix(fit.covariance)
    return Fit(Gaussian(mean, covariance), log_zeta, tuple(kept))


def distinct(fits: Sequence[LocalFit], *, same: float = SAME) -> list[LocalFit]:
    """The fits without copies, best bound first; those without a finite bound are left out."""
    if not fits:
        raise ArgumentError("fits: wanted at least one local fit, got none")
    if not same >= 0:
        raise ArgumentError(f"same: wanted a distance in standard deviations, got {same!r}")
    sizes = {(fit.mean.shape, fit.covariance.shape[-1]) for fit in fits}
    if len(sizes) > 1 or any(fit.mean.ndim != 1 for fit in fits):
        raise ArgumentError(
            f"fits: wanted means of one length, got shapes {[fit.mean.shape for fit in fits]}"
        )
    finite = [fit for fit in fits if np.isfinite(fit.bound) and np.isfinite(fit.mean).all()]
    if not finite:
        raise ArgumentError("fits: none of them has a finite bound; start elsewhere")
    kept: list[LocalFit] = []
    for fit in sorted(finite, key=lambda fit: -fit.bound):
        if all(_distance(fit, other) >= same for other in kept):
            kept.append(fit)
    return kept


def _matrix(covariance: np.ndarray) -> np.ndarray:
    return np.diag(covariance) if covariance.ndim == 1 else covariance


def _distance(one: LocalFit, two: LocalFit) -> float:
    """Between the means, in standard deviations of the mean of both covariances."""
    away = one.mean - two.mean
    if one.covariance.ndim == two.covariance.ndim == 1:
        return float(np.sqrt(np.sum(2 * away**2 / (one.covariance + two.covariance))))
    both = 0.5 * (_matrix(one.covariance) + _matrix(two.covariance))
    return float(np.sqrt(away @ np.linalg.solve(both, away)))
