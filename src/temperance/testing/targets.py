"""Targets whose every rung can be drawn exactly and whose constants are known.

Tempering by powers stays inside an exponential family, so its rungs can be drawn at any beta:

    ConjugateNormal   power posterior of a normal mean: N(0, s0^2 I) prod_i N(y_i; x, s^2 I)^beta
    GaussianBridge    N(m0, v0)^(1-beta) N(m1, v1)^beta, coordinate by coordinate
    CurvedGamma       u = log of a gamma variable, v ~ N(c u^2, 1/lambda): skewed and bent

`two_modes` is the bimodal target of the end-to-end tests, with its weights and constant known.
"""

import abc
from math import lgamma, log, pi

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Data, Key, Numbers, Scalar
from temperance.problems.gaussian import Gaussian
from temperance.ladders.geometric import GeometricLadder
from temperance.problems.problem import Problem, Target

Beta = Float[Array, ""] | float


class AbstractKnown(eqx.Module):
    """A geometric ladder that can be drawn, and whose constants are known, at every beta."""

    @abc.abstractmethod
    def hot(self, x: Float[Array, " d"]) -> Scalar:
        """The normalised log density at beta = 0."""

    @abc.abstractmethod
    def cold(self, x: Float[Array, " d"]) -> Scalar:
        """The log likelihood, or the log target of a bridge."""

    @abc.abstractmethod
    def draw(self, key: Key, beta: Beta) -> Float[Array, " d"]:
        """One exact draw at `beta`."""

    @abc.abstractmethod
    def log_normaliser(self, beta: Beta) -> Scalar:
        """Log of the integral of the unnormalised density at `beta`."""

    @property
    @abc.abstractmethod
    def bridge(self) -> bool: ...

    def ladder(self, betas: Numbers, *, exact: bool = False) -> GeometricLadder:
        """The ladder at `betas`; `exact` lends it the sampler of beta = 0."""
        return GeometricLadder(
            _Hot(self),
            _Cold(self),
            betas,
            bridge=self.bridge,
            draw_hot=_Draw(self) if exact else None,
        )

    def draw_rungs(self, key: Key, betas: Float[Array, " rungs"]) -> Float[Array, "rungs d"]:
        """One independent exact draw a rung: the joint law of parallel tempering."""
        return jax.vmap(self.draw)(jax.random.split(key, betas.shape[0]), betas)


class _Hot(eqx.Module):
    known: AbstractKnown

    def __call__(self, x: Float[Array, " d"]) -> Scalar:
        return self.known.hot(x)


class _Cold(eqx.Module):
    known: AbstractKnown

    def __call__(self, x: Float[Array, " d"]) -> Scalar:
        return self.known.cold(x)


class _Draw(eqx.Module):
    known: AbstractKnown

    def __call__(self, key: Key) -> Float[Array, " d"]:
        return self.known.draw(key, 0.0)


class ConjugateNormal(AbstractKnown):
    """A normal mean x ~ N(0, prior_sd^2 I) with rows y_i ~ N(x, noise_sd^2 I), to a power beta."""

    data: Float[Array, "n d"]
    prior_sd: float = eqx.field(static=True, default=1.0)
    noise_sd: float = eqx.field(static=True, default=1.0)

    @property
    def bridge(self) -> bool:
        return False

    def hot(self, x: Float[Array, " d"]) -> Scalar:
        return jnp.sum(_log_normal(x, self.prior_sd**2))

    def cold(self, x: Float[Array, " d"]) -> Scalar:
        return jnp.sum(self.terms(x, self.data))

    def terms(self, x: Float[Array, " d"], data: Data) -> Float[Array, " n"]:
        """Log p(y_i | x), one a row."""
        return jnp.sum(_log_normal(data - x[None], self.noise_sd**2), axis=1)

    def problem(self) -> Problem:
        """The same as a user would bring it."""
        return Problem(self.hot, self.terms, self.data, lambda key: self.draw(key, 0.0))

    def draw(self, key: Key, beta: Beta) -> Float[Array, " d"]:
        precision = self._precision(beta)
        mean = beta * jnp.sum(self.data, axis=0) / self.noise_sd**2 / precision
        return mean + jax.random.normal(key, mean.shape, mean.dtype) / jnp.sqrt(precision)

    def log_normaliser(self, beta: Beta) -> Scalar:
        n, d = self.data.shape
        total = jnp.sum(self.data, axis=0) / self.noise_sd**2
        precision = self._precision(beta)
        return (
            -0.5 * d * jnp.log(precision * self.prior_sd**2)
            - 0.5 * beta * n * d * log(2 * pi * self.noise_sd**2)
            - 0.5 * beta * jnp.sum(self.data**2) / self.noise_sd**2
            + 0.5 * beta**2 * jnp.sum(total**2) / precision
        )

    def _precision(self, beta: Beta) -> Scalar:
        return jnp.asarray(1 / self.prior_sd**2 + beta * self.data.shape[0] / self.noise_sd**2)


class GaussianBridge(AbstractKnown):
    """From N(base_mean, base_var) to exp(log_z) N(mean, var), coordinate by coordinate."""

    base_mean: Float[Array, " d"]
    base_var: Float[Array, " d"]
    mean: Float[Array, " d"]
    var: Float[Array, " d"]
    log_z: float = eqx.field(static=True, default=0.0)

    @property
    def bridge(self) -> bool:
        return True

    def hot(self, x: Float[Array, " d"]) -> Scalar:
        return jnp.sum(_log_normal(x - self.base_mean, self.base_var))

    def cold(self, x: Float[Array, " d"]) -> Scalar:
        return jnp.sum(_log_normal(x - self.mean, self.var)) + self.log_z

    def draw(self, key: Key, beta: Beta) -> Float[Array, " d"]:
        precision, slope = self._natural(beta)
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return slope / precision + noise / jnp.sqrt(precision)

    def log_normaliser(self, beta: Beta) -> Scalar:
        precision, slope = self._natural(beta)
        hot, cold = 1 - beta, beta
        constant = hot * self.base_mean**2 / self.base_var + cold * self.mean**2 / self.var
        logs = jnp.log(precision) + hot * jnp.log(self.base_var) + cold * jnp.log(self.var)
        return 0.5 * jnp.sum(slope**2 / precision - constant - logs) + beta * self.log_z

    def _natural(self, beta: Beta) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        hot, cold = (1 - beta) / self.base_var, beta / self.var
        return hot + cold, hot * self.base_mean + cold * self.mean


class CurvedGamma(AbstractKnown):
    """(u, v) with e^u ~ Gamma(shape, rate) and v ~ N(curvature u^2, 1/precision).

    Rate and precision change along the bridge, linearly in beta, so that every rung is of the
    same kind; no rung is Gaussian, symmetric or a rescaling of another.
    """

    rates: tuple[float, float] = eqx.field(static=True, default=(1.0, 4.0))
    precisions: tuple[float, float] = eqx.field(static=True, default=(0.5, 3.0))
    shape: int = eqx.field(static=True, default=2)
    curvature: float = eqx.field(static=True, default=0.5)

    @property
    def bridge(self) -> bool:
        return True

    def hot(self, x: Float[Array, " d"]) -> Scalar:
        return self._log_density(x, 0)

    def cold(self, x: Float[Array, " d"]) -> Scalar:
        return self._log_density(x, 1)

    def draw(self, key: Key, beta: Beta) -> Float[Array, " d"]:
        key_u, key_v = jax.random.split(key)
        dtype = jnp.result_type(float)
        # A gamma variable of whole shape is a sum of exponentials.
        gamma = jnp.sum(jax.random.exponential(key_u, (self.shape,), dtype))
        u = jnp.log(gamma / _mix(self.rates, beta))
        noise = jax.random.normal(key_v, (), dtype) / jnp.sqrt(_mix(self.precisions, beta))
        return jnp.stack([u, self.curvature * u**2 + noise])

    def log_normaliser(self, beta: Beta) -> Scalar:
        constants = (self._constant(0), self._constant(1))
        rate, precision = _mix(self.rates, beta), _mix(self.precisions, beta)
        own = self.shape * jnp.log(rate) - lgamma(self.shape) + 0.5 * jnp.log(precision / (2 * pi))
        return _mix(constants, beta) - own

    def _log_density(self, x: Float[Array, " d"], end: int) -> Scalar:
        u, v = x[0], x[1]
        bend = v - self.curvature * u**2
        rate, precision = self.rates[end], self.precisions[end]
        return self.shape * u - rate * jnp.exp(u) - 0.5 * precision * bend**2 + self._constant(end)

    def _constant(self, end: int) -> float:
        rate, precision = self.rates[end], self.precisions[end]
        return self.shape * log(rate) - lgamma(self.shape) + 0.5 * log(precision / (2 * pi))


class TwoModes(eqx.Module):
    """0.3 N(-5 e, I) + 0.7 N(5 e, I), times exp(log_z), with e a unit vector: ten sigma apart."""

    dimension: int = eqx.field(static=True, default=10)
    weight: float = eqx.field(static=True, default=0.7)
    apart: float = eqx.field(static=True, default=10.0)
    log_z: float = eqx.field(static=True, default=0.0)

    def __call__(self, x: Float[Array, " d"]) -> Scalar:
        squares = -0.5 * jnp.sum(x**2) - 0.5 * self.dimension * log(2 * pi)
        along = self.apart / 2 * jnp.sum(x) / np.sqrt(self.dimension) - self.apart**2 / 8
        back = -along - self.apart**2 / 4
        return (
            self.log_z
            + squares
            + jnp.logaddexp(log(1 - self.weight) + back, log(self.weight) + along)
        )

    def draw(self, key: Key) -> Float[Array, " d"]:
        """One exact draw."""
        key_mode, key_noise = jax.random.split(key)
        sign = jnp.where(jax.random.bernoulli(key_mode, self.weight), 1.0, -1.0)
        center = sign * self.apart / 2 / np.sqrt(self.dimension)
        return center + jax.random.normal(key_noise, (self.dimension,), jnp.result_type(float))

    def heavier(self, x: Float[Array, " d"]) -> Array:
        """Whether x is in the mode of weight `weight`."""
        return jnp.sum(x) > 0


def two_modes(log_z: float = 0.0, base_sd: float = 6.0) -> Target:
    """The ten-dimensional mixture with base N(0, base_sd^2 I); its log evidence is `log_z`."""
    density = TwoModes(log_z=log_z)
    return Target(density, Gaussian(np.zeros(density.dimension), base_sd**2))


def _log_normal(x: Array, variance: Array | float) -> Array:
    return -0.5 * x**2 / variance - 0.5 * jnp.log(2 * pi * variance)


def _mix(ends: tuple[float, float], beta: Beta) -> Scalar:
    return jnp.asarray((1 - beta) * ends[0] + beta * ends[1])
