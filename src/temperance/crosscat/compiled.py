"""What Numba compiles: once for each set of types, kept on disk, without the interpreter's lock.

A tool that checks annotations at run time wraps each function before its decorators see it, and
Numba can read only what was written. So a function is compiled from what its wrappers stand around.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function as machine code; it is called as it was."""
    return cast(Function, numba.njit(cache=True, nogil=True)(inspect.unwrap(function)))
