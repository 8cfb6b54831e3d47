"""Whether a density is fast is read off its program, and written in two stages it always is."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array
from tests.moves.fast_slow import broken_fastness as broken

import temperance as tp
from temperance.models.gaussian_process.fast_regression import FAST
from temperance.moves.fast_slow.program_cost import cost_of

ROWS = 24
GENERATOR = np.random.default_rng(4)
INPUTS = GENERATOR.normal(size=(ROWS, 1))
Y = GENERATOR.normal(size=ROWS)
EXAMPLE = {"log_length": 0.1, "log_noise": -0.4, "log_scale": 0.3}
POSITION = {name: jnp.asarray(value) for name, value in EXAMPLE.items()}


def correlations(log_length: Array) -> Array:
    squares = jnp.asarray((INPUTS - INPUTS.T) ** 2) * jnp.exp(-2.0 * log_length)
    return jnp.exp(-0.5 * squares) + 1e-6 * jnp.eye(ROWS)


def gaussian(root: Array) -> Array:
    z = solve_triangular(root, jnp.asarray(Y), lower=True)
    return -0.5 * jnp.sum(z**2) - jnp.sum(jnp.log(jnp.diagonal(root)))


def badly(position: Any) -> Array:
    """The scale is inside the matrix that is factored."""
    amplitude = jnp.exp(2.0 * position["log_scale"])
    return gaussian(jnp.linalg.cholesky(amplitude * correlations(position["log_length"])))


def well(position: Any) -> Array:
    """The same density, with the scale brought in afterwards."""
    root = jnp.linalg.cholesky(correlations(position["log_length"]))
    return scaled(root, position["log_scale"])


def scaled(root: Array, log_scale: Array) -> Array:
    z = solve_triangular(root, jnp.asarray(Y), lower=True)
    half = jnp.sum(jnp.log(jnp.diagonal(root))) + ROWS * log_scale
    return -0.5 * jnp.sum(z**2) * jnp.exp(-2.0 * log_scale) - half


def target(density: Any) -> tp.Target:
    names = ("log_length", "log_scale")
    return tp.Target(density, example={name: EXAMPLE[name] for name in names})


def test_a_scale_inside_the_factor_is_found_and_named():
    found = tp.fastness(target(badly), "log_scale")
    assert not found.holds
    assert found.fast_factorisations["cholesky"] == 1
    assert "cholesky" not in found.slow_factorisations
    (words,) = found.advice
    assert words.startswith("cholesky")
    assert "log_scale" in words
    assert "log_length" not in words
    assert "not fast" in str(found)
    assert words in str(found)


def test_the_rewritten_density_holds():
    np.testing.assert_allclose(badly(POSITION), well(POSITION), rtol=1e-10)
    found = tp.fastness(target(well), "log_scale")
    assert found.holds
    assert found.advice == ()
    assert found.slow_factorisations == {"cholesky": 1, "triangular_solve": 1}
    assert found.fast_factorisations == {}
    # Two sums of what was factored, and nothing of the size of a row.
    assert found.cache_size <= 4
    assert found.share < 0.01
    assert str(found).startswith("log_scale: fast\n")


def test_only_the_leaf_that_is_to_blame_is_named():
    def density(position: Any) -> Array:
        noise = jnp.exp(2.0 * position["log_noise"])
        root = jnp.linalg.cholesky(correlations(position["log_length"]) + noise * jnp.eye(ROWS))
        return scaled(root, position["log_scale"])

    problem = tp.Target(density, example=EXAMPLE)
    (words,) = tp.fastness(problem, ["log_scale", "log_noise"]).advice
    assert "log_noise" in words
    assert "log_scale" not in words
    assert tp.fastness(problem, "log_scale").holds


def test_equations_at_the_top_alone_say_nothing():
    """A factorisation is inside calls of JAX's own, and of whoever wrapped the density."""
    assert not broken.at_the_top_alone(badly, POSITION)
    assert tp.fastness(target(jax.jit(badly)), "log_scale").fast_factorisations["cholesky"] == 1
    wrapped = jax.custom_jvp(badly)
    wrapped.defjvp(lambda primals, tangents: (badly(*primals), tangents[0]["log_scale"]))
    assert not broken.at_the_top_alone(wrapped, POSITION)
    assert tp.fastness(target(wrapped), "log_scale").fast_factorisations["cholesky"] == 1


def test_a_call_that_mixes_both_is_taken_apart():
    """Blaming a whole call for one of its arguments would find a factorisation in each."""
    fast = ("log_scale",)
    assert broken.whatever_depends(well, POSITION, fast)["cholesky"] == 1
    assert tp.fastness(target(jax.jit(well)), "log_scale").holds


def test_a_factorisation_inside_a_loop_counts_as_often_as_it_runs():
    def density(position: Any) -> Array:
        def one(total: Array, weight: Array) -> tuple[Array, None]:
            matrix = correlations(position["log_length"]) * jnp.exp(position["log_scale"] + weight)
            return total + gaussian(jnp.linalg.cholesky(matrix)), None

        return jax.lax.scan(one, jnp.zeros(()), jnp.arange(3.0))[0]

    found = tp.fastness(target(density), "log_scale")
    assert found.fast_factorisations["cholesky"] == 3


def test_what_nobody_needs_is_not_counted():
    def density(position: Any) -> Array:
        badly(position)
        return well(position)

    assert tp.fastness(target(density), "log_scale").holds


def test_a_solve_says_that_it_is_linear():
    def density(position: Any) -> Array:
        root = jnp.linalg.cholesky(correlations(position["log_length"]))
        rest = jnp.asarray(Y)[:, None] - position["log_scale"] * jnp.ones((1, 4))
        return -0.5 * jnp.sum(solve_triangular(root, rest, lower=True) ** 2)

    found = tp.fastness(target(density), "log_scale")
    assert found.fast_factorisations == {"triangular_solve": 1}
    assert found.slow_factorisations == {"cholesky": 1}
    assert not found.holds
    (words,) = found.advice
    assert words.startswith("triangular_solve")
    assert "linear" in words


def test_a_dear_stage_without_factors_is_named_too():
    design = GENERATOR.normal(size=(200, 5))

    def density(position: Any) -> Array:
        return -(jnp.sum(jnp.asarray(design) @ position["b"]) ** 2) - jnp.sum(position["a"] ** 2)

    found = tp.fastness(tp.Target(density, example={"a": np.zeros(2), "b": np.zeros(5)}), "b")
    assert found.fast_factorisations == {}
    assert not found.holds
    (words,) = found.advice
    assert "dot_general of (200, 5)" in words
    assert "depends on b" in words


@pytest.mark.parametrize("route", ["cholesky", "spectral"])
def test_gaussian_processes_say_that_they_are_fast(route: str):
    problem = tp.fast_gaussian_process(GENERATOR.normal(size=(60, 2)), np.ones(60), route=route)
    found = tp.fastness(problem)
    assert found.holds
    assert found.fast == FAST[route]
    assert found.fast_factorisations == {}
    assert sum(found.slow_factorisations.values()) >= 1
    if route == "cholesky":
        assert tp.fastness(problem, "log_ratio").advice


@pytest.mark.parametrize(
    ("function", "shape", "known"),
    [
        (lambda a: a @ a, (6, 6), 216.0),
        # A factor, and three passes to blank the other triangle.
        (lambda a: jax.lax.linalg.cholesky(a, symmetrize_input=False), (6, 6), 36.0 + 3 * 36.0),
        (lambda a: jax.lax.linalg.triangular_solve(a, a[:, :1], left_side=True), (6, 6), 18.0),
        (lambda a: jax.lax.cond(a[0, 0] > 0, lambda x: x @ x, lambda x: x, a), (6, 6), 217.0),
        (lambda a: jnp.sum(a * 2.0), (6, 5), 60.0),
        (lambda a: a.reshape(-1)[:3], (6, 5), 0.0),
        (lambda a: jax.lax.fori_loop(0, 4, lambda _, x: x * 2.0, a), (7,), 4 * 7 + 4 * 1),
    ],
)
def test_multiplications_are_counted(function: Any, shape: tuple[int, ...], known: float):
    program = jax.make_jaxpr(function)(jnp.ones(shape))
    assert cost_of(program.jaxpr.eqns).work == pytest.approx(known, rel=1e-12)


# -- two stages, written apart -------------------------------------------------------------------


def prepare(slow: dict[str, Array]) -> dict[str, Array]:
    root = jnp.linalg.cholesky(correlations(slow["log_length"]))
    z = solve_triangular(root, jnp.asarray(Y), lower=True)
    return {"form": jnp.sum(z**2), "half": jnp.sum(jnp.log(jnp.diagonal(root)))}


def finish(cache: dict[str, Array], fast: dict[str, Array]) -> Array:
    log_scale = fast["log_scale"]
    return -0.5 * cache["form"] * jnp.exp(-2.0 * log_scale) - cache["half"] - ROWS * log_scale


def test_two_stages_are_the_density_and_hold():
    density = tp.two_stage(prepare, finish, "log_scale")
    named = {name: POSITION[name] for name in ("log_length", "log_scale")}
    np.testing.assert_allclose(density(named), well(named), rtol=1e-12)
    problem = target(density)
    found = tp.fastness(problem)  # it says itself what is fast
    assert found.holds
    assert found.fast == ("log_scale",)
    assert found.cache_size == 2
    tree = tp.sample(
        problem, "plain", tp.ensemble(members=4, base="markov"), num_draws=10, num_warmup=10,
        progress=False,
    )  # fmt: skip
    assert tree["ensemble"]["log_scale"].sizes["member"] == 4


def test_two_stages_with_rows():
    rows = {"x": INPUTS[:, 0], "y": Y}

    def per_row(slow: Any, data: Any) -> tuple[Array, Array]:
        return slow["slope"] * data["x"], data["y"]

    def with_noise(cache: Any, fast: Any) -> Array:
        mean, y = cache
        return -0.5 * (y - mean) ** 2 * jnp.exp(-2.0 * fast["log_noise"]) - fast["log_noise"]

    terms = tp.two_stage(per_row, with_noise, ["log_noise"])
    prior = tp.Gaussian(np.zeros(2), 1.0)

    def draw(key: Any) -> dict[str, Array]:
        log_noise, slope = prior.draw(key)
        return {"log_noise": log_noise, "slope": slope}

    def log_prior(position: Any) -> Array:
        return prior(jnp.stack([position["log_noise"], position["slope"]]))

    problem = tp.Problem(log_prior, terms, rows, draw)
    position = draw(jax.random.key(0))
    wanted = (
        -0.5 * (Y - position["slope"] * INPUTS[:, 0]) ** 2 * jnp.exp(-2.0 * position["log_noise"])
        - position["log_noise"]
    )
    np.testing.assert_allclose(terms(position, rows), wanted, rtol=1e-12)
    found = tp.fastness(problem)
    assert found.fast == ("log_noise",)
    assert found.fast_factorisations == {}
    # Each row's residual is squared again for each noise: no factor, and no gain either.
    assert not found.holds


# -- wrong calls ---------------------------------------------------------------------------------


@pytest.fixture
def as_a_user() -> Iterator[None]:
    """Without the types that tests check, and that users do not."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("fast", "words"),
    [
        ("log_scal", "did you mean 'log_scale'"),
        (["log_length", "log_scale"], "none is left to be slow"),
        (None, "does not say which"),
        ([3], "names of leaves"),
    ],
)
def test_wrong_names_are_refused(fast: Any, words: str):
    with pytest.raises(tp.TemperanceError, match=words):
        tp.fastness(target(well), fast)


@pytest.mark.usefixtures("as_a_user")
def test_what_is_no_problem_is_refused():
    anything: Any = well
    with pytest.raises(tp.TemperanceError, match="wanted a Problem or a Target"):
        tp.fastness(anything, "log_scale")


@pytest.mark.usefixtures("as_a_user")
def test_wrong_stages_are_refused():
    anything: Any = 3
    with pytest.raises(tp.TemperanceError, match="prepare: wanted a function"):
        tp.two_stage(anything, finish, "log_scale")
    with pytest.raises(tp.TemperanceError, match="finish: wanted a function"):
        tp.two_stage(prepare, anything, "log_scale")
    with pytest.raises(tp.TemperanceError, match="at least one leaf"):
        tp.two_stage(prepare, finish, [])
    density = tp.two_stage(prepare, finish, "scale")
    with pytest.raises(tp.TemperanceError, match="fast leaf 'scale': did you mean 'log_scale'"):
        density(POSITION)
    with pytest.raises(tp.TemperanceError, match="a dict of named leaves"):
        density(jnp.zeros(2))
