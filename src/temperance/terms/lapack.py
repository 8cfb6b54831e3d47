"""Factor and inverse of a covariance by the BLAS and LAPACK that SciPy brings.

For a covariance S = L L' and data y, in place in one matrix, to whose diagonal v is added first:

    L                   `potrf`
    z = L^{-1} y        `trsv`
    alpha = S^{-1} y    `trsv` with L'
    W = L^{-1}          by halves: with L = [[A, 0], [B, C]],
                        W = [[A^{-1}, 0], [-C^{-1} B A^{-1}, C^{-1}]], two triangular products each
    S^{-1} = W' W       `lauum`

The halves make the inverse as fast as products of matrices are: `trtri` of OpenBLAS works column
by column, and takes twice as long at 1,024 rows and four times as long at 362. The matrix is stored
by LAPACK's columns, of which it reads and writes the lower triangle: the upper one by rows.
"""

import ctypes
import functools
import importlib
import math
from collections.abc import Sequence
from ctypes import addressof, c_char, c_char_p, c_double, c_float, c_int, c_void_p, py_object
from typing import Any, NamedTuple

from temperance.terms.foreign import DOUBLE, SINGLE, Buffer, register

NAME = "temperance_gaussian"
# At this size calling a routine costs as much as it gains.
LEAF = 48
# Halves are cut at multiples of this, so that they start where vector registers like it.
ALIGN = 32
ROUTINES = {
    "potrf": 5, "trtri": 6, "lauum": 5, "lacpy": 7, "trmm": 11, "trsv": 8, "copy": 5,
    "axpy": 6,
}  # fmt: skip


class _Library(NamedTuple):
    """Routines of one precision, as functions of addresses."""

    itemsize: int
    nan: int
    one: int
    minus: int
    potrf: Any
    trtri: Any
    lauum: Any
    lacpy: Any
    trmm: Any
    trsv: Any
    copy: Any
    axpy: Any


_constants: dict[Any, Any] = {}


def _letter(letter: str) -> int:
    return addressof(_constants.setdefault(letter, c_char(letter.encode())))


def _whole(number: int) -> int:
    return addressof(_constants.setdefault(number, c_int(number)))


LOWER, LEFT, RIGHT, TRANSPOSED, PLAIN, ALL = (_letter(c) for c in ("L", "L", "R", "T", "N", "A"))


@functools.cache
def _library(dtype: int) -> _Library:
    modules = [importlib.import_module(f"scipy.linalg.cython_{m}") for m in ("blas", "lapack")]
    letter, real = {SINGLE: ("s", c_float), DOUBLE: ("d", c_double)}[dtype]
    numbers = [_constants.setdefault((letter, x), real(x)) for x in (math.nan, 1.0, -1.0)]
    routines = {}
    for name, num_arguments in ROUTINES.items():
        for module in modules:
            capsule = module.__pyx_capi__.get(letter + name)
            if capsule is not None:
                kind = ctypes.CFUNCTYPE(None, *[c_void_p] * num_arguments)
                routines[name] = kind(_address(capsule))
    return _Library(ctypes.sizeof(real), *(addressof(x) for x in numbers), **routines)


def _address(capsule: Any) -> int:
    """What a Cython module's table of functions points to."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = c_char_p, [py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = c_void_p, [py_object, c_char_p]
    return pointer_of(capsule, name_of(capsule))


def _solve(lib: _Library, a: int, n: int, transposed: int, x: int) -> None:
    lib.trsv(LOWER, transposed, PLAIN, _whole(n), a, _whole(n), x, _whole(1))


def _invert(lib: _Library, a: int, n: int, stride: int) -> None:
    """The inverse of a triangle of `n` rows at `a`, in its place."""
    ld = _whole(stride)
    if n <= LEAF:
        info = c_int(0)
        lib.trtri(LOWER, PLAIN, _whole(n), a, ld, addressof(info))
        return
    first = n // 2 if n <= 4 * ALIGN else -(-n // (2 * ALIGN)) * ALIGN
    last = n - first
    b, c = a + lib.itemsize * first, a + lib.itemsize * first * (stride + 1)
    _invert(lib, a, first, stride)
    _invert(lib, c, last, stride)
    size = _whole(last), _whole(first)
    lib.trmm(RIGHT, LOWER, PLAIN, PLAIN, *size, lib.minus, a, ld, b, ld)
    lib.trmm(LEFT, LOWER, PLAIN, PLAIN, *size, lib.one, c, ld, b, ld)


def _one(
    lib: _Library, n: int, panels: Sequence[tuple[int, int, int]], results: Sequence[int]
) -> None:
    """Everything for one covariance whose panels have (address, first row, number of rows)."""
    a, y, variance, z, diagonal, *inverted = results
    for address, row, rows in panels:
        width = _whole(n - row)
        to = a + lib.itemsize * row * (n + 1)
        lib.lacpy(ALL, width, _whole(rows), address, width, to, _whole(n))
    lib.axpy(_whole(n), lib.one, variance, _whole(0), a, _whole(n + 1))
    info = c_int(0)
    lib.potrf(LOWER, _whole(n), a, _whole(n), addressof(info))
    # What is not positive definite leaves a factor of the rows before, and these are right.
    good = info.value - 1 if info.value > 0 else n
    lib.copy(_whole(n), y, _whole(1), z, _whole(1))
    lib.copy(_whole(n), a, _whole(n + 1), diagonal, _whole(1))
    if good:
        lib.trsv(LOWER, PLAIN, PLAIN, _whole(good), a, _whole(n), z, _whole(1))
    if good < n:
        for vector in (z, diagonal):
            start, num = vector + lib.itemsize * good, _whole(n - good)
            lib.copy(num, lib.nan, _whole(0), start, _whole(1))
        return
    for alpha in inverted:
        lib.copy(_whole(n), z, _whole(1), alpha, _whole(1))
        _solve(lib, a, n, TRANSPOSED, alpha)
        _invert(lib, a, n, n)
        lib.lauum(LOWER, _whole(n), a, _whole(n), addressof(info))


def _gaussian(arguments: Sequence[Buffer], results: Sequence[Buffer]) -> None:
    """(panels of S - v I, y, v) -> (L, z, diagonal of L), or (S^{-1}, z, diagonal of L, alpha)."""
    *panels, y, variance = arguments
    n = y.shape[-1]
    lib = _library(y.dtype)
    rows = [(n - panel.shape[-1], panel.shape[-2]) for panel in panels]
    vectors = [vector.items(1) for vector in (y, *results[1:])]
    places = [results[0].items(2), vectors[0], variance.items(0), *vectors[1:]]
    addresses = [panel.items(2) for panel in panels]
    for index in range(len(places[1])):
        mine = [(a[index], *r) for a, r in zip(addresses, rows, strict=True)]
        _one(lib, n, mine, [place[index] for place in places])


@functools.cache
def registered() -> str:
    """The name by which programs on CPUs call `_gaussian`."""
    register(NAME, _gaussian)
    return NAME
