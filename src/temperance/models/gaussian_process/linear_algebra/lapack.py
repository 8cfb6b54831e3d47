"""Factor and inverse of a covariance by the BLAS and LAPACK that SciPy brings.

For a covariance S = L L' and data y, in place in one matrix, to whose diagonal v is added first:

    value         L by `potrf`;   z = L^{-1} y by `trsv`
    gradient      W = L^{-1};   z = W y and alpha = W' z by `trmv`;   S^{-1} = W' W by `lauum`

W is found by halves, and L on the way only in part. With S = [[A, .], [B, C]]

    W_A = inverse factor of A;   M = B W_A';   W_C = inverse factor of C - M M'
    W = [[W_A, 0], [-W_C M W_A, W_C]],

as many operations as `potrf` and `trtri` have, but all of them products: OpenBLAS solves triangular
systems at a third of the speed at which it multiplies. The matrix is stored by LAPACK's columns,
of which it reads and writes the lower triangle: the upper one by rows. Several matrices at once, of
chains side by side, are shared out among threads.
"""

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import addressof, c_int
from typing import NamedTuple

from temperance.models.gaussian_process.linear_algebra.foreign_calls import Buffer, register
from temperance.models.gaussian_process.linear_algebra.routines import (
    ALL,
    LEFT,
    LOWER,
    PLAIN,
    RIGHT,
    TRANSPOSED,
    Library,
    library,
    whole,
)

NAME = "temperance_gaussian"
# At this size calling a routine costs as much as it gains.
LEAF = 64
# Halves are cut at multiples of this, so that they start where vector registers like it.
ALIGN = 32
# Below this a matrix is done before a thread has woken up.
LEAST_FOR_THREADS = 96


def _invert(lib: Library, a: int, n: int, stride: int) -> bool:
    """The inverse factor of `n` rows at `a`, in their place; whether there is one."""
    ld, size = whole(stride), whole(n)
    if n <= LEAF:
        info = c_int(0)
        lib.potrf(LOWER, size, a, ld, addressof(info))
        if info.value == 0:
            lib.trtri(LOWER, PLAIN, size, a, ld, addressof(info))
        return info.value == 0
    first = n // 2 if n <= 4 * ALIGN else -(-n // (2 * ALIGN)) * ALIGN
    last = n - first
    b, c = a + lib.itemsize * first, a + lib.itemsize * first * (stride + 1)
    rows, columns = whole(last), whole(first)
    if not _invert(lib, a, first, stride):
        return False
    lib.trmm(RIGHT, LOWER, TRANSPOSED, PLAIN, rows, columns, lib.one, a, ld, b, ld)
    lib.syrk(LOWER, PLAIN, rows, columns, lib.minus, b, ld, lib.one, c, ld)
    if not _invert(lib, c, last, stride):
        return False
    lib.trmm(RIGHT, LOWER, PLAIN, PLAIN, rows, columns, lib.minus, a, ld, b, ld)
    lib.trmm(LEFT, LOWER, PLAIN, PLAIN, rows, columns, lib.one, c, ld, b, ld)
    return True


class _Covariance(NamedTuple):
    """Where one matrix is to be, and what it is made of.

    Its panels have (address, first row, number of rows).
    """

    n: int
    a: int
    panels: Sequence[tuple[int, int, int]]
    y: int
    variance: int

    def write(self, lib: Library, z: int) -> None:
        """S at `a` and y at `z`."""
        n, size, one = self.n, whole(self.n), whole(1)
        for address, row, rows in self.panels:
            width = whole(n - row)
            to = self.a + lib.itemsize * row * (n + 1)
            lib.lacpy(ALL, width, whole(rows), address, width, to, size)
        lib.axpy(size, lib.one, self.variance, whole(0), self.a, whole(n + 1))
        lib.copy(size, self.y, one, z, one)


def _value(lib: Library, given: _Covariance, z: int, diagonal: int) -> None:
    """The z and the diagonal of L; NaN from where on S is not positive definite."""
    n, a, size, one = given.n, given.a, whole(given.n), whole(1)
    given.write(lib, z)
    info = c_int(0)
    lib.potrf(LOWER, size, a, size, addressof(info))
    # What is not positive definite leaves a factor of the rows before, and these are right.
    good = info.value - 1 if info.value > 0 else n
    lib.copy(size, a, whole(n + 1), diagonal, one)
    if good:
        lib.trsv(LOWER, PLAIN, PLAIN, whole(good), a, size, z, one)
    if good < n:
        for vector in (z, diagonal):
            _undefined(lib, vector + lib.itemsize * good, n - good)


def _gradient(lib: Library, given: _Covariance, z: int, diagonal: int, alpha: int) -> None:
    """The z, the diagonal of W, alpha, and the inverse in the place of S; or NaN."""
    n, a, size, one = given.n, given.a, whole(given.n), whole(1)
    given.write(lib, z)
    if not _invert(lib, a, n, n):
        for vector in (z, diagonal, alpha):
            _undefined(lib, vector, n)
        return
    lib.copy(size, a, whole(n + 1), diagonal, one)
    lib.trmv(LOWER, PLAIN, PLAIN, size, a, size, z, one)
    lib.copy(size, z, one, alpha, one)
    lib.trmv(LOWER, TRANSPOSED, PLAIN, size, a, size, alpha, one)
    info = c_int(0)
    lib.lauum(LOWER, size, a, size, addressof(info))


def _undefined(lib: Library, vector: int, num: int) -> None:
    lib.copy(whole(num), lib.nan, whole(0), vector, whole(1))


def _gaussian(arguments: Sequence[Buffer], results: Sequence[Buffer]) -> None:
    """(panels of S - v I, y, v) -> (L, z, diagonal of L) or (S^{-1}, z, diagonal of W, alpha)."""
    *panels, y, variance = arguments
    n = y.shape[-1]
    lib = library(y.dtype)
    rows = [(n - panel.shape[-1], panel.shape[-2]) for panel in panels]
    addresses = [panel.items(2) for panel in panels]
    matrices, variances = results[0].items(2), variance.items(0)
    data, *vectors = [vector.items(1) for vector in (y, *results[1:])]

    def one(i: int) -> None:
        mine = [(a[i], *r) for a, r in zip(addresses, rows, strict=True)]
        given = _Covariance(n, matrices[i], mine, data[i], variances[i])
        (_gradient if len(vectors) == 3 else _value)(lib, given, *(v[i] for v in vectors))

    share_out(one, len(data), n)


def share_out(one: Callable[[int], None], num: int, n: int) -> None:
    """Call `one` for each of `num` matrices of n rows.

    Matrices of a batch are chains' or rungs', and each is one thread's: how many threads there
    are changes nothing but the time.
    """
    side_by_side = num > 1 and n >= LEAST_FOR_THREADS and _num_cores() > 1
    for _ in (_pool().map if side_by_side else map)(one, range(num)):
        pass


def _num_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_num_cores(), "temperance-lapack")


@functools.cache
def registered() -> str:
    """The name by which programs on CPUs call `_gaussian`."""
    register(NAME, _gaussian)
    return NAME
