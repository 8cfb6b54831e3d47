"""Gaussian processes, exactly: the factor, the terms, their sum and its gradient."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core
from scipy.stats import multivariate_normal
from tests.models.gaussian_process.broken_kernels import Matern32WithTheSlopeOfMatern52

import temperance as tp
from temperance.errors import TermsError
from temperance.models.gaussian_process.kernels import KERNELS, AbstractKernel
from temperance.models.gaussian_process.linear_algebra import lapack
from temperance.models.gaussian_process.linear_algebra.factorisation import (
    _inverted,
    cuts,
    inverted,
    whitened,
    whole,
)
from temperance.problems.checks import check_problem
from temperance.problems.problem import Problem, densities_of
from temperance.programs.compiled import equations
from temperance.testing.laws import check_terms, check_vmap

RNG = np.random.default_rng(3)
ROWS = 200  # more than one panel
FEW_ROWS = 6
INPUTS = RNG.normal(size=(ROWS, 3))
Y = np.sin(INPUTS[:, 0]) + 0.1 * RNG.normal(size=ROWS)
POSITION = {
    "log_length": jnp.asarray([0.1, 0.7, -0.2]),
    "log_scale": jnp.asarray(0.3),
    "log_noise": jnp.asarray(-1.1),
}
KERNEL = [pytest.param(kernel(), id=name) for name, kernel in KERNELS.items()]


def likelihood(problem: Problem) -> Callable[..., Any]:
    assert problem.log_likelihood is not None
    return problem.log_likelihood


def by_hand(kernel: AbstractKernel, position: Any, inputs: np.ndarray, jitter: float = 1e-8):
    """The covariance, entry by entry."""
    length = np.exp(position["log_length"])
    squares = np.sum(((inputs[:, None] - inputs[None]) / length) ** 2, -1)
    r = np.sqrt(squares)
    k = {
        "SquaredExponential": np.exp(-squares / 2),
        "Matern32": (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
        "Matern52": (1 + np.sqrt(5) * r + 5 * squares / 3) * np.exp(-np.sqrt(5) * r),
    }[type(kernel).__name__]
    noise = np.exp(2 * position["log_noise"]) + jitter
    return np.exp(2 * position["log_scale"]) * k + noise * np.eye(len(inputs))


# The factor.


def test_the_known_constant_of_five_rows():
    """T6 of the ensemble paper's covariance, without the constant of 2 pi."""
    i = np.arange(1, 6)
    z = np.sin(i[:, None] * np.array([1.0, 2.0]))
    differences = (z[:, None] - z[None]) * np.array([0.7, 0.4])
    correlation = 1.0 + np.exp(-np.sum(differences**2, -1)) + 0.01**2 * np.eye(5)
    y = jnp.cos(1.5 * jnp.arange(5))
    panels = (jnp.asarray(1.3**2 * correlation),)
    for white, diagonal in (
        whitened(panels, y, jnp.asarray(0.5**2)),
        inverted(panels, y, jnp.asarray(0.5**2))[1:3],
    ):
        value = -0.5 * jnp.sum(white**2) - jnp.sum(jnp.log(diagonal))
        np.testing.assert_allclose(value, -3.4946412310, atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 129, 200, 301])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_inverse_at_sizes_around_every_cut(n: int, dtype: Any):
    draws = np.random.default_rng(n).normal(size=(n, n + 3))
    matrix = (draws @ draws.T / n).astype(dtype)
    y = np.arange(n).astype(dtype) / n
    panels = tuple(jnp.asarray(matrix[a:b, a:]) for a, b in cuts(n))
    np.testing.assert_array_equal(whole(panels), np.triu(matrix) + np.triu(matrix, 1).T)
    arguments = panels, jnp.asarray(y), jnp.asarray(0.5, dtype)
    full = matrix.astype(float) + 0.5 * np.eye(n)
    factor = np.linalg.cholesky(full)
    tolerance = (
        {"rtol": 1e-10, "atol": 1e-11} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    )
    wanted = np.linalg.solve(factor, y), np.diag(factor), np.linalg.solve(full, y)
    # By LAPACK, and as elsewhere than on a CPU.
    for function in (inverted, _inverted):
        inverse, *vectors = jax.jit(function)(*arguments)
        np.testing.assert_allclose(np.triu(inverse), np.triu(np.linalg.inv(full)), **tolerance)
        for vector, known in zip(vectors, wanted, strict=True):
            np.testing.assert_allclose(vector, known, **tolerance)
            assert vector.dtype == inverse.dtype == dtype


def test_threads_share_matrices_out_and_change_no_bit(monkeypatch: pytest.MonkeyPatch):
    n = lapack.LEAST_FOR_THREADS
    draws = np.random.default_rng(0).normal(size=(7, n, n + 3))
    matrices = draws @ np.swapaxes(draws, 1, 2) / n
    matrices[3, 5, 5] = -1.0  # the others are not to mind
    y = jnp.ones((7, n))
    found = []
    for cores in (1, 2, 4):
        monkeypatch.setattr(lapack, "_num_cores", lambda cores=cores: cores)
        lapack._pool.cache_clear()
        for function in (inverted, whitened):
            batch = jax.vmap(lambda m, v, f=function: f((m,), v, jnp.asarray(0.5)))
            found.append(jax.block_until_ready(batch(jnp.asarray(matrices), y)))
    lapack._pool.cache_clear()
    for one, other in zip(found[:2] * 2, found[2:], strict=True):
        vectors = [[np.asarray(leaf) for leaf in part if leaf.ndim == 2] for part in (one, other)]
        jax.tree.map(np.testing.assert_array_equal, *vectors)
    assert np.isnan(found[0][1][3]).all()
    assert np.isfinite(np.delete(np.asarray(found[0][1]), 3, axis=0)).all()


# Terms and their sum.


@pytest.mark.parametrize("kernel", KERNEL)
def test_terms_are_those_of_the_multivariate_normal(kernel: AbstractKernel):
    problem = tp.gaussian_process(INPUTS, Y, kernel=kernel)
    covariance = by_hand(kernel, POSITION, INPUTS)
    terms = jax.jit(problem.terms)(POSITION, problem.data)
    for n in (1, 7, ROWS):
        density = multivariate_normal(np.zeros(n), covariance[:n, :n]).logpdf(Y[:n])
        np.testing.assert_allclose(jnp.sum(terms[:n]), density, rtol=1e-11)
        some = jax.tree.map(lambda rows, n=n: rows[:n], problem.data)
        np.testing.assert_allclose(
            jax.jit(likelihood(problem))(POSITION, some), density, rtol=1e-11
        )
    few = jax.tree.map(lambda rows: rows[:FEW_ROWS], problem.data)
    check_terms(problem.terms, few, jax.tree.map(lambda v: v[None], POSITION))


def test_a_sum_that_is_not_that_of_the_terms_is_said():
    good = tp.gaussian_process(INPUTS, Y)
    fields = {"log_prior": good.log_prior, "terms": good.terms, "data": good.data}
    for wrong in (
        lambda x, data: likelihood(good)(x, data) + 1.0,
        lambda x, data: good.terms(x, data),
        lambda x: x,
    ):
        problem = Problem(
            **fields, draw_prior=good.draw_prior, independent=False, log_likelihood=wrong
        )
        with pytest.raises(TermsError, match="sum of the terms"):
            check_problem(problem, densities_of(problem))
    check_problem(good, densities_of(good))


# Gradients.


def both_gradients(kernel: AbstractKernel, position: Any, inputs: np.ndarray, y: np.ndarray):
    problem = tp.gaussian_process(inputs, y, kernel=kernel)
    ours = jax.jit(jax.grad(likelihood(problem)))(position, problem.data)
    theirs = jax.jit(jax.grad(lambda x: jnp.sum(problem.terms(x, problem.data))))(position)
    return ours, theirs


@pytest.mark.parametrize("kernel", KERNEL)
def test_the_gradient_is_that_of_the_terms_and_of_differences(kernel: AbstractKernel):
    # Two rows with equal inputs, where a distance has no derivative.
    inputs = np.concatenate([INPUTS, INPUTS[:2]])
    y = np.concatenate([Y, Y[:2] + 0.1])
    ours, theirs = both_gradients(kernel, POSITION, inputs, y)
    problem = tp.gaussian_process(inputs, y, kernel=kernel)
    density = jax.jit(likelihood(problem))
    for name, value in POSITION.items():
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-9)
        for index in np.ndindex(value.shape):
            step = 1e-5
            up, down = (
                density(POSITION | {name: value.at[index].add(sign * step)}, problem.data)
                for sign in (1, -1)
            )
            np.testing.assert_allclose((up - down) / (2 * step), ours[name][index], rtol=1e-6)


def test_a_slope_of_another_kernel_is_rejected():
    ours, _ = both_gradients(Matern32WithTheSlopeOfMatern52(), POSITION, INPUTS, Y)
    right, _ = both_gradients(tp.Matern32(), POSITION, INPUTS, Y)
    assert not np.allclose(ours["log_length"], right["log_length"], rtol=1e-2)


def test_derivatives_in_the_data_and_forwards():
    problem = tp.gaussian_process(INPUTS, Y)
    for name in ("inputs", "y"):
        through = [
            jax.jit(jax.grad(lambda d, f=f: jnp.sum(f(POSITION, d))))(problem.data)[name]
            for f in (likelihood(problem), problem.terms)
        ]
        np.testing.assert_allclose(*through, rtol=1e-9, atol=1e-9)
    direction = jax.tree.map(jnp.ones_like, POSITION)
    along = jax.jit(
        lambda x: jax.jvp(lambda x: likelihood(problem)(x, problem.data), (x,), (direction,))[1]
    )
    forwards = along(POSITION)
    gradient = jax.jit(jax.grad(likelihood(problem)))(POSITION, problem.data)
    np.testing.assert_allclose(forwards, sum(jnp.sum(g) for g in gradient.values()), rtol=1e-10)


@pytest.mark.slow
def test_the_gradient_inside_programs():
    problem = tp.gaussian_process(INPUTS[:20], Y[:20])
    gradient = jax.value_and_grad(lambda x: likelihood(problem)(x, problem.data))
    wanted = jax.jit(gradient)(POSITION)
    batch = jax.tree.map(lambda v: jnp.stack([v, v + 0.1, v - 0.1]), POSITION)
    several = jax.tree.map(lambda v: v[:, None], batch)
    check_vmap(gradient, batch)
    check_vmap(lambda x: problem.terms(x, problem.data), batch)
    found = [
        gradient(POSITION),
        jax.lax.cond(True, gradient, lambda _: jax.tree.map(jnp.zeros_like, wanted), POSITION),
        jax.tree.map(lambda v: v[0], jax.lax.map(gradient, batch)),
        jax.lax.scan(lambda _, x: (gradient(x), None), wanted, batch, reverse=True)[0],
        jax.tree.map(lambda v: v[0, 0], jax.vmap(jax.vmap(gradient))(several)),
        jax.tree.map(lambda v: v[0, 0], jax.lax.map(jax.vmap(gradient), several)),
    ]
    for one in found:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), one, wanted)


@pytest.mark.parametrize("num_inputs", [1, 30])
def test_no_array_is_larger_than_the_matrix(num_inputs: int):
    n = 400
    problem = tp.gaussian_process(RNG.normal(size=(n, num_inputs)), RNG.normal(size=n))
    position = jax.eval_shape(problem.draw_prior, jax.random.key(0))
    traced = jax.make_jaxpr(jax.value_and_grad(likelihood(problem)))(position, problem.data)
    sizes = [
        v.aval.size for e in equations(traced.jaxpr) for v in e.outvars if hasattr(v.aval, "size")
    ]
    assert isinstance(traced, core.ClosedJaxpr)
    assert n**2 <= max(sizes) <= n**2 + n


# Where there is no density.

GRADIENT = eqx.filter_jit(lambda f, x, data: jax.value_and_grad(f)(x, data))
TERMS = eqx.filter_jit(lambda f, x, data: f(x, data))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "change",
    [
        {"log_noise": np.nan},
        {"log_length": np.full(3, np.nan)},
        {"log_length": np.full(3, -1e4)},
        {"log_scale": 1e4},
        {"log_scale": -1e4},
        {"log_noise": 1e4},
        {"log_noise": -np.inf, "log_length": np.full(3, 9.0)},
    ],
)
def test_no_density_is_minus_infinity_and_never_nan(change: dict[str, Any], dtype: Any):
    data = {"inputs": jnp.asarray(INPUTS, dtype), "y": jnp.asarray(Y, dtype)}
    problem = tp.gaussian_process(INPUTS, Y, jitter=0.0)
    position = jax.tree.map(lambda v: jnp.asarray(v, dtype), POSITION | change)
    value, gradient = GRADIENT(likelihood(problem), position, data)
    terms = TERMS(problem.terms, position, data)
    assert value == jnp.sum(terms) == -np.inf
    assert not np.isnan(terms).any()
    assert all((g == 0).all() for g in jax.tree.leaves(gradient))


def test_rows_before_a_matrix_breaks_down_keep_their_terms():
    inputs = np.concatenate([INPUTS, INPUTS[:1], INPUTS[:3]])
    problem = tp.gaussian_process(inputs, np.ones(len(inputs)), jitter=0.0)
    position = POSITION | {"log_noise": jnp.asarray(-np.inf)}
    terms = problem.terms(position, problem.data)
    before = jax.tree.map(lambda rows: rows[:ROWS], problem.data)
    np.testing.assert_allclose(terms[:ROWS], problem.terms(position, before), rtol=1e-6)
    assert np.isfinite(terms[:ROWS]).all()
    assert (terms[ROWS:] == -np.inf).all()
