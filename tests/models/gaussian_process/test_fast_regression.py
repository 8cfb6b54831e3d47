"""Gaussian processes with fast variables: both routes, their stages, gradients and priors."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.models.gaussian_process.broken_fast_regression import (
    CorrelatedAsIfNot,
    CorrelatedByTheRoot,
    PriorAtTheRatio,
    form_without_the_inverse,
    gradient_with_the_ratio_held,
    reduced_without_turning_y,
)

import temperance as tp
from temperance.models.gaussian_process import fast_likelihood as fast_routes
from temperance.models.gaussian_process.fast_likelihood import ROUTES
from temperance.models.gaussian_process.fast_regression import FastGaussianProcessPrior
from temperance.models.gaussian_process.kernels import KERNELS
from temperance.models.gaussian_process.route_costs import chosen_route, dearer
from temperance.models.gaussian_process.route_pilot import piloted_route
from temperance.moves.fast_slow.two_stage import counted, stages
from temperance.problems.checks import check_problem
from temperance.problems.problem import densities_of
from temperance.problems.slow_fast_vector import Fork
from temperance.testing.laws import check_terms, check_vmap

RNG = np.random.default_rng(4)
INPUTS = RNG.normal(size=(15, 2))
Y = np.sin(INPUTS[:, 0]) + 0.3 * RNG.normal(size=15)
NAMES = ("log_length", "log_scale", "log_noise")
HERE = (np.array([0.2, -0.1]), 0.4, -0.9)
LIBRARY = {
    "cholesky", "cond", "eigh", "ffi_call", "platform_index", "triangular_solve", "tridiagonal",
}  # fmt: skip


def made(*args: Any, **options: Any) -> Any:
    return tp.fast_gaussian_process(*args, **options)


def at(route: str, log_length: Any, log_scale: float, log_noise: float) -> dict[str, jax.Array]:
    """A position of a route, from what it means."""
    rest = ("log_noise", log_noise)
    if route == "cholesky":
        rest = ("log_ratio", log_noise - log_scale)
    pairs = (("log_length", log_length), ("log_scale", log_scale), rest)
    return {name: jnp.asarray(value, float) for name, value in pairs}


def value(problem: Any, *where: Any) -> float:
    position = at(problem.terms.route, *where)
    return float(jax.jit(problem.log_likelihood)(position, problem.data))


def covariance(problem: Any, log_length: Any, log_scale: float, log_noise: float) -> np.ndarray:
    """S, entry by entry, in extended precision but for the kernel."""
    data: Any = problem.data
    x = data["inputs"]
    squares = np.sum(((x[:, None] - x[None]) / np.exp(log_length)) ** 2, -1)
    k = np.asarray(problem.terms.kernel(jnp.asarray(squares))).astype(np.longdouble)
    own = np.eye(len(x), dtype=np.longdouble)
    inner = problem.terms.constant**2 + k + problem.terms.nugget**2 * own
    return np.exp(2 * np.longdouble(log_scale)) * inner + np.exp(2 * np.longdouble(log_noise)) * own


def dense(s: np.ndarray, y: np.ndarray) -> float:
    """The log density by a factor found row by row in extended precision."""
    n = len(y)
    factor, z = np.zeros((n, n), np.longdouble), np.zeros(n, np.longdouble)
    for i in range(n):
        for j in range(i):
            factor[i, j] = (s[i, j] - factor[i, :j] @ factor[j, :j]) / factor[j, j]
        factor[i, i] = np.sqrt(s[i, i] - factor[i, :i] @ factor[i, :i])
        z[i] = (y[i] - factor[i, :i] @ z[:i]) / factor[i, i]
    logs = np.log(np.diag(factor)) + 0.5 * np.log(2 * np.longdouble(np.pi))
    return float(-0.5 * z @ z - logs.sum())


# Values.


def test_the_known_constant_of_five_rows():
    """T6, given without the constant of 2 pi, by five ways."""
    i = np.arange(1, 6)
    z = np.sin(i[:, None] * np.array([1.0, 2.0]))
    y = np.cos(1.5 * np.arange(5))
    where = -0.5 * np.log(2.0) - np.log([0.7, 0.4]), np.log(1.3), np.log(0.5)
    constant = 2.5 * np.log(2 * np.pi)
    for route in ROUTES:
        problem = made(z, y, route=route)
        terms = problem.terms(at(route, *where), problem.data)
        s = covariance(problem, *where)
        values, vectors = np.linalg.eigh(np.asarray(s - 0.25 * np.eye(5), float) / 1.69)
        spread, u = 1.69 * values + 0.25, vectors.T @ y
        by_eigenvectors = -0.5 * np.sum(np.log(spread)) - 0.5 * np.sum(u**2 / spread)
        for found in (value(problem, *where), float(jnp.sum(terms)), dense(s, y)):
            np.testing.assert_allclose(found + constant, -3.4946412310, atol=1e-9)
        np.testing.assert_allclose(by_eigenvectors, -3.4946412310, atol=1e-9)


ORDINARY = [
    HERE,
    (HERE[0], 12.0, -0.9),
    (HERE[0], -14.0, -0.9),
    (HERE[0], 0.4, 15.0),
    (np.array([4.0, 5.0]), 0.4, -1.0),
]
PLACES = {
    "huge and small": ({}, ORDINARY),
    "no noise to speak of": ({"nugget": 0.1}, [(HERE[0], 0.4, -18.0)]),
    "short lengths": ({"constant": 3.0}, [(np.array([-4.0, -5.0]), 0.4, -1.0)]),
    "no constant, no nugget": ({"constant": 0.0, "nugget": 0.0}, [HERE]),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("options", "places"), PLACES.values(), ids=PLACES.keys())
def test_both_routes_are_the_dense_computation(
    kernel: str, options: dict[str, float], places: list[Any]
):
    # Rows with equal inputs, and one with the same y as well.
    inputs, y = np.concatenate([INPUTS, INPUTS[:3]]), np.concatenate([Y, Y[:1], [0.7, -0.2]])
    for route in ROUTES:
        problem = made(inputs, y, kernel=kernel, route=route, **options)
        both = jax.jit(lambda x, p=problem: (p.log_likelihood(x, p.data), p.terms(x, p.data)))
        for where in places:
            known = dense(covariance(problem, *where), y)
            found, terms = both(at(route, *where))
            np.testing.assert_allclose(found, known, rtol=1e-10)
            np.testing.assert_allclose(jnp.sum(terms), known, rtol=1e-10)


def test_terms_look_back_alone_and_sum_to_the_likelihood():
    for route in ROUTES:
        problem = made(INPUTS[:6], Y[:6], kernel="matern32", route=route)
        position = at(route, *HERE)
        check_terms(problem.terms, problem.data, jax.tree.map(lambda v: v[None], position))
        check_problem(problem, densities_of(problem))
        first = jax.tree.map(lambda rows: rows[:1], problem.data)
        np.testing.assert_allclose(
            problem.log_likelihood(position, first), problem.terms(position, first)[0], rtol=1e-12
        )


def test_y_of_zeros_has_a_form_too():
    for route in ROUTES:
        problem = made(INPUTS, 0.0 * Y, route=route)
        known = dense(covariance(problem, *HERE), 0.0 * Y)
        np.testing.assert_allclose(value(problem, *HERE), known, rtol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"log_scale": np.nan},
        {"log_scale": 1e4},
        {"log_length": np.full(2, np.nan)},
        {"log_noise": 1e4},
        {"log_noise": -np.inf, "log_length": np.full(2, 9.0)},
    ],
)
@pytest.mark.parametrize("route", ROUTES)
def test_no_density_is_minus_infinity_and_never_nan(route: str, change: dict[str, Any]):
    problem = made(INPUTS, Y, constant=0, nugget=0, route=route)
    where = [change.get(name, known) for name, known in zip(NAMES, HERE, strict=True)]
    both = jax.jit(jax.value_and_grad(problem.log_likelihood))
    found, gradient = both(at(route, *where), problem.data)
    assert found == -np.inf
    assert all((g == 0).all() for g in jax.tree.leaves(gradient))


# The stages: what is done once for all members, and what for each of them.


def apart(problem: Any) -> Any:
    densities = densities_of(problem)
    fork = Fork.of(jnp.zeros(densities.layout.dimension), problem.terms.fast, densities.layout)
    vector = densities.layout.ravel(at(problem.terms.route, *HERE))
    slow, fast = fork.split(vector)

    def density(slow: Any, fast: Any) -> Any:
        return densities.whole(fork.join(slow, fast))

    return stages(density, slow, fast), densities, fork, slow, fast


def numbers_kept(program: Any) -> int:
    return sum(v.aval.size for v in program.jaxpr.outvars)


def test_by_cholesky_a_scale_costs_a_few_sums():
    problem = made(INPUTS, Y, route="cholesky")
    found, densities, fork, slow, fast = apart(problem)
    assert not LIBRARY & set(counted(found.fast))
    assert "scan" not in counted(found.fast)
    assert counted(found.slow)["ffi_call"] == 1
    assert numbers_kept(found.slow) <= 6
    assert max(v.aval.size for e in found.fast.jaxpr.eqns for v in e.outvars) <= 3
    members = fast[None, :] + jnp.linspace(-2.0, 2.0, 7)[:, None]
    several = jax.vmap(found.finish, in_axes=(None, 0))(found.prepare(slow), members)
    one_by_one = jax.lax.map(lambda member: densities.whole(fork.whole(slow, member)), members)
    np.testing.assert_allclose(several, one_by_one, rtol=1e-12)


def test_by_tridiagonal_form_scale_and_noise_cost_one_pass_over_the_rows():
    problem = made(INPUTS, Y, route="spectral")
    found, densities, fork, slow, fast = apart(problem)
    assert not LIBRARY & set(counted(found.fast))
    assert counted(found.fast)["scan"] == 1
    assert counted(found.slow)["ffi_call"] == 1
    n = len(Y)
    assert numbers_kept(found.slow) <= 2 * n + 4
    assert max(v.aval.size for e in found.fast.jaxpr.eqns for v in e.outvars) <= n
    members = fast[None, :] + jnp.asarray(np.random.default_rng(0).normal(size=(7, 2)))
    finish = jax.vmap(found.finish, in_axes=(None, 0))
    several = finish(found.prepare(slow), members)
    one_by_one = jax.lax.map(lambda member: densities.whole(fork.whole(slow, member)), members)
    np.testing.assert_allclose(several, one_by_one, rtol=1e-12)
    # Members lie on the axis of the vector that the recursion carries.
    traced = jax.make_jaxpr(finish)(found.prepare(slow), members)
    (scan,) = [e for e in traced.jaxpr.eqns if e.primitive.name == "scan"]
    assert (7,) in [v.aval.shape for v in scan.outvars]


# Gradients.


def plain(problem: Any, position: Any, data: Any) -> Any:
    """The log likelihood as one would write it, for JAX to differentiate."""
    terms = problem.terms
    x = data["inputs"] * jnp.exp(-position["log_length"])[None, :]
    k = terms.kernel(jnp.sum((x[:, None] - x[None]) ** 2, -1))
    log_noise = position.get("log_noise")
    if log_noise is None:
        log_noise = position["log_ratio"] + position["log_scale"]
    own = jnp.eye(len(x))
    inner = terms.constant**2 + k + terms.nugget**2 * own
    s = jnp.exp(2 * position["log_scale"]) * inner + jnp.exp(2 * log_noise) * own
    return jax.scipy.stats.multivariate_normal.logpdf(data["y"], jnp.zeros(len(x)), s)


def gradients(route: str, kernel: str) -> tuple[Any, Any]:
    inputs, y = np.concatenate([INPUTS, INPUTS[:1]]), np.concatenate([Y, [0.7]])
    problem = made(inputs, y, kernel=kernel, nugget=0.1, route=route)
    position = at(route, *HERE)
    ours = jax.jit(jax.grad(problem.log_likelihood))(position, problem.data)
    theirs = jax.jit(jax.grad(lambda x: plain(problem, x, problem.data)))(position)
    return ours, theirs


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_is_that_of_the_plain_density_and_of_differences(route: str, kernel: str):
    ours, theirs = gradients(route, kernel)
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-9)
    problem = made(INPUTS, Y, kernel=kernel, route=route)
    density = jax.jit(problem.log_likelihood)
    gradient = jax.jit(jax.grad(problem.log_likelihood))(at(route, *HERE), problem.data)
    step = 1e-5
    for name in ours.keys() - {"log_length"}:
        position = at(route, *HERE)
        up, down = (
            density(position | {name: position[name] + sign * step}, problem.data)
            for sign in (1, -1)
        )
        np.testing.assert_allclose((up - down) / (2 * step), gradient[name], rtol=1e-6, atol=1e-6)


def test_a_gradient_with_the_ratio_held_is_rejected():
    problem = made(INPUTS, Y, route="spectral")
    position = at("spectral", *HERE)
    theirs = jax.jit(jax.grad(lambda x: plain(problem, x, problem.data)))(position)
    terms = problem.terms
    given = *terms._fixed(), terms._arguments(position, problem.data)
    for function, slip in (
        (fast_routes.value_and_gradient, False),
        (gradient_with_the_ratio_held, True),
    ):
        _, (_, scale, _) = jax.jit(function, static_argnums=(0, 1, 2))(*given)
        assert (abs(scale - theirs["log_scale"]) > 1e-2) == slip


@pytest.mark.parametrize("route", ROUTES)
def test_gradients_side_by_side_and_in_the_data(route: str):
    problem = made(INPUTS, Y, route=route)
    data = jax.tree.map(jnp.asarray, problem.data)
    batch = jax.tree.map(lambda v: jnp.stack([v, v + 0.1, v - 0.1]), at(route, *HERE))
    check_vmap(jax.value_and_grad(lambda x: problem.log_likelihood(x, data)), batch)
    check_vmap(lambda x: problem.log_likelihood(x, data), batch)
    ours = jax.jit(jax.grad(lambda d: problem.log_likelihood(at(route, *HERE), d)))(data)
    theirs = jax.jit(jax.grad(lambda d: plain(problem, at(route, *HERE), d)))(data)
    for name in data:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-8, atol=1e-8)


# Slips that the tests above would not let through.


def test_a_form_without_the_inverse_is_rejected(monkeypatch: pytest.MonkeyPatch):
    problem = made(INPUTS, Y, route="cholesky")
    known = dense(covariance(problem, *HERE), Y)
    monkeypatch.setattr(fast_routes, "whitened", form_without_the_inverse)
    found = problem.log_likelihood(at("cholesky", *HERE), problem.data)
    assert abs(found - known) > 1.0


def test_a_recursion_along_another_axis_than_y_is_rejected(monkeypatch: pytest.MonkeyPatch):
    problem = made(INPUTS, Y, route="spectral")
    known = dense(covariance(problem, *HERE), Y)
    monkeypatch.setattr(fast_routes, "reduced", reduced_without_turning_y)
    found = problem.log_likelihood(at("spectral", *HERE), problem.data)
    assert abs(found - known) > 1e-2


# The prior.


def prior_by_hand(log_length: np.ndarray, log_scale: float, log_noise: float) -> float:
    p = len(log_length)
    matrix = 1.8**2 * (0.31 * np.eye(p) + 0.69)
    # Of the paper's log relevances, of which log lengths are a translation.
    log_nu = -log_length - 0.5 * np.log(2.0)
    parts = (
        multivariate_normal(np.full(p, np.log(0.5)), matrix).logpdf(log_nu),
        multivariate_normal(0.0, 1.5**2).logpdf(log_scale),
        multivariate_normal(np.log(0.5), 1.5**2).logpdf(log_noise),
    )
    return float(sum(parts))


def worst_prior(prior: Callable[..., Any]) -> float:
    """How far the prior at one psi is from that of sigma, over values of eta."""
    apart = []
    for log_scale in (-2.0, 0.0, 1.5):
        position = at("cholesky", HERE[0], log_scale, -0.9)
        apart.append(abs(prior(position) - prior_by_hand(HERE[0], log_scale, -0.9)))
    return float(max(apart))


def test_the_prior_is_that_of_the_noise_on_either_route():
    problem = made(INPUTS, Y, route="cholesky")
    assert worst_prior(problem.log_prior) < 1e-10
    spectral = made(INPUTS, Y, route="spectral")
    np.testing.assert_allclose(
        spectral.log_prior(at("spectral", *HERE)), prior_by_hand(*HERE), rtol=1e-12
    )


def test_a_prior_of_the_ratio_is_rejected():
    problem = made(INPUTS, Y, route="cholesky")
    prior: Any = problem.log_prior
    assert worst_prior(PriorAtTheRatio(prior.whole, "cholesky")) > 0.5


@pytest.mark.parametrize("route", ROUTES)
def test_the_prior_draws_what_it_is_the_density_of(route: str, key: jax.Array):
    problem = made(INPUTS, Y, route=route)
    num = 20_000
    draws = jax.jit(jax.vmap(problem.draw_prior))(jax.random.split(key, num))
    if problem.constrain is not None:
        draws = jax.vmap(problem.constrain)(draws)
    columns = np.column_stack([np.asarray(draws[name]) for name in NAMES])
    mean = [0.5 * np.log(2.0)] * 2 + [0.0, np.log(0.5)]
    matrix = np.diag([1.8**2, 1.8**2, 1.5**2, 1.5**2])
    matrix[0, 1] = matrix[1, 0] = 0.69 * 1.8**2
    spread = np.sqrt(np.diag(matrix))
    assert (np.abs(columns.mean(0) - mean) < 5 * spread / np.sqrt(num)).all()
    correlation = np.corrcoef(columns.T)
    wanted = matrix / np.outer(spread, spread)
    assert np.abs(correlation - wanted).max() < 5 / np.sqrt(num)
    np.testing.assert_allclose(columns.std(0), spread, rtol=5 / np.sqrt(2 * num))


@pytest.mark.parametrize("route", ROUTES)
def test_the_base_of_an_ensemble_is_the_prior_of_the_fast_leaves(route: str, key: jax.Array):
    problem = made(INPUTS, Y, route=route, priors={"scale": tp.Gamma(2, 1)})
    prior: Any = problem.log_prior
    assert isinstance(prior, FastGaussianProcessPrior)
    *_, fast = apart(problem)
    leaves = dict(zip(sorted(problem.terms.fast), np.asarray(fast), strict=True))
    known = sum(
        prior.whole.priors[name.removeprefix("log_")].log_density(jnp.asarray(v))
        for name, v in leaves.items()
    )
    np.testing.assert_allclose(prior.fast_base(fast), known, rtol=1e-12)
    draws = jax.vmap(prior.fast_base.draw)(jax.random.split(key, 5000))
    assert draws.shape == (5000, len(fast))
    # E theta of Gamma(2, 1) is 2, with a variance of 2.
    where = sorted(problem.terms.fast).index("log_scale")
    assert abs(float(jnp.mean(jnp.exp(draws[:, where]))) - 2) < 5 * np.sqrt(2 / 5000)


def correlated_defect(prior: tp.CorrelatedLogNormal) -> float:
    """How far sums over entries are from the joint normal density."""
    rng = np.random.default_rng(1)
    apart = []
    for p in (1, 2, 5):
        c = prior.correlation
        matrix = prior.sigma**2 * ((1 - c) * np.eye(p) + c * np.ones((p, p)))
        u = rng.normal(size=(3, p))
        known = multivariate_normal(np.full(p, prior.mu), matrix).logpdf(u)
        found = jax.jit(prior.log_density)(jnp.asarray(u))
        apart.append(np.abs(np.sum(found, -1) - known).max())
    return float(max(apart))


def correlation_of_draws(prior: tp.CorrelatedLogNormal, key: jax.Array) -> float:
    draws = np.asarray(prior.draw(key, (20_000, 3)))
    return float(np.corrcoef(draws.T)[np.triu_indices(3, 1)].mean())


def test_correlated_log_normals(key: jax.Array):
    for c in (0.0, 0.3, 0.69, 0.99):
        prior = tp.CorrelatedLogNormal(0.3, 1.8, c)
        assert correlated_defect(prior) < 1e-8
        assert abs(correlation_of_draws(prior, key) - c) < 5 / np.sqrt(20_000)
    single = tp.CorrelatedLogNormal(0.3, 1.8, 0.5)
    u = jnp.asarray(0.7)
    np.testing.assert_allclose(single.log_density(u), tp.LogNormal(0.3, 1.8).log_density(u))
    assert single.draw(key, ()).shape == ()
    # It serves the other Gaussian processes too.
    other = tp.gaussian_process(INPUTS, Y, priors={"length": single})
    assert np.isfinite(other.log_prior(other.draw_prior(key)))


def test_slips_with_correlations_are_rejected(key: jax.Array):
    assert correlated_defect(CorrelatedAsIfNot(0.3, 1.8, 0.69)) > 0.1
    assert correlation_of_draws(CorrelatedByTheRoot(0.3, 1.8, 0.69), key) < 0.6


# Which route.


def test_the_route_follows_from_rows_and_inputs():
    assert made(INPUTS, Y).terms.route == "spectral"
    assert chosen_route(100, 12) == "spectral"
    assert chosen_route(1000, 12) == "cholesky"
    assert dearer(2000, 3) == pytest.approx(dearer(1000, 3), rel=0.2)
    ratios = [dearer(n, 12) for n in (25, 60, 100, 250, 600, 1000, 3000)]
    assert all(a <= b for a, b in itertools.pairwise(ratios))


def test_a_pilot_takes_the_route_that_is_worth_its_cost_here():
    # Nothing is worth a free evaluation, and everything is worth one without end.
    raised = made(INPUTS, Y).terms.raised
    assert piloted_route(raised, 0.01, INPUTS, Y, most=0.0) == "cholesky"
    assert piloted_route(raised, 0.01, INPUTS, Y, most=np.inf) == "spectral"
    assert made(INPUTS, Y, route="pilot").terms.route in ROUTES


def test_what_a_problem_says_of_itself():
    for route, fast in (("cholesky", ("log_scale",)), ("spectral", ("log_noise", "log_scale"))):
        problem = made(INPUTS, Y, route=route)
        assert problem.terms.fast == fast
        assert problem.terms.route == route
        constrain = problem.constrain or (lambda position: position)
        found = constrain(at(route, *HERE))
        assert sorted(found) == sorted(NAMES)
        np.testing.assert_allclose(found["log_noise"], HERE[2])
