"""Tridiagonal form by Householder's reflections, in one pass over the matrix for each.

What is beside the diagonal in one row of a symmetric A, x, is sent to beta e_1 by I - tau u u' with

    beta = -sign(x_1) |x|,    tau = (beta - x_1) / beta,    u = (1, x_2, x_3, ...) / (x_1 - beta),

and the rest of the matrix becomes

    A - u w' - w u',    w = p - (tau / 2) (p'u) u,    p = tau A u.

The next reflection needs the next row alone, so that the update by one step's v = u and w and the
product with the next step's u are made together: an entry is read and written once a step, where
`sytrd` reads it for the product and again for updates. Only the upper triangle is touched, four
rows at a time: a_j of row r, after its update, adds a_j u_j to p_r and a_j u_r to p_j. On the
diagonal the four rows have all of their square, whose products must not be added twice.

Numba compiles it for rows that lie a known distance apart, since only then it knows that they do
not overlap, and uses vector instructions.
"""

import functools
import importlib.util
import inspect
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_ssize_t, c_void_p
from typing import Any

import numpy as np

from temperance.models.gaussian_process.linear_algebra.foreign_calls import DOUBLE, SINGLE

# From one row to the next: odd numbers of cache lines, which spread a column over the cache.
DISTANCES = (72, 136, 264, 520)
# Sums in any order; infinities and NaN keep their meaning.
REORDERED = {"reassoc", "contract", "nsz"}
_kept: list[Any] = []  # machine code whose address is out must stay


def distance(num_rows: int) -> int | None:
    """How far apart rows are to lie, or nothing: where LAPACK does better, or without Numba."""
    fitting = [d for d in DISTANCES if d >= padded(num_rows)]
    return fitting[0] if fitting and importlib.util.find_spec("numba") else None


def padded(num_rows: int) -> int:
    """The rows with their padding: whole vectors of eight."""
    return (num_rows + 7) // 8 * 8


def room(apart: int) -> int:
    """Numbers that a reduction needs to itself, for v, w, u and p."""
    return 4 * apart


@functools.cache
def kernel(apart: int, dtype: int) -> Callable[[int, int, int, int, int], None]:
    """Reduces (matrix, diagonal, what is beside it, room, number of rows), arrays by address.

    Of the matrix the upper triangle by rows is meant, and the first entry is nobody's.
    """
    import numba
    from numba.np.numpy_support import carray

    def compiled(function: Callable[..., None]) -> Any:
        return numba.njit(inspect.unwrap(function), error_model="numpy", fastmath=REORDERED)

    reduce = compiled(_reduce(apart, compiled(prepare), compiled(_four_rows(apart))))

    def by_address(matrix: Any, diagonal: Any, beside: Any, work: Any, n: Any) -> None:
        shape = ((n + 7) // 8 * 8, apart)
        flat = carray(matrix, shape[0] * apart)
        reduce(
            carray(matrix, shape), flat, carray(diagonal, n),
            carray(beside, n - 1), carray(work, 4 * apart), n,
        )  # fmt: skip

    array = numba.types.CPointer({SINGLE: numba.float32, DOUBLE: numba.float64}[dtype])
    signature = numba.void(array, array, array, array, numba.intp)
    made: Any = numba.cfunc(signature)(inspect.unwrap(by_address))
    _kept.append(made)
    return CFUNCTYPE(None, *[c_void_p] * 4, c_ssize_t)(made.address)


def prepare(matrix: Any, t: Any, n: Any) -> None:
    """Zeros where nothing was written, and both halves of the squares on the diagonal."""
    num = matrix.shape[0]
    t[:] = 0
    matrix[0, 0] = 0
    matrix[n:, :num] = 0
    matrix[:n, n:num] = 0
    for first in range(0, num, 4):
        for r in range(first, first + 4):
            for j in range(first, r):
                matrix[r, j] = matrix[j, r]


def _four_rows(apart: int) -> Callable[..., None]:
    w, u, p = apart, 2 * apart, 3 * apart

    def four_rows(a: Any, t: Any, num: Any) -> None:
        """Updates rows r to r + 3 from their diagonal on, and adds their share to p.

        `t` has v, w, u and p from r on.
        """
        v0, v1, v2, v3 = t[0], t[1], t[2], t[3]
        w0, w1, w2, w3 = t[w], t[w + 1], t[w + 2], t[w + 3]
        u0, u1, u2, u3 = t[u], t[u + 1], t[u + 2], t[u + 3]
        p0, p1, p2, p3 = t[p], t[p + 1], t[p + 2], t[p + 3]
        s0 = s1 = s2 = s3 = v0 - v0
        for j in range(num):
            vj, wj, uj = t[j], t[j + w], t[j + u]
            a0 = a[j] - vj * w0 - wj * v0
            a1 = a[j + apart] - vj * w1 - wj * v1
            a2 = a[j + 2 * apart] - vj * w2 - wj * v2
            a3 = a[j + 3 * apart] - vj * w3 - wj * v3
            a[j] = a0
            a[j + apart] = a1
            a[j + 2 * apart] = a2
            a[j + 3 * apart] = a3
            s0 += a0 * uj
            s1 += a1 * uj
            s2 += a2 * uj
            s3 += a3 * uj
            t[j + p] += a0 * u0 + a1 * u1 + a2 * u2 + a3 * u3
        # The square's products are in p already, and are not to be there twice.
        t[p], t[p + 1], t[p + 2], t[p + 3] = p0 + s0, p1 + s1, p2 + s2, p3 + s3

    return four_rows


def _reduce(
    apart: int, prepare: Callable[..., None], four_rows: Callable[..., None]
) -> Callable[..., None]:
    w, u, p = apart, 2 * apart, 3 * apart

    def reduce(matrix: Any, flat: Any, diagonal: Any, beside: Any, t: Any, n: Any) -> None:
        num = matrix.shape[0]
        prepare(matrix, t, n)
        for i in range(n - 1):
            # Row i as the last reflection leaves it, from its diagonal on.
            diagonal[i] = matrix[i, i] - 2 * t[i] * t[i + w]
            x, here, left = matrix[i, i + 1 : num], t[i + 1 :], num - i - 1
            vi, wi = t[i], t[i + w]
            length = vi - vi
            for j in range(left):
                entry = x[j] - here[j] * wi - here[j + w] * vi
                x[j] = entry
                length += entry * entry
            t[i] = t[i + w] = t[i + u] = 0

            beta = -np.sqrt(length) if x[0] > 0 else np.sqrt(length)
            beside[i] = beta
            turns = beta != 0
            tau = (beta - x[0]) / beta if turns else beta
            scale = 1 / (x[0] - beta) if turns else beta
            for j in range(left):
                here[j + u] = x[j] * scale
                here[j + p] = 0
            here[u] = 1

            # Update by v and w, and product with u.
            for r in range((i + 1) // 4 * 4, num, 4):
                four_rows(flat[r * apart + r :], t[r:], num - r)

            product = beta - beta
            for j in range(left):
                product += here[j + p] * here[j + u]
            for j in range(left):
                uj = here[j + u]
                here[j] = uj
                here[j + w] = tau * (here[j + p] - tau * product * uj / 2)
        diagonal[n - 1] = matrix[n - 1, n - 1] - 2 * t[n - 1] * t[n - 1 + w]

    return reduce
