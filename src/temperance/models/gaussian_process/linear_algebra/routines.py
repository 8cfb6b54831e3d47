"""Routines of the BLAS and LAPACK that SciPy brings, as functions of addresses.

SciPy's Cython modules carry a table of what they link to. A routine of it, called through `ctypes`
with the addresses of its arguments, is Fortran's: every argument is a pointer, letters and sizes
included, and these are kept for good because an address may not go stale.
"""

import ctypes
import functools
import importlib
import math
from ctypes import addressof, c_char, c_char_p, c_double, c_float, c_int, c_void_p, py_object
from typing import Any, NamedTuple

from temperance.models.gaussian_process.linear_algebra.foreign_calls import DOUBLE, SINGLE

ROUTINES = {
    "potrf": 5, "trtri": 6, "lauum": 5, "lacpy": 7, "trmm": 11, "syrk": 10, "trsv": 8,
    "trmv": 8, "copy": 5, "axpy": 6, "sytrd": 10,
}  # fmt: skip


class Library(NamedTuple):
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
    syrk: Any
    trsv: Any
    trmv: Any
    copy: Any
    axpy: Any
    sytrd: Any


_constants: dict[Any, Any] = {}


def _letter(letter: str) -> int:
    return addressof(_constants.setdefault(letter, c_char(letter.encode())))


@functools.cache
def whole(number: int) -> int:
    """The address of a whole number."""
    return addressof(_constants.setdefault(number, c_int(number)))


LOWER, LEFT, RIGHT, TRANSPOSED, PLAIN, ALL = (_letter(c) for c in ("L", "L", "R", "T", "N", "A"))


@functools.cache
def library(dtype: int) -> Library:
    """The routines of a type of numbers, by XLA's code for it."""
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
    return Library(ctypes.sizeof(real), *(addressof(x) for x in numbers), **routines)


def _address(capsule: Any) -> int:
    """What a Cython module's table of functions points to."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = c_char_p, [py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = c_void_p, [py_object, c_char_p]
    return pointer_of(capsule, name_of(capsule))
