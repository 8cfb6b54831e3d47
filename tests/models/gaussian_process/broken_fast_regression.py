"""Broken twins of Gaussian processes with fast variables, each named after its slip."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Key, Position, Scalar
from temperance.models.gaussian_process import fast_likelihood as fast_routes
from temperance.models.gaussian_process.fast_regression import FastGaussianProcessPrior
from temperance.models.gaussian_process.linear_algebra.factorisation import Panels, whole
from temperance.models.gaussian_process.linear_algebra.tridiagonal import Tridiagonal
from temperance.models.gaussian_process.priors import CorrelatedLogNormal, Logs


class PriorAtTheRatio(FastGaussianProcessPrior):
    """The prior of sigma at psi, the same for every member, in place of psi eta."""

    def __call__(self, position: Position) -> Scalar:
        given: Any = position
        log_length, log_scale = given["log_length"], given["log_scale"]
        return self.whole(
            {"log_length": log_length, "log_scale": log_scale, "log_noise": given["log_ratio"]}
        )


def form_without_the_inverse(panels: Panels, y: Array, variance: Array) -> tuple[Array, Array]:
    """Paper 5, below equation (24), as printed: y' (Y + psi^2 I) y. In the place of `whitened`."""
    matrix = whole(panels) + variance * jnp.eye(y.shape[0])
    factor = jnp.linalg.cholesky(matrix)
    return factor.T @ y, jnp.diagonal(factor)


def reduced_without_turning_y(panels: Panels, y: Array) -> Tridiagonal:
    """The form of A by itself: the first axis is the first row's and not that of y."""
    _, diagonal, beside, _ = jax.lax.linalg.tridiagonal(whole(panels), lower=True)
    return Tridiagonal(diagonal, beside**2, jnp.sum(y**2))


def gradient_with_the_ratio_held(*given: Any) -> tuple[Scalar, Any]:
    """The slope in log eta at one psi, where sigma is what is held."""
    value, (length, scale, rest) = fast_routes.value_and_gradient(*given)
    return value, (length, scale + rest, rest)


class CorrelatedByTheRoot(CorrelatedLogNormal):
    """The common level has the correlation for its standard deviation, in the sampler alone."""

    def draw(self, key: Key, shape: tuple[int, ...]) -> Logs:
        squared = CorrelatedLogNormal(self.mu, self.sigma, self.correlation**2)
        return squared.draw(key, shape)


class CorrelatedAsIfNot(CorrelatedLogNormal):
    """The density of independent entries."""

    def log_density(self, u: Float[Array, "..."]) -> Logs:
        return CorrelatedLogNormal(self.mu, self.sigma, 0.0).log_density(u)
