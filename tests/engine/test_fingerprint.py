"""A run's identity: the same in another process, another as soon as anything that counts is."""

import dataclasses
import functools
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import temperance
from temperance.engine.fingerprint import differences, fingerprint
from temperance.errors import ArgumentError, DataError

ARGUMENT = jax.ShapeDtypeStruct((3,), jnp.float32)
ARRAY = np.arange(3, dtype=np.float32)

# The model uses everything that prints an address, a name or a let-bound jaxpr.
PROGRAM = """
import json, sys
import jax, jax.numpy as jnp, numpy as np
from temperance.engine.fingerprint import fingerprint

def model(scale, table):
    @jax.custom_vjp
    def doubled(x):
        return 2.0 * x
    doubled.defvjp(lambda x: (doubled(x), None), lambda _, g: (2.0 * g,))
    inner = jax.jit(lambda x: scale * x + jnp.asarray(table))
    def log_density(x):
        y = doubled(x) + inner(x) + inner(jnp.where(x > 0, x, 0.0)) + jnp.where(x > 1, x, 0.0)
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        y = jax.pure_callback(lambda a: np.asarray(a) * table, shape, y)
        y, _ = jax.lax.scan(lambda c, a: (c + a * jnp.asarray(table), None), y, y)
        return jnp.sum(jax.lax.cond(y[0] > 0, jnp.sin, jnp.cos, y))
    return log_density

def identity(table=(0.0, 1.0, 2.0), scale=3.0):
    functions = {"log_density": (model(scale, np.asarray(table, np.float32)),
                                 (jax.ShapeDtypeStruct((3,), jnp.float32),))}
    data = {"x": np.arange(6.0).reshape(3, 2), "y": jnp.arange(3)}
    options = {"betas": np.linspace(0, 1, 50), "move": {"name": "hmc", "steps": 3},
               "then": lambda x: x + scale}
    return fingerprint(functions, data, options, 7)
"""


def run_elsewhere(tmp_path: Path, name: str, padding: str, hash_seed: str) -> dict[str, str]:
    folder = tmp_path / name
    folder.mkdir()
    script = folder / f"{name}.py"
    script.write_text(padding + PROGRAM + "\nprint(json.dumps(identity()))\n")
    source = str(Path(temperance.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": source, "PYTHONHASHSEED": hash_seed, "JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def load_program() -> Callable[..., dict[str, str]]:
    space: dict[str, Any] = {}
    exec(compile(textwrap.dedent(PROGRAM), "here", "exec"), space)
    return space["identity"]


def of_function(function: Callable[..., Any], *arguments: Any) -> dict[str, str]:
    return fingerprint({"f": (function, arguments or (ARGUMENT,))}, ARRAY, {}, 0)


def of_options(**options: Any) -> dict[str, str]:
    return fingerprint({}, ARRAY, options, 0)


def test_same_in_other_processes_files_and_lines(tmp_path: Path) -> None:
    first = run_elsewhere(tmp_path, "one", "", "1")
    second = run_elsewhere(tmp_path, "another", "# moved down\n\n\n", "2")
    assert first == second
    with jax.enable_x64(False):
        assert load_program()() == first
    assert json.loads(json.dumps(first)) == first
    assert "0x7" not in json.dumps(first)


def test_same_after_tracing_caches_are_dropped() -> None:
    identity = load_program()
    before = identity()
    jax.clear_caches()
    assert identity() == before


@pytest.mark.parametrize("change", [{"table": (0.0, 1.0, 2.5)}, {"scale": 3.5}])
def test_a_constant_deep_inside_is_seen(change: dict[str, Any]) -> None:
    identity = load_program()
    assert any("'log_density'" in line for line in differences(identity(), identity(**change)))


def closing_over(table: np.ndarray, where: str) -> Callable[[Any], Any]:
    def plain(x: Any) -> Any:
        return x * jnp.asarray(table)

    @jax.custom_jvp
    def custom(x: Any) -> Any:
        return plain(x)

    custom.defjvp(lambda p, t: (custom(*p), t[0]))
    return {
        "top": plain,
        "jit": jax.jit(plain),
        "custom_jvp": custom,
        "scan": lambda x: jax.lax.scan(lambda c, _: (plain(c), None), x, None, length=2)[0],
        "cond": lambda x: jax.lax.cond(x[0] > 0, plain, lambda a: a, x),
        "vmap": jax.vmap(jax.jit(lambda x: x + jnp.sum(jnp.asarray(table)))),
        "checkpoint": jax.checkpoint(jax.jit(plain)),
        "callback": lambda x: jax.pure_callback(lambda a: np.asarray(a) * table, x, x),
    }[where]


@pytest.mark.parametrize(
    "where", ["top", "jit", "custom_jvp", "scan", "cond", "vmap", "checkpoint", "callback"]
)
def test_closed_over_arrays_count_by_value(where: str) -> None:
    once, again = (of_function(closing_over(ARRAY.copy(), where)) for _ in range(2))
    other = of_function(closing_over(ARRAY + np.float32(1e-6), where))
    assert once == again
    assert differences(once, other) == [
        "the model function 'f': other values of what it closes over"
    ]


def test_twin_without_nested_constants_would_not_see_them(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["temperance.engine.fingerprint"]
    describe = module._describe_array
    monkeypatch.setattr(module, "_constants", lambda closed: [describe(c) for c in closed.consts])
    once = of_function(closing_over(ARRAY, "callback"))
    other = of_function(closing_over(ARRAY + 1, "callback"))
    assert differences(once, other) == []


def test_formula_is_seen_and_names_are_not() -> None:
    def first(x: Any) -> Any:
        return jnp.sum(x**2)

    def second(x: Any) -> Any:
        return jnp.sum(x**2)

    assert of_function(first) == of_function(second)
    assert of_function(jax.jit(first)) == of_function(jax.jit(second))
    lines = differences(of_function(first), of_function(lambda x: jnp.sum(x**3)))
    assert lines == ["the model function 'f': another formula"]


def test_argument_shapes_count_and_their_values_do_not() -> None:
    def total(x: Any) -> Any:
        return jnp.sum(x)

    assert of_function(total, jnp.zeros(3)) == of_function(total, jnp.ones(3))
    assert of_function(total, jnp.zeros(3)) != of_function(total, jnp.zeros(4))


def test_data_value_shape_dtype_and_structure_are_seen() -> None:
    def of(data: Any) -> dict[str, str]:
        return fingerprint({}, data, {}, 0)

    with jax.enable_x64(True):
        wide = of({"x": jnp.zeros(3), "y": jnp.ones(2)})
    with jax.enable_x64(False):
        old = of({"x": np.zeros(3), "y": np.ones(2)})
        check_data_against(old, wide, of)


def check_data_against(
    old: dict[str, str], wide: dict[str, str], of: Callable[[Any], dict[str, str]]
) -> None:
    assert old == of({"y": np.ones(2), "x": np.zeros(3)})
    flipped = np.zeros(3)
    flipped[1] = -0.0
    assert differences(old, of({"x": flipped, "y": np.ones(2)})) == ["the data ['x']: other values"]
    assert differences(old, of({"x": np.zeros(4), "y": np.ones(2)})) == [
        "the data ['x']: float64[3] in the checkpoint, float64[4] now"
    ]
    assert differences(old, of({"x": np.zeros(3, np.int64), "y": np.ones(2)}))
    assert any("structure" in line for line in differences(old, of({"x": np.zeros(3)})))
    assert of((np.ones(2), np.ones(2))) != of([np.ones(2), np.ones(2)])
    assert of(np.asfortranarray(np.arange(6.0).reshape(2, 3))) == of(np.arange(6.0).reshape(2, 3))
    assert differences(old, wide) == [
        "whether 64-bit numbers are enabled: false in the checkpoint, true now"
    ]


def add(x: Any, y: Any) -> Any:
    return x + y


@dataclasses.dataclass
class Step:
    size: float
    scales: np.ndarray


def test_options_are_named_with_both_values() -> None:
    lines = differences(of_options(num_chains=4, thin=1), of_options(num_chains=8, keep="all"))
    assert lines == [
        "the option 'keep': absent in the checkpoint, \"all\" now",
        "the option 'num_chains': 4 in the checkpoint, 8 now",
        "the option 'thin': 1 in the checkpoint, absent now",
    ]


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        ((1, 2), [1, 2], [1, 3]),
        (np.int64(4), 4, 5),
        ({"b": 1, "a": {2, 3}}, {"a": {3, 2}, "b": 1}, {"a": {3, 4}, "b": 1}),
        (np.arange(3.0), np.arange(3.0), np.arange(3.0) + 1),
        (np.arange(99.0), np.arange(99.0), np.arange(99.0) + 1),
        (Step(0.1, ARRAY), Step(0.1, ARRAY.copy()), Step(0.1, ARRAY + 1)),
        (lambda x: x + 1, lambda x: x + 1, lambda x: x + 2),
        (functools.partial(add, 1), functools.partial(add, 1), functools.partial(add, 2)),
    ],
)
def test_options_count_by_value(one: Any, same: Any, other: Any) -> None:
    assert of_options(option=one) == of_options(option=same)
    assert len(differences(of_options(option=one), of_options(option=other))) == 1


def test_seed_is_seen() -> None:
    def of(seed: Any) -> dict[str, str]:
        return fingerprint({}, ARRAY, {}, seed)

    assert of(0) != of(1)
    assert differences(of(3), of(4)) == ["the seed: 3 in the checkpoint, 4 now"]
    assert of(jax.random.key(3)) == of(jax.random.key(3))
    assert of(jax.random.key(3)) != of(jax.random.key(4))


def test_versions_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    old = of_options()
    monkeypatch.setattr("temperance.engine.fingerprint.__version__", "9.9")
    assert differences(old, of_options()) == [
        f"the version of temperance: {old['package']} in the checkpoint, 9.9 now"
    ]


def test_what_has_no_content_is_refused() -> None:
    with pytest.raises(ArgumentError, match="the option 'move' is a object"):
        of_options(move=object())
    with pytest.raises(DataError, match="arrays of numbers"):
        fingerprint({}, np.array([object()]), {}, 0)
