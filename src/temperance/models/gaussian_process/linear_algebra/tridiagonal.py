"""A covariance plus any multiple of the identity, from one reduction to tridiagonal form.

For a symmetric A and data y there is an orthogonal Q with Q e_1 = y / |y| and

    Q' A Q = T,    T_ii = a_i,    T_{i,i+1} = T_{i+1,i} = b_i.

What is added to the diagonal of A is added to that of T, and Q' y = |y| e_1. The determinants of
what T + v I has from row i on are

    D_{n+1} = 1,    D_n = a_n + v,    D_i = (a_i + v) D_{i+1} - b_i^2 D_{i+2},

and det(A + v I) = D_1, y' (A + v I)^{-1} y = |y|^2 D_2 / D_1; the matrix is positive definite where
all D_i are positive. After every `TOGETHER` rows D_i and D_{i+1} are divided by D_i, of which the
logarithm is kept: so they do not overflow, and divisions and logarithms are few. One reduction
takes (4/3) n^3 multiplications and additions and serves every v, for a few n each. An
eigendecomposition would serve as well: it begins with the same reduction, and then spends several
times as long on eigenvectors, of which only their products with y are needed.

Without the first turn of y onto e_1 the determinant would still be right and the quadratic form
would be that of other data.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Scalar
from temperance.models.gaussian_process.linear_algebra.factorisation import Panels, whole
from temperance.models.gaussian_process.linear_algebra.reduction import registered, shapes

Vector = Float[Array, " n"]
# Rows between divisions: the product of their pivots has to be a number.
TOGETHER = 4


class Tridiagonal(NamedTuple):
    """The diagonal of T, the squares of what is beside it, and |y|^2."""

    diagonal: Vector
    squares: Float[Array, " n-1"]
    length: Scalar


class _Ratio(NamedTuple):
    """D_{i+1} / D_i, and the least of all D so far."""

    ratio: Scalar
    least: Scalar


def reduced(panels: Panels, y: Vector) -> Tridiagonal:
    """The T of the matrix that the panels hold, with y along its first axis."""
    diagonal, beside = jax.lax.platform_dependent(panels, y, cpu=_foreign, default=_reduced)
    return Tridiagonal(diagonal[1:], beside[1:] ** 2, beside[0] ** 2)


def _foreign(panels: Panels, y: Vector) -> tuple[Array, Array]:
    results = [jax.ShapeDtypeStruct(shape, y.dtype) for shape in shapes(y.shape[0])]
    call = jax.ffi.ffi_call(registered(), results, vmap_method="broadcast_all")
    _, diagonal, beside, *_ = call(*panels, y)
    return diagonal, beside


def _reduced(panels: Panels, y: Vector) -> tuple[Array, Array]:
    n = y.shape[0]
    bordered = jnp.zeros((n + 1, n + 1), y.dtype)
    bordered = bordered.at[1:, 1:].set(whole(panels)).at[1:, 0].set(y).at[0, 1:].set(y)
    _, diagonal, beside, _ = jax.lax.linalg.tridiagonal(bordered, lower=True)
    return diagonal, beside


def form_and_determinant(found: Tridiagonal, variance: Scalar) -> tuple[Scalar, Scalar]:
    """The y' (A + v I)^{-1} y and log det(A + v I); NaN where that is not positive definite."""
    last = found.diagonal[-1] + variance

    def some_rows(before: _Ratio, rows: tuple[Vector, Vector]) -> tuple[_Ratio, Scalar]:
        below, here, least = before.ratio, jnp.ones_like(last), before.least
        for entry, square in zip(*(part[::-1] for part in rows), strict=True):
            below, here = here, (entry + variance) * here - square * below
            least = jnp.minimum(least, here)
        return _Ratio(below / here, least), here

    # Rows that are too few to be together are the last ones, where the recursion begins.
    rows = (found.diagonal[:-1], found.squares)
    cut = found.squares.shape[0] // TOGETHER * TOGETHER
    few = (rows[0][cut:], rows[1][cut:])
    blocks = (rows[0][:cut].reshape(-1, TOGETHER), rows[1][:cut].reshape(-1, TOGETHER))
    start, first = some_rows(_Ratio(1.0 / last, last), few)
    end, others = jax.lax.scan(some_rows, start, blocks, reverse=True)
    determinant = jnp.log(last) + jnp.log(first) + jnp.sum(jnp.log(others))
    return found.length * end.ratio, jnp.where(end.least > 0.0, determinant, jnp.nan)
