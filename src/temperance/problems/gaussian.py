"""Normalised Gaussian base densities: what a target is heated towards.

    log q(x) = -|L^{-1}(x - m)|^2 / 2 - log det L - (d/2) log 2 pi,       L L' = covariance,

on the position laid out as one vector. A base must be *normalised*, since log evidence is counted
from it, and must be drawable, since its exact draws refresh the hottest rung.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from temperance._types import Key, Numbers, Scalar
from temperance.errors import ArgumentError
from temperance.programs.random_numbers import normals_and_uniforms


class Gaussian(eqx.Module):
    """N(mean, covariance): `covariance` is a variance, a vector of variances or a matrix."""

    mean: Float[Array, " d"]
    factor: Float[Array, " d"] | Float[Array, "d d"]
    log_normaliser: Float[Array, ""]

    def __init__(self, mean: Numbers, covariance: Numbers):
        center = np.atleast_1d(np.asarray(mean, float))
        spread = np.asarray(covariance, float)
        if center.ndim != 1 or center.size == 0:
            raise ArgumentError(f"mean: wanted a vector, got shape {center.shape}")
        if spread.ndim == 0:
            spread = np.full(center.shape, float(spread))
        if spread.shape not in (center.shape, center.shape * 2):
            raise ArgumentError(
                f"covariance: wanted a scalar, shape {center.shape} or {center.shape * 2}, "
                f"got shape {spread.shape}"
            )
        if spread.ndim == 2 and not np.any(spread - np.diag(np.diagonal(spread))):
            spread = np.diagonal(spread)  # independent coordinates need no linear algebra
        if not (np.isfinite(center).all() and np.isfinite(spread).all()):
            raise ArgumentError("mean and covariance must be finite")
        # NumPy's arrays keep double precision until the run that uses them says otherwise.
        self.mean = center  # pyright: ignore[reportAttributeAccessIssue]
        self.factor = factor = _factor(spread)  # pyright: ignore[reportAttributeAccessIssue]
        scales = factor if factor.ndim == 1 else np.diagonal(factor)
        log_normaliser = np.log(scales).sum() + 0.5 * center.size * np.log(2 * np.pi)
        self.log_normaliser = np.asarray(log_normaliser)  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def dimension(self) -> int:
        return self.mean.shape[0]

    def __call__(self, x: Float[Array, " d"]) -> Scalar:
        """The log density, normalised."""
        if self.factor.ndim == 1:
            z = (x - self.mean) / self.factor
        else:
            z = solve_triangular(self.factor, x - self.mean, lower=True)
        return -0.5 * jnp.sum(z**2) - self.log_normaliser

    def draw(self, key: Key) -> Float[Array, " d"]:
        """One exact draw."""
        z, _ = normals_and_uniforms(key, self.dimension, 0, jnp.asarray(self.mean).dtype)
        return self.mean + (self.factor * z if self.factor.ndim == 1 else self.factor @ z)


def _factor(spread: np.ndarray) -> np.ndarray:
    if spread.ndim == 1:
        if (spread <= 0).any():
            raise ArgumentError("covariance: variances must be positive")
        return np.sqrt(spread)
    if not np.allclose(spread, spread.T):
        raise ArgumentError("covariance: a matrix must be symmetric")
    try:
        return np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        raise ArgumentError("covariance: the matrix is not positive definite") from None
