"""A base fitted to a target, with a guess of its log Z: what continuous tempering starts from.

A local variational fit i has a mean m_i, a covariance S_i and a bound l_i <= log Z. Several of
them, each on a mode of its own, combine into one base (paper 4, equation 25):

    log zeta = log sum_i exp l_i,      w = softmax(l),
    mean = sum_i w_i m_i,              covariance = sum_i w_i (S_i + m_i m_i') - mean mean'.

The mixture itself has as many modes as the target, so its moments are kept and the mixture is not.
Two fits of one mode count its mass twice and add up to log 2 to log zeta, so that equal fits are
dropped first. Where fits overlap, log zeta may exceed log Z.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from temperance.errors import ArgumentError
from temperance.gaussian import Gaussian

# Two fits are one where their means differ by less than this many standard deviations.
SAME = 0.1


@dataclass(frozen=True)
class LocalFit:
    """One variational fit: N(mean, covariance), and its bound on log Z."""

    mean: np.ndarray
    covariance: np.ndarray
    bound: float


@dataclass(frozen=True, eq=False)
class Fit:
    """A normalised `base`, a guess `log_zeta` of log Z, and the local fits it is made of."""

    base: Gaussian
    log_zeta: float
    local: tuple[LocalFit, ...] = ()


def match_moments(fits: Sequence[LocalFit], *, same: float = SAME) -> Fit:
    """The Gaussian with the moments of the fits' mixture, and the mixture's mass.

    A fit whose mean lies within `same` standard deviations (root mean square over coordinates) of
    a better one is a copy of it, and dropped.
    """
    if not fits:
        raise ArgumentError("fits: wanted at least one local fit, got none")
    kept = distinct(fits, same=same)
    bounds = np.array([fit.bound for fit in kept])
    log_zeta = float(np.logaddexp.reduce(bounds))
    shares = np.exp(bounds - log_zeta)
    means = np.stack([fit.mean for fit in kept])
    mean = shares @ means
    matrices = np.stack(
        [np.diag(f.covariance) if f.covariance.ndim == 1 else f.covariance for f in kept]
    )
    away = means - mean
    covariance = np.einsum("i,ijk->jk", shares, matrices) + (away.T * shares) @ away
    if len(kept) == 1 and kept[0].covariance.ndim == 1:
        covariance = kept[0].covariance
    return Fit(Gaussian(mean, covariance), log_zeta, tuple(kept))


def distinct(fits: Sequence[LocalFit], *, same: float = SAME) -> list[LocalFit]:
    """The fits without copies, best bound first; those without a finite bound are left out."""
    finite = [f for f in fits if np.isfinite(f.bound) and np.isfinite(f.mean).all()]
    if not finite:
        raise ArgumentError("fits: none of them has a finite bound; start elsewhere")
    kept: list[LocalFit] = []
    for fit in sorted(finite, key=lambda f: -f.bound):
        if all(_distance(fit, other) >= same for other in kept):
            kept.append(fit)
    return kept


def _distance(one: LocalFit, two: LocalFit) -> float:
    """Of the means, in the second's standard deviations, root mean square."""
    variance = two.covariance if two.covariance.ndim == 1 else np.diagonal(two.covariance)
    return float(np.sqrt(np.mean((one.mean - two.mean) ** 2 / variance)))
