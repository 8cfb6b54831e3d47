"""Priors of positive parameters, as densities of their logarithms.

A move proposes u = log theta on the whole line. A density p of theta becomes that of u with the
Jacobian d theta / du = theta:

    log-normal(mu, sigma)     log p(u) = -(u - mu)^2 / (2 sigma^2) - log sigma - log(2 pi)/2
    gamma(shape a, rate b)    log p(u) = a u - b e^u + a log b - log Gamma(a)
    half-normal(sigma)        log p(u) = u - e^{2u} / (2 sigma^2) - log sigma + log(2/pi)/2
    inverse gamma(a, b)       log p(u) = -a u - b e^{-u} + a log b - log Gamma(a)

Several parameters may be dependent. Then log p(u) = sum_i log p(u_i | u_<i), and a prior gives
these terms, so that in either case the sum over entries is the log density of all of them. For
normal u_i of mean mu and variance sigma^2, any two of which have correlation c, given the sum s of
u_j - mu over the k entries before it,

    u_i ~ N(mu + c s / (1 + (k - 1) c), sigma^2 (1 - k c^2 / (1 + (k - 1) c))).

All are normalised, so that log evidences of different priors can be compared, and each has an exact
sampler of u.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key
from temperance.errors import ArgumentError

Logs = Float[Array, "..."]


class AbstractPrior(eqx.Module):
    """A normalised density of u = log theta, with an exact sampler."""

    @abc.abstractmethod
    def log_density(self, u: Logs) -> Logs:
        """The log density of each entry of u; of one that depends on others, given those before it.

        Dependent entries lie along the last axis. The sum is the log density of u.
        """

    @abc.abstractmethod
    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        """Draws of u, independent unless the prior says otherwise of the last axis."""


def _number(name: str, value: object) -> float:
    try:
        number = float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        number = float("nan")
    if not math.isfinite(number):
        raise ArgumentError(f"{name}: wanted a finite number, got {value!r}")
    return number


def _positive(name: str, value: object) -> float:
    number = _number(name, value)
    if number <= 0:
        raise ArgumentError(f"{name}: wanted a positive number, got {value!r}")
    return number


class LogNormal(AbstractPrior):
    """log theta ~ N(mu, sigma^2); `sigma` is a standard deviation."""

    mu: float = eqx.field(static=True)
    sigma: float = eqx.field(static=True)

    def __init__(self, mu: float | int, sigma: float | int):
        self.mu = _number("mu", mu)
        self.sigma = _positive("sigma", sigma)

    def log_density(self, u: Logs) -> Logs:
        constant = math.log(self.sigma) + 0.5 * math.log(2.0 * math.pi)
        return -0.5 * ((u - self.mu) / self.sigma) ** 2 - constant

    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        return self.mu + self.sigma * jax.random.normal(key, shape)


class CorrelatedLogNormal(AbstractPrior):
    """log theta_i ~ N(mu, sigma^2), any two of them with the same `correlation`, in [0, 1).

    The same as a common level log theta_0 ~ N(mu, correlation sigma^2), around which the others are
    independent: that one of them is large makes it likelier that the others are.
    """

    mu: float = eqx.field(static=True)
    sigma: float = eqx.field(static=True)
    correlation: float = eqx.field(static=True)

    def __init__(self, mu: float | int, sigma: float | int, correlation: float | int):
        self.mu = _number("mu", mu)
        self.sigma = _positive("sigma", sigma)
        self.correlation = _number("correlation", correlation)
        if not 0 <= self.correlation < 1:
            raise ArgumentError(
                f"correlation: wanted a number of at least 0 and below 1, got {correlation!r}"
            )

    def log_density(self, u: Logs) -> Logs:
        z = jnp.atleast_1d((u - self.mu) / self.sigma)
        num_before = np.arange(z.shape[-1])
        pull = self.correlation / (1.0 + (num_before - 1.0) * self.correlation)
        pull, spread = (np.broadcast_to(x, z.shape) for x in (pull, self._spread(num_before)))
        rest = z - pull * (jnp.cumsum(z, axis=-1) - z)
        constant = np.log(self.sigma * spread) + 0.5 * math.log(2.0 * math.pi)
        return (-0.5 * (rest / spread) ** 2 - constant).reshape(u.shape)

    def _spread(self, num_before: np.ndarray) -> np.ndarray:
        """The standard deviation of an entry given those before it, over sigma."""
        c = self.correlation
        return np.sqrt(1.0 - num_before * c**2 / (1.0 + (num_before - 1.0) * c))

    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        of_all, of_each = jax.random.split(key)
        level = jax.random.normal(of_all, (*shape[:-1], 1) if shape else ())
        own = jax.random.normal(of_each, shape)
        shared = math.sqrt(self.correlation) * jnp.broadcast_to(level, shape)
        return self.mu + self.sigma * (shared + math.sqrt(1.0 - self.correlation) * own)


class Gamma(AbstractPrior):
    """theta ~ Gamma(shape, rate), with mean shape / rate."""

    shape: float = eqx.field(static=True)
    rate: float = eqx.field(static=True)

    def __init__(self, shape: float | int, rate: float | int):
        self.shape = _positive("shape", shape)
        self.rate = _positive("rate", rate)

    def log_density(self, u: Logs) -> Logs:
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return self.shape * u - self.rate * jnp.exp(u) + constant

    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        return jax.random.loggamma(key, self.shape, shape) - math.log(self.rate)


class InverseGamma(AbstractPrior):
    """1 / theta ~ Gamma(shape, rate): next to nothing at lengths far below `rate`."""

    inverse: Gamma

    def __init__(self, shape: float | int, rate: float | int):
        self.inverse = Gamma(shape, rate)

    def log_density(self, u: Logs) -> Logs:
        return self.inverse.log_density(-u)

    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        return -self.inverse.draw(key, shape)


class HalfNormal(AbstractPrior):
    """theta = |N(0, sigma^2)|."""

    sigma: float = eqx.field(static=True)

    def __init__(self, sigma: float | int):
        self.sigma = _positive("sigma", sigma)

    def log_density(self, u: Logs) -> Logs:
        constant = 0.5 * math.log(2.0 / math.pi) - math.log(self.sigma)
        return u - 0.5 * jnp.exp(2.0 * u) / self.sigma**2 + constant

    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        return jnp.log(jnp.abs(jax.random.normal(key, shape))) + math.log(self.sigma)
