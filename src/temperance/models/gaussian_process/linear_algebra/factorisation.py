"""A covariance in panels, what its factor makes of the data, and its inverse.

A symmetric n x n matrix is kept as the *panels* of its upper triangle: the rows a..b of the columns
a..n, for cuts a < b some hundred rows apart. Half of the matrix is then neither computed nor
stored, and each panel fits the processor's cache. For S = panels + v I = L L' and data y

    whitened(panels, y, v)    z = L^{-1} y and the diagonal of L
    inverted(panels, y, v)    these, alpha = S^{-1} y, and S^{-1} in the upper triangle of a matrix

On CPUs LAPACK does both, see `temperance.models.gaussian_process.linear_algebra.lapack`; elsewhere XLA. The rows of z and of the
diagonal from which on S is not positive definite are NaN. The leading block of a factor is the
factor of the leading block, so that on CPUs the rows before are right all the same; XLA gives up
all of them.
"""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Scalar
from temperance.models.gaussian_process.linear_algebra.lapack import registered

# Rows of a panel: 128 rows of 1,024 columns are a megabyte, which a core's own cache holds.
WIDTH = 128

Panels = tuple[Float[Array, "_ _"], ...]
Vector = Float[Array, " n"]
Matrix = Float[Array, "n n"]
Inverted = tuple[Matrix, Vector, Vector, Vector]


def cuts(n: int) -> list[tuple[int, int]]:
    """The first and last rows of the panels of n rows."""
    num = max(1, round(n / WIDTH))
    edges = [round(n * i / num) for i in range(num + 1)]
    return list(itertools.pairwise(edges))


def whole(panels: Sequence[Array]) -> Matrix:
    """The matrix whose upper triangle the panels hold."""
    n = panels[0].shape[1]
    rows = [jnp.pad(p, ((0, 0), (n - p.shape[1], 0))) for p in panels]
    upper = jnp.triu(jnp.concatenate(rows))
    return upper + jnp.triu(upper, 1).T


@jax.custom_jvp
def whitened(panels: Panels, y: Vector, variance: Scalar) -> tuple[Vector, Vector]:
    """The z = L^{-1} y and the diagonal of L."""

    def on_cpu(panels: Panels, y: Vector, variance: Scalar) -> tuple[Vector, Vector]:
        _, z, diagonal = _foreign(panels, y, variance, num_vectors=2)
        return z, diagonal

    return jax.lax.platform_dependent(panels, y, variance, cpu=on_cpu, default=_whitened)


@whitened.defjvp
def _differentiate(
    primals: tuple[Panels, Vector, Scalar], tangents: tuple[Panels, Vector, Scalar]
) -> tuple[tuple[Vector, Vector], tuple[Vector, Vector]]:
    # Only whoever differentiates terms one by one comes here: the sum of them has its own gradient.
    return jax.jvp(_whitened, primals, tangents)


def _whitened(panels: Panels, y: Vector, variance: Scalar) -> tuple[Vector, Vector]:
    factor = _factor(panels, variance)
    return _solve(factor, y), jnp.diagonal(factor)


def inverted(panels: Panels, y: Vector, variance: Scalar) -> Inverted:
    """(S^{-1}, z, diagonal of L, alpha); of S^{-1} only the upper triangle is meant."""

    def on_cpu(panels: Panels, y: Vector, variance: Scalar) -> Inverted:
        inverse, z, diagonal, alpha = _foreign(panels, y, variance, num_vectors=3)
        return inverse, z, 1.0 / diagonal, alpha

    return jax.lax.platform_dependent(panels, y, variance, cpu=on_cpu, default=_inverted)


def _inverted(panels: Panels, y: Vector, variance: Scalar) -> Inverted:
    factor = _factor(panels, variance)
    z = _solve(factor, y)
    inverse = _solve(factor, jnp.eye(y.shape[0], dtype=y.dtype))
    return inverse.T @ inverse, z, jnp.diagonal(factor), inverse.T @ z


def _factor(panels: Panels, variance: Scalar) -> Matrix:
    matrix = whole(panels)
    noise = variance * jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    return jax.lax.linalg.cholesky(matrix + noise, symmetrize_input=False)


def _solve(factor: Matrix, right: Array) -> Array:
    return jax.scipy.linalg.solve_triangular(factor, right, lower=True)


def _foreign(panels: Panels, y: Vector, variance: Scalar, num_vectors: int) -> Sequence[Array]:
    n = y.shape[0]
    matrix = jax.ShapeDtypeStruct((n, n), y.dtype)
    vectors = [jax.ShapeDtypeStruct((n,), y.dtype)] * num_vectors
    call = jax.ffi.ffi_call(registered(), (matrix, *vectors), vmap_method="broadcast_all")
    return call(*panels, y, variance)
