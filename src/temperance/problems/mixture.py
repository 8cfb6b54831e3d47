"""Mixtures of normalised densities, and Student's t densities that are mixed.

    Mixture            q(x) = sum_j w_j q_j(x),                 any normalised q_j
    StudentMixture     q_j(x) = t(x; nu_j, m_j, L_j L_j'),      or N(m_j, L_j L_j') for infinite nu

The t density with nu degrees of freedom in d dimensions, delta = |L^{-1} (x - m)|^2, is

    log t = log Gamma((nu + d) / 2) - log Gamma(nu / 2) - (d / 2) log(nu pi) - log det L
            - (nu + d) / 2 log(1 + delta / nu),

and a draw is m + L z sqrt(nu / s), z normal and s chi-square with nu degrees of freedom: a sum of
nu squares of normal numbers, since nu is a whole number of at most `MOST_DOF` or infinite.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import gammaln

from temperance._types import Key, Numbers, Scalar
from temperance.errors import ArgumentError
from temperance.programs.random_numbers import normals_and_uniforms

MOST_DOF = 16


class Mixture(eqx.Module):
    """The normalised density sum_j weights[j] components[j].

    A component is a normalised log density of a vector with a `draw(key)`, such as `Gaussian`. A
    component that is not normalised, or whose draws are of another density, makes the mixture one
    that is not normalised, and nothing says so.
    """

    log_weights: Float[Array, " components"]
    components: tuple[Any, ...]

    def __init__(self, weights: Numbers, components: Sequence[Any]):
        shares = np.atleast_1d(np.asarray(weights, float))
        if shares.ndim != 1 or not np.isfinite(shares).all() or (shares <= 0).any():
            raise ArgumentError(f"weights: wanted positive numbers in a vector, got {weights!r}")
        if len(shares) != len(components):
            raise ArgumentError(
                f"weights: there are {len(shares)} for {len(components)} components; give one each"
            )
        for one in components:
            if isinstance(one, type) or not (callable(one) and hasattr(one, "draw")):
                raise ArgumentError(
                    "components: wanted normalised log densities of a vector with a draw(key), "
                    f"such as Gaussian(mean, covariance); got {one!r}"
                )
        sizes = {np.shape(jax.eval_shape(one.draw, jax.random.key(0))) for one in components}
        if len(sizes) > 1:
            raise ArgumentError(f"components: wanted one dimension, got draws of shapes {sizes}")
        self.log_weights = np.log(shares / shares.sum())
        self.components = tuple(components)

    def __call__(self, x: Float[Array, " d"]) -> Scalar:
        """The log density, normalised."""
        values = jnp.stack([one(x) for one in self.components])
        return _log_sum(values + self.log_weights)

    def draw(self, key: Key) -> Float[Array, " d"]:
        """One exact draw."""
        which, *keys = jax.random.split(key, len(self.components) + 1)
        chosen = jax.random.categorical(which, jnp.asarray(self.log_weights))
        draws = [one.draw(k) for one, k in zip(self.components, keys, strict=True)]
        return jnp.stack(draws)[chosen]


class StudentMixture(eqx.Module):
    """A mixture of t and Gaussian densities, evaluated together."""

    log_weights: Float[Array, " components"]
    means: Float[Array, "components d"]
    factors: Float[Array, "components d d"]
    inverses: Float[Array, "components d d"]
    dofs: Float[Array, " components"]
    log_normalisers: Float[Array, " components"]

    def __init__(self, weights: Numbers, means: Numbers, scales: Numbers, dofs: Numbers):
        """`scales` are the matrices L L'; `dofs` whole numbers up to `MOST_DOF`, or infinite."""
        shares, m = np.asarray(weights, float), np.asarray(means, float)
        nu = np.asarray(dofs, float)
        if not (np.isinf(nu) | ((nu == np.round(nu)) & (nu >= 1) & (nu <= MOST_DOF))).all():
            raise ArgumentError(f"dofs: wanted whole numbers from 1 to {MOST_DOF} or inf, got {nu}")
        factors = np.linalg.cholesky(np.asarray(scales, float))
        d = m.shape[1]
        log_det = np.log(np.einsum("jii->ji", factors)).sum(1)
        finite = np.where(np.isinf(nu), 1.0, nu)
        student = gammaln((finite + d) / 2) - gammaln(finite / 2) - d / 2 * np.log(finite * np.pi)
        constant = np.where(np.isinf(nu), -d / 2 * np.log(2 * np.pi), student) - log_det
        identity = np.broadcast_to(np.eye(d), factors.shape)
        # NumPy's arrays keep double precision until the run that uses them says otherwise.
        values = {
            "log_weights": np.log(shares / shares.sum()),
            "means": m,
            "factors": factors,
            "inverses": np.linalg.solve(factors, identity),
            "dofs": nu,
            "log_normalisers": constant,
        }
        for name, value in values.items():
            setattr(self, name, value)

    def __call__(self, x: Float[Array, " d"]) -> Scalar:
        """The log density, normalised."""
        away = jnp.einsum("jik,jk->ji", self.inverses, x[None] - self.means)
        square = jnp.sum(away**2, axis=1)
        return _log_sum(_profile(jnp, square, self.dofs, x.shape[0]) + self._constants())

    def _constants(self) -> Any:
        return self.log_weights + self.log_normalisers

    def draw(self, key: Key) -> Float[Array, " d"]:
        """One exact draw."""
        means = jnp.asarray(self.means)
        d = means.shape[1]
        normals, uniforms = normals_and_uniforms(key, d + MOST_DOF, 1, means.dtype)
        bounds = jnp.cumsum(jnp.exp(jnp.asarray(self.log_weights)))
        j = jnp.minimum(jnp.sum(uniforms[0] * bounds[-1] > bounds), means.shape[0] - 1)
        nu = jnp.asarray(self.dofs)[j]
        counts = jnp.arange(MOST_DOF) < nu
        chi_square = jnp.sum(jnp.where(counts, normals[d:] ** 2, 0.0))
        wide = jnp.where(jnp.isinf(nu), 1.0, jnp.sqrt(nu / jnp.where(counts[0], chi_square, 1.0)))
        return means[j] + wide * (jnp.asarray(self.factors)[j] @ normals[:d])

    def log_components(self, points: np.ndarray) -> np.ndarray:
        """log(w_j q_j) at many points, (n, components), in NumPy."""
        found = np.empty((len(points), len(self.means)))
        for j, (mean, inverse) in enumerate(zip(self.means, self.inverses, strict=True)):
            square = np.sum(((points - mean) @ np.asarray(inverse).T) ** 2, axis=1)
            found[:, j] = _profile(np, square, np.asarray(self.dofs)[j], points.shape[1])
        return found + np.asarray(self._constants())

    def draws(self, rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        """counts[j] draws of component j, for each j, in NumPy."""
        parts = []
        for j, n in enumerate(counts):
            z = rng.standard_normal((n, self.means.shape[1])) @ np.asarray(self.factors)[j].T
            nu = float(self.dofs[j])
            wide = np.ones(n) if np.isinf(nu) else np.sqrt(nu / rng.chisquare(nu, n))
            parts.append(np.asarray(self.means)[j] + wide[:, None] * z)
        return np.concatenate(parts)


def _profile(of: Any, square: Any, dofs: Any, d: int) -> Any:
    """The part of log t that depends on the distance from the middle."""
    finite = of.where(of.isinf(dofs), 1.0, dofs)
    student = -0.5 * (finite + d) * of.log1p(square / finite)
    return of.where(of.isinf(dofs), -0.5 * square, student)


def _log_sum(values: Array) -> Scalar:
    top = jax.lax.stop_gradient(jnp.max(values))
    top = jnp.where(jnp.isfinite(top), top, 0.0)
    total = jnp.sum(jnp.exp(values - top))
    # Where every component is zero, the gradient of the logarithm is not a number.
    some = total > 0
    return top + jnp.where(some, jnp.log(jnp.where(some, total, 1.0)), -jnp.inf)


def covering(points: np.ndarray) -> StudentMixture:
    """A t density with three degrees of freedom that is as wide as `points`."""
    middle = np.median(points, axis=0)
    away = points - middle
    spread = 1.4826 * np.median(np.abs(away), axis=0)
    # Where most of the points are one and the same, the median says nothing of the others.
    spread = np.where(spread > 0, spread, 1.0)
    near = np.clip(away / spread, -5.0, 5.0)
    correlated = near.T @ near / len(near) + 0.05 * np.eye(points.shape[1])
    scale = correlated * spread[:, None] * spread
    return StudentMixture([1.0], middle[None], scale[None], [3.0])
