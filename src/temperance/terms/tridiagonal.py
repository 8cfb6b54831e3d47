"""A covariance plus any multiple of the identity, from one reduction to tridiagonal form.

For a symmetric A and data y there is an orthogonal Q with Q e_1 = y / |y| and

    Q' A Q = T,    T_ii = a_i,    T_{i,i+1} = T_{i+1,i} = b_i.

What is added to the diagonal of A is added to that of T, and Q' y = |y| e_1. Eliminated from the
last row upwards, T + v I has the pivots

    d_n = a_n + v,    d_i = a_i + v - b_i^2 / d_{i+1},

and log det(A + v I) = sum_i log d_i, y' (A + v I)^{-1} y = |y|^2 / d_1. One reduction takes
(4/3) n^3 multiplications and additions and serves every v, for n divisions and logarithms each. An
eigendecomposition would serve as well: it begins with the same reduction, and then spends several
times as long on eigenvectors, of which only their products with y are needed.

Without the first turn of y onto e_1 the determinant would still be right and the quadratic form
would be that of other data.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Scalar
from temperance.terms.factorisation import Panels, whole
from temperance.terms.reduction import registered, room

Vector = Float[Array, " n"]


class Tridiagonal(NamedTuple):
    """The diagonal of T, the squares of what is beside it, and |y|^2."""

    diagonal: Vector
    squares: Float[Array, " n-1"]
    length: Scalar


def reduced(panels: Panels, y: Vector) -> Tridiagonal:
    """The T of the matrix that the panels hold, with y along its first axis."""
    diagonal, beside = jax.lax.platform_dependent(panels, y, cpu=_foreign, default=_reduced)
    return Tridiagonal(diagonal[1:], beside[1:] ** 2, beside[0] ** 2)


def _foreign(panels: Panels, y: Vector) -> tuple[Array, Array]:
    n = y.shape[0]
    shapes: Sequence[tuple[int, ...]] = ((n + 1, n + 1), (n + 1,), (n,), (n,), (room(n),))
    results = [jax.ShapeDtypeStruct(shape, y.dtype) for shape in shapes]
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

    def pivot(below: Scalar, row: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        entry, square = row
        here = entry + variance - square / below
        return here, here

    last = found.diagonal[-1] + variance
    rows = (found.diagonal[:-1], found.squares)
    first, pivots = jax.lax.scan(pivot, last, rows, reverse=True)
    # Logarithms of all pivots at once: inside the loop they would take most of its time.
    return found.length / first, jnp.sum(jnp.log(pivots)) + jnp.log(last)
