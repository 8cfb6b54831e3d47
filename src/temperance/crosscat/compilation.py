"""What Numba compiles: once for each set of types, kept on disk, without the interpreter's lock.

Sizes are data to a kernel and never part of its type. Divisions follow IEEE 754 and do not raise.

A tool that checks annotations at run time wraps each function before its decorators see it, and
Numba can read only what was written. So a function is compiled from what its wrappers stand around.

A way in from the interpreter takes longer to compile than a small function itself. `compiled` makes
one; `inner` and `reordered` are for functions that compiled ones call, and make none.

Numba looks at the file of a function to see whether what it kept still holds, and not at the files
of the functions that it calls. So what is kept lies in a folder that is named for all the sources
here together, in the user's cache folder or where TEMPERANCE_CACHE says.
"""

import contextlib
import hashlib
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config as numba_config
from numba.core.registry import CPUDispatcher

# Numba makes the names of its settings when it is imported.
config: Any = numba_config
Function = TypeVar("Function", bound=Callable[..., Any])


def _named_for_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _folder() -> Path | None:
    """Where compiled kernels are kept, if anywhere."""
    from platformdirs import user_cache_dir

    chosen = os.environ.get("TEMPERANCE_CACHE", "")
    if chosen.lower() in ("off", "0", "no", "false"):
        return None
    return Path(chosen or user_cache_dir("temperance")) / "numba" / _named_for_sources()


FOLDER = _folder()


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    before = config.CACHE_DIR
    if not before:
        config.CACHE_DIR = str(FOLDER)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def compiled(function: Function) -> Function:
    """The function as machine code; it is called as it was."""
    with _kept():
        made = numba.njit(
            inspect.unwrap(function), cache=FOLDER is not None, nogil=True, error_model="numpy"
        )
    return cast(Function, made)


class _Inner(CPUDispatcher):
    """A function without a way in: the interpreter runs what was written instead."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.py_func(*args, **options)


def _inner(function: Function, fastmath: Any) -> Function:
    made = _Inner(
        inspect.unwrap(function),
        targetoptions={
            "nopython": True, "nogil": True, "error_model": "numpy", "fastmath": fastmath,
            "boundscheck": None, "no_cpython_wrapper": True, "no_cfunc_wrapper": True,
        },
    )  # fmt: skip
    return cast(Function, made)


def inner(function: Function) -> Function:
    """Machine code where a compiled function calls it; anyone else calls what was written."""
    return _inner(function, False)


def reordered(function: Function) -> Function:
    """The same, with sums and products in any order; infinities and NaN keep their meaning."""
    return _inner(function, {"reassoc", "contract", "nsz"})
