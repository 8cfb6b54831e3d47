"""The scope of a run: precision, BLAS threads and the compilation cache, put back afterwards.

Importing the package flips no global flag of JAX, and a run leaves none flipped. Inside `scope`:

    precision     double unless single is asked for, whatever JAX's global flag says
    BLAS          one thread: chains are the parallelism, and a Cholesky factor that asks for all
                  cores from several chains at once is slowed down a hundredfold
    compilation   XLA's persistent cache, in the user's cache folder, unless the caller has set one
                  or says no (`cache=False`, or TEMPERANCE_CACHE=off; a path there moves it)
"""

import contextlib
import functools
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax
from jax.experimental.compilation_cache import compilation_cache
from threadpoolctl import threadpool_limits

from temperance.errors import ArgumentError
from temperance.programs.compiled import forget

VARIABLE = "TEMPERANCE_CACHE"
# Below this a program is cheaper to compile than to read from disk.
LEAST_SECONDS = 0.2
MIXED_UP = "Cannot lower jaxpr with verifier errors"

P = ParamSpec("P")
R = TypeVar("R")


def across_precisions(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, called once more with empty caches if JAX mixes up two precisions.

    JAX keeps traces by the identity of what they close over, so a NumPy constant that was traced
    in one precision keeps its dtype in the other, and the program does not lower.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            if MIXED_UP not in str(error):
                raise
        # Only here, since the exception keeps alive what has to be forgotten.
        jax.clear_caches()
        forget()
        return function(*args, **kwargs)

    return call


@contextlib.contextmanager
def scope(precision: str, cache: bool = True) -> Iterator[None]:
    """Everything global that a run needs, for the time of the run."""
    if precision not in ("double", "single"):
        raise ArgumentError(f"precision: wanted 'double' or 'single', got {precision!r}")
    with (
        jax.enable_x64(precision == "double"),
        threadpool_limits(1, "blas"),
        _cached(cache),
        warnings.catch_warnings(),
    ):
        if precision == "single":
            # That 64-bit constants of the model are cut to 32 bits is what was asked for.
            warnings.filterwarnings("ignore", "Explicitly requested dtype", UserWarning)
        yield


def cache_folder() -> Path | None:
    """Where compiled programs are kept between processes; None if they are not."""
    from platformdirs import user_cache_dir

    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() in ("off", "0", "no", "false"):
        return None
    return Path(chosen or user_cache_dir("temperance")) / "xla"


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


@contextlib.contextmanager
def _cached(wanted: bool) -> Iterator[None]:
    folder = cache_folder() if wanted else None
    if folder is None or _setting("jax_compilation_cache_dir") is not None:
        yield
        return
    seconds = _setting("jax_persistent_cache_min_compile_time_secs")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_compilation_cache_dir", None)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", seconds)
        compilation_cache.reset_cache()
