"""Bases with one slip each; the tests reject them all."""

from dataclasses import replace

import numpy as np

from temperance.bases.bootstrap import next_base
from temperance.bases.fit import Fit, distinct, match_moments
from temperance.problems.gaussian import Gaussian


def with_copies(fits):
    """Two fits of one mode are counted twice."""
    return match_moments(fits, same=0.0)


def within_modes_only(fits):
    """The covariance of the mixture without the distance between its modes."""
    fit = match_moments(fits)
    shares = np.exp([f.bound - fit.log_zeta for f in fit.local])
    matrices = [np.diag(f.covariance) if f.covariance.ndim == 1 else f.covariance
                for f in fit.local]  # fmt: skip
    covariance = sum(share * matrix for share, matrix in zip(shares, matrices, strict=True))
    return replace(fit, base=Gaussian(fit.base.mean, covariance))


def moments_of_the_best(fits):
    """One mode's base with the mass of all."""
    best = distinct(fits)[0]
    return Fit(Gaussian(best.mean, best.covariance), match_moments(fits).log_zeta)


def as_printed(base, log_zeta, positions, log_weights, log_z):
    """Weighted moments and nothing else: narrow, or singular, with few effective draws."""
    weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    mean = weights @ positions
    away = positions - mean
    return Gaussian(mean, (away.T * weights) @ away), log_z


def unweighted(base, log_zeta, positions, log_weights, log_z):
    """The moments of the joint law, in place of those of the target."""
    return next_base(base, log_zeta, positions, np.zeros(len(positions)), log_z)


def still_zeta(base, log_zeta, positions, log_weights, log_z):
    """The base learns and log zeta does not."""
    return next_base(base, log_zeta, positions, log_weights, log_z)[0], log_zeta


def unscaled_draws(num_samples, dimension, seed):
    """Pairs whose covariance is not that of their law."""
    half = np.random.default_rng(seed).standard_normal((num_samples // 2, dimension))
    return np.concatenate([half, -half])


def unpaired_draws(num_samples, dimension, seed):
    """Draws whose mean is not zero."""
    return np.random.default_rng(seed).standard_normal((num_samples, dimension))
