"""Small loops compile to one kernel, everything else to many, and both compute the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import temperance as tp
from temperance.programs import compiled as program
from temperance.programs.compiled import compiled, forget, small


def walk(x, num_steps):
    """A loop whose body is nothing in particular."""
    return jax.lax.fori_loop(0, num_steps, lambda _, x: jnp.cos(x) + 0.1 * jnp.sum(x**2), x)


def factored(x, num_steps):
    """The same with a routine of LAPACK inside."""
    eye = jnp.eye(3)

    def step(_, x):
        return x + jnp.linalg.cholesky(eye + jnp.outer(x, x))[:, 0]

    return jax.lax.fori_loop(0, num_steps, step, x)


def smallness(function, *args):
    return small(jax.make_jaxpr(function)(*args).jaxpr)


@pytest.mark.parametrize(
    ("function", "size", "expected"),
    [
        (walk, 10, True),
        (walk, program.MOST_WORK + 1, False),
        (factored, 3, False),
    ],
    ids=["small", "large", "library"],
)
def test_what_is_small(function, size, expected):
    assert smallness(function, jnp.ones(size), 3) is expected


@pytest.mark.parametrize(("inner", "expected"), [(10, True), (20, False)])
def test_products_count_their_multiplications(inner, expected):
    rows = 30
    assert inner * rows < program.MOST_WORK > rows * rows
    assert smallness(lambda a: a.T @ a, jnp.ones((inner, rows))) is expected


def test_moving_numbers_is_not_work():
    buffer = jnp.zeros((program.MOST_WORK, 10))
    write = lambda b, row: jax.lax.dynamic_update_index_in_dim(b, jnp.sin(row), 3, 0)  # noqa: E731
    assert smallness(write, buffer, jnp.ones(10))


def test_what_calls_back_to_the_host_is_not_small():
    def told(x):
        jax.debug.callback(print, x)
        return x + 1

    assert not smallness(told, jnp.ones(3))


@pytest.mark.parametrize("function", [walk, factored])
def test_the_answer_is_that_of_the_function(function):
    x = jnp.linspace(0.1, 0.3, 3)
    np.testing.assert_allclose(compiled(function)(x, 5), function(x, 5), rtol=1e-6)


def kernels_asked_for(monkeypatch):
    """How often a program goes out as one kernel."""
    asked: list[str] = []
    original = program._one_kernel

    def counting(function):
        asked.append(function.__name__)
        return original(function)

    monkeypatch.setattr(program, "_one_kernel", counting)
    return asked


def test_a_small_program_is_one_kernel(monkeypatch):
    asked = kernels_asked_for(monkeypatch)
    compiled(walk)(jnp.ones(3), 2)
    compiled(factored)(jnp.ones(3), 2)
    assert asked == ["walk"]


@pytest.mark.parametrize(
    ("function", "level"), [(jnp.sin, 2), (lambda x: jnp.outer(x, x) @ x, 3)], ids=["no", "yes"]
)
def test_products_of_matrices_are_compiled_harder(function, level, monkeypatch):
    asked = []
    jit = jax.jit

    def noting(function, compiler_options=None):
        asked.append((compiler_options or {}).get("xla_backend_optimization_level"))
        return jit(function, compiler_options=compiler_options)

    monkeypatch.setattr(program.jax, "jit", noting)
    np.testing.assert_allclose(compiled(function)(jnp.ones(3)), function(jnp.ones(3)))
    assert {*asked} - {None} == {level}


def test_the_attribute_reaches_the_call():
    text = jax.jit(program._one_kernel(lambda x: [jnp.sin(x)])).lower(jnp.ones(3)).as_text()
    calls = [line for line in text.splitlines() if "xla_cpu_small_call" in line]
    assert len(calls) == 1
    assert " call @" in calls[0]


@pytest.mark.parametrize(
    "ignore",
    [
        lambda x, y, p: (walk(x, 4), jnp.where(p, y, y)),
        lambda x, y, p: (walk(x, 4) + 0 * p.astype(int), y),
        lambda x, y, p: (walk(x, 4), y, p & False),
    ],
    ids=["either", "times zero", "and false"],
)
def test_an_argument_that_turns_out_to_be_of_no_use_does_no_harm(ignore, monkeypatch):
    asked = kernels_asked_for(monkeypatch)
    args = jnp.ones(3), jnp.arange(5.0), jnp.asarray(True)
    for found, expected in zip(compiled(ignore)(*args), ignore(*args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert asked


def test_what_xla_cannot_put_into_one_kernel_runs_as_many(monkeypatch):
    monkeypatch.setattr(program, "LIBRARY", frozenset())
    asked = kernels_asked_for(monkeypatch)
    x = jnp.linspace(0.1, 0.3, 3)
    run = compiled(factored)
    for _ in range(2):
        np.testing.assert_allclose(run(x, 4), factored(x, 4), rtol=1e-6)
    assert asked == ["factored"]


def test_options_that_this_xla_does_not_know_are_done_without(monkeypatch):
    monkeypatch.setattr(program, "OPTIONS", {"xla_no_such_option": True})
    np.testing.assert_allclose(compiled(walk)(jnp.ones(3), 2), walk(jnp.ones(3), 2), rtol=1e-6)


def test_other_errors_are_told(monkeypatch):
    def failing(function):
        def call(*leaves):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")

        return call

    monkeypatch.setattr(program, "_one_kernel", failing)
    with pytest.raises(jax.errors.JaxRuntimeError, match="out of memory"):
        compiled(walk)(jnp.ones(3), 2)


def test_a_program_is_traced_once_for_its_shapes_and_static_parts():
    traced = []

    def function(x, name):
        traced.append(name)
        return {name: x + 1}

    run = compiled(function)
    for value in (1.0, 2.0):
        assert run(jnp.full(3, value), "a")["a"][0] == value + 1
    assert traced == ["a"]
    run(jnp.ones(3), "b")
    run(jnp.ones(4), "b")
    assert traced == ["a", "b", "b"]


def test_the_oldest_program_is_forgotten(monkeypatch):
    monkeypatch.setattr(program, "MOST_PROGRAMS", 2)
    traced = []

    def function(x):
        traced.append(x.shape)
        return x + 1

    run = compiled(function)
    for size in (1, 2, 3, 2, 1):
        run(jnp.ones(size))
    assert traced == [(1,), (2,), (3,), (1,)]


def test_programs_are_forgotten_on_request():
    traced = []

    def function(x):
        traced.append(x.shape)
        return x + 1

    run = compiled(function)
    run(jnp.ones(1))
    forget()
    run(jnp.ones(1))
    assert len(traced) == 2


def test_numpy_arrays_are_traced():
    run = compiled(walk)
    np.testing.assert_allclose(run(np.ones(3), 2), walk(jnp.ones(3), 2), rtol=1e-6)


@pytest.mark.slow
def test_a_run_draws_the_same_as_one_kernel_and_as_many(monkeypatch):
    target = tp.Target(lambda x: -0.5 * jnp.sum(x**2), base=tp.Gaussian([0.0, 0.0], 4.0))
    options = {"num_draws": 3, "num_warmup": 0, "num_rungs": 3, "progress": False}
    asked = kernels_asked_for(monkeypatch)
    forget()
    one = tp.sample(target, **options)
    assert asked == ["run_block"]
    monkeypatch.setattr(program, "MOST_WORK", 0)
    forget()
    many = tp.sample(target, **options)
    assert asked == ["run_block"]
    other = tp.sample(target, seed=1, **options)
    values = [tree["posterior"]["x"].values for tree in (one, many, other)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-9)
    assert not np.allclose(values[0], values[2], rtol=1e-9)
