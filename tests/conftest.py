"""How every test runs: double precision, strict shapes, checked types, one BLAS thread.

The package flips none of JAX's global flags; the tests do, here, and nowhere else.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

# Read when NumPy, SciPy and JAX are first imported. Two workers with a BLAS pool each would fight
# over two cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Tests compile far more than they run: LLVM is told not to spend time on it. What XLA makes of a
# program, and so what is tested, is the same.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)

import jax
import pytest
from jaxtyping import install_import_hook

# Every annotation in the package is checked at each call, shapes included. This has to come before
# the first import of the package.
install_import_hook("temperance", "beartype.beartype")

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

SEED_VARIABLE = "TEMPERANCE_TEST_SEED"


def base_seed() -> int:
    return int(os.environ.get(SEED_VARIABLE, "0"))


def pytest_report_header() -> str:
    return f"{SEED_VARIABLE}={base_seed()}"


def pytest_configure(config: pytest.Config) -> None:
    """Share compiled programs between workers and between runs, inside the checkout.

    An environment variable, so that the processes which tests start share them too.
    """
    worker_input = getattr(config, "workerinput", None)
    if worker_input is None and config.pluginmanager.has_plugin("cacheprovider"):
        folder = config.cache.mkdir("xla")
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    folder = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    if folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def pytest_collection_finish() -> None:
    """Keep garbage collection from scanning the objects that importing and collecting have made.

    Tracing makes many short-lived objects. Full collections, which scan millions of long-lived
    ones, take a tenth of the tests' time otherwise.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def seed() -> int:
    """The seed of the whole test run: fixed, and changed by TEMPERANCE_TEST_SEED."""
    return base_seed()


@pytest.fixture
def key(seed: int) -> jax.Array:
    """A random key made from `seed`."""
    return jax.random.key(seed)


# A process may have so many pieces of memory at Linux's usual setting; a compiled program takes
# a few, and one too many ends the process.
MOST_MAPS = 65_530


@pytest.fixture(autouse=True, scope="module")
def few_programs() -> Iterator[None]:
    """Compiled programs are let go when there are many."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS // 2:
        jax.clear_caches()
