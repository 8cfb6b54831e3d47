"""Broken twins of priors, each named after its slip."""

import math

import jax

from temperance._types import Key
from temperance.models.gaussian_process.priors import (
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Logs,
)


class LogNormalAsPrinted(LogNormal):
    """Paper 1, equation (26): the root of sigma in place of sigma."""

    def log_density(self, u: Logs) -> Logs:
        return super().log_density(u) + 0.5 * math.log(self.sigma)


class GammaWithoutJacobian(Gamma):
    """The density of theta, at u = log theta."""

    def log_density(self, u: Logs) -> Logs:
        return super().log_density(u) - u


class GammaWithAScale(Gamma):
    """The rate taken for a scale, in the sampler alone."""

    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        return super().draw(key, shape) + 2.0 * math.log(self.rate)


class HalfNormalOnBothSides(HalfNormal):
    """Normalised over negative values too."""

    def log_density(self, u: Logs) -> Logs:
        return super().log_density(u) - math.log(2.0)


class InverseGammaOfTheRate(InverseGamma):
    """Drawn as one over a gamma whose rate was turned over as well."""

    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        return super().draw(key, shape) - 2.0 * math.log(self.inverse.rate)


class LogNormalByVariance(LogNormal):
    """Drawn with sigma squared as the standard deviation."""

    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        return self.mu + self.sigma**2 * jax.random.normal(key, shape)
