"""A covariance and its data reduced to tridiagonal form.

For A, given by panels, and data y the matrix

    B = [[0, y'], [y, A]]

is written and reduced in place: in one pass a row (`householder.py`) where that is faster, and by
LAPACK's `sytrd` where matrices are large or Numba is missing. The first reflection sends y to the
first axis, and those after it leave that axis alone, so that beyond its first row B's form is the
form T = Q' A Q that keeps e_1 along y, and the first entry beside B's diagonal is |y| but for its
sign. Q itself is never formed.
"""

import functools
from collections.abc import Sequence
from ctypes import addressof, c_int

from temperance.models.gaussian_process.linear_algebra import householder
from temperance.models.gaussian_process.linear_algebra.foreign_calls import Buffer, register
from temperance.models.gaussian_process.linear_algebra.lapack import share_out
from temperance.models.gaussian_process.linear_algebra.routines import ALL, LOWER, library, whole

NAME = "temperance_tridiagonal"
# Columns that `sytrd` reduces before it updates the rest, by the room that it is given. LAPACK's
# own choice is 32, which takes 1.4 times as long at 100 rows and 1.2 times at 300.
BLOCK = 8


def shapes(n: int) -> Sequence[tuple[int, ...]]:
    """Those of (B, its diagonal, what is beside it, two of scratch), for n rows of data."""
    rows, apart = n + 1, householder.distance(n + 1)
    vectors = ((rows,), (n,), (n,))
    if apart is None:
        return (rows, rows), *vectors, (BLOCK * rows,)
    return (householder.padded(rows), apart), *vectors, (householder.room(apart),)


def _tridiagonal(arguments: Sequence[Buffer], results: Sequence[Buffer]) -> None:
    """(panels of A, y) -> (what is left of B, its diagonal, what is beside it, two of scratch)."""
    *panels, y = arguments
    n = y.shape[-1]
    lib, step = library(y.dtype), y.itemsize
    apart = results[0].shape[-1]
    size, rows, between = whole(n), whole(n + 1), whole(apart)
    # Which way it is was decided with the shapes, and is seen by them.
    by_passes = results[-1].shape[-1] == householder.room(apart)
    fused = householder.kernel(apart, y.dtype) if by_passes else None
    starts = [(n - panel.shape[-1], panel.shape[-2]) for panel in panels]
    addresses = [panel.items(2) for panel in panels]
    matrices, data = results[0].items(2), y.items(1)
    vectors = [vector.items(1) for vector in results[1:]]

    def one(i: int) -> None:
        corner = matrices[i]
        # B's first entry is left as it is: nothing but the first of the diagonal sees it.
        lib.copy(size, data[i], whole(1), corner + step, whole(1))
        for address, (row, num) in zip(addresses, starts, strict=True):
            width = whole(n - row)
            to = corner + step * (row + 1) * (apart + 1)
            lib.lacpy(ALL, width, whole(num), address[i], width, to, between)
        diagonal, beside, factors, work = (vector[i] for vector in vectors)
        if fused is not None:
            fused(corner, diagonal, beside, work, n + 1)
            return
        info = c_int(0)
        lib.sytrd(
            LOWER, rows, corner, between, diagonal, beside, factors, work, whole(BLOCK * (n + 1)),
            addressof(info),
        )  # fmt: skip

    share_out(one, len(data), n)


@functools.cache
def registered() -> str:
    """The name by which programs on CPUs call `_tridiagonal`."""
    register(NAME, _tridiagonal)
    return NAME
