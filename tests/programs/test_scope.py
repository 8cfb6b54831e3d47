"""What a run may touch and what it leaves as it was; what is compiled once and never again."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from tests.shared import small_runs
from tests.shared.small_runs import assert_identical, run, uninterrupted

import temperance as tp
from temperance.engine.loop import traces
from temperance.errors import ArgumentError, InterruptedRunError
from temperance.programs import scope as runtime

ROOT = Path(__file__).parents[2]


def elsewhere(program: str, without: tuple[str, ...] = (), **environment: str) -> Any:
    """The JSON that `program` prints last, in a process of its own."""
    paths = os.pathsep.join([str(ROOT), str(Path(tp.__file__).parents[1])])
    variables = os.environ | {"PYTHONPATH": paths} | environment
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={name: value for name, value in variables.items() if name not in without},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# -- JAX's flags, precision, the cache and BLAS, as a user has them ------------------------------

USER = """
import json, pathlib, sys
import jax, jax.numpy as jnp, numpy as np
from threadpoolctl import threadpool_info
import temperance as tp
from temperance.programs import scope as runtime
from tests.shared import small_runs

# On a fast machine nothing so small takes long enough to be worth keeping.
runtime.LEAST_SECONDS = 0.0

def blas():
    return sorted({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})

inside = []
def terms(x, rows):
    inside.append(blas())
    return small_runs.terms(x, rows)

flags, threads = dict(jax.config.values), blas()
dtypes = {}
for precision in ("double", "single"):
    problem = small_runs.make_problem(terms=terms)
    tree = small_runs.run("plain", problem=problem, move="metropolis", precision=precision)
    dtypes[precision] = [str(tree[name].dtype) for name in ("posterior/mean", "sample_stats/lp")]
changed = [name for name, value in jax.config.values.items() if flags.get(name) != value]
print(json.dumps({
    "dtypes": dtypes,
    "changed": changed,
    "after": str(jnp.zeros(1).dtype),
    "threads": [threads, inside, blas()],
}))
"""


@pytest.mark.slow
def test_a_run_leaves_everything_as_a_user_had_it(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    found = elsewhere(
        USER,
        without=("JAX_COMPILATION_CACHE_DIR",),
        OPENBLAS_NUM_THREADS="2",
        TEMPERANCE_CACHE=str(folder),
    )
    assert found["dtypes"] == {"double": ["float64"] * 2, "single": ["float32"] * 2}
    assert found["changed"] == []
    assert found["after"] == "float32"
    before, inside, after = found["threads"]
    assert before == after == [2]
    assert inside
    assert all(threads == [1] for threads in inside)
    # The loop of each precision, at least, is kept.
    assert len(list((folder / "xla").glob("*run_block*"))) >= 2


@pytest.fixture
def no_cache_yet() -> Iterator[None]:
    """JAX without the folder that the tests share."""
    folder = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()
    yield
    jax.config.update("jax_compilation_cache_dir", folder)
    compilation_cache.reset_cache()


@pytest.mark.usefixtures("no_cache_yet")
@pytest.mark.parametrize(
    ("variable", "wanted", "kept"),
    [("here", True, True), ("off", True, False), ("OFF", True, False), ("here", False, False)],
)
def test_the_cache_is_where_it_is_wanted(
    variable: str, wanted: bool, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TEMPERANCE_CACHE", str(folder) if variable == "here" else variable)
    monkeypatch.setattr(runtime, "LEAST_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)
    seconds = jax.config.jax_persistent_cache_min_compile_time_secs
    number = len(variable) + 2 * wanted  # a program that nobody has compiled
    with runtime.scope("double", wanted):
        jax.jit(lambda x: jnp.sin(x) + number)(jnp.ones(7)).block_until_ready()
    assert bool(list(tmp_path.rglob("*-cache"))) == kept
    assert jax.config.jax_compilation_cache_dir is None
    assert jax.config.jax_persistent_cache_min_compile_time_secs == seconds


def test_a_cache_that_the_user_chose_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPERANCE_CACHE", str(tmp_path / "ours"))
    before = jax.config.jax_compilation_cache_dir
    with runtime.scope("double"):
        assert jax.config.jax_compilation_cache_dir == before
    assert not (tmp_path / "ours").exists()


def test_without_a_word_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEMPERANCE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert runtime.cache_folder() == Path("/somewhere/temperance/xla")


@pytest.mark.parametrize("precision", ["double", "single"])
def test_the_scope_ends_with_an_error_too(precision: str) -> None:
    before = dict(jax.config.values)
    inside = []

    def fail() -> None:
        with runtime.scope(precision):
            inside.append(str(jnp.zeros(1).dtype))
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert inside == ["float64" if precision == "double" else "float32"]
    assert jax.config.values == before
    assert jnp.zeros(1).dtype == "float64"


def test_other_errors_of_the_same_kind_are_not_retried() -> None:
    calls = []

    @runtime.across_precisions
    def fail() -> None:
        calls.append(1)
        raise ArgumentError("mine")

    with pytest.raises(ArgumentError, match="mine"):
        fail()
    assert len(calls) == 1


@pytest.mark.slow
def test_both_precisions_in_one_process_whatever_the_model_closes_over() -> None:
    """JAX may hand the constants of one precision to the programs of the other."""
    rows = np.asarray(small_runs.ROWS)

    def log_density(x: Any) -> Any:
        return -0.5 * jnp.sum((rows - x[0]) ** 2)

    target = tp.Target(log_density, example=np.zeros(1))
    for precision, dtype in [("double", "float64"), ("single", "float32"), ("double", "float64")]:
        tree = tp.sample(
            target, "plain", "metropolis", num_draws=4, num_warmup=0, num_chains=2,
            progress=False, precision=precision,
        )  # fmt: skip
        assert tree["posterior"]["x"].dtype == dtype


# -- devices -------------------------------------------------------------------------------------

DEVICES = """
import json, sys
import jax
from tests.shared import small_runs
tree = small_runs.run("pt", betas=small_runs.BETAS)
arrays = {
    name: tree[name].values.tobytes().hex()
    for name in ("posterior/mean", "sample_stats/lp", "tempering/components")
}
print(json.dumps({"devices": jax.device_count(), "arrays": arrays}))
"""


@pytest.mark.slow
def test_eight_devices_draw_what_one_draws() -> None:
    # Both compiled alike, so that nothing but the number of devices is different.
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    found = elsewhere(DEVICES, XLA_FLAGS=flags)
    assert jax.device_count() == 1
    assert found["devices"] == 8
    tree = run("pt", betas=small_runs.BETAS)
    for name, content in found["arrays"].items():
        assert tree[name].values.tobytes().hex() == content, name


# -- compiled once -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        ("pt", {"seed": 5}),
        ("pt", {"num_draws": 90}),
        ("pt", {"num_warmup": 110}),
        ("pt", {"betas": small_runs.BETAS}),
        ("pt", {"sweeps_per_draw": 5}),
        ("tt", {"seed": 5, "num_draws": 90}),
        ("tt", {"betas": (0.0, 0.3, 0.6, 1.0)}),
        ("plain", {"seed": 5, "num_draws": 90, "num_warmup": 110}),
        ("plain", {"problem": small_runs.make_problem(data=small_runs.ROWS[::-1] + 0.5)}),
        ("hand", {"seed": 5, "num_draws": 90}),
        ("hand", {"method": small_runs.by_hand(0.7)}),
    ],
)
def test_nothing_is_compiled_anew(case: str, changes: dict[str, Any]) -> None:
    first = run(case)  # not a kept result: its programs may have been cleared away since
    before = dict(traces)
    second = run(case, **changes)
    assert traces == before
    one, two = (tree["posterior"].dataset for tree in (first, second))
    assert not one.equals(two) or set(changes) == {"method"}


def test_a_new_shape_is_compiled() -> None:
    """The counter that the tests above rely on does count."""
    before = traces["run"]
    run("plain", num_chains=3, num_draws=2, num_warmup=0)
    assert traces["run"] == before + 1


def test_going_on_from_a_checkpoint_compiles_nothing(tmp_path: Path) -> None:
    run("plain")
    before = dict(traces)
    with pytest.raises(InterruptedRunError):
        run("plain", checkpoint=tmp_path / "run.zarr", max_seconds=1e-9)
    half = run("plain", checkpoint=tmp_path / "run.zarr", num_draws=20)
    whole = run("plain", checkpoint=tmp_path / "run.zarr")
    assert half["posterior"].sizes["draw"] == 20
    assert_identical(whole, uninterrupted("plain"))
    assert traces == before
