"""Variational fits: exact where they can be, a bound where not, and both modes of two."""

from collections.abc import Iterator
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from tests.bases.broken import unpaired_draws, unscaled_draws, with_copies

import temperance as tp
from temperance.bases import lbfgs as variational_climb
from temperance.bases.advi import FitWarning, advi, local_fits
from temperance.bases.bridge import rebased
from temperance.bases.fit import match_moments
from temperance.bases.variational_bound import Objective, Parameters, fixed_draws, standard
from temperance.errors import ArgumentError, DataError, StartError, UnknownNameError
from temperance.testing import ConjugateNormal

MEAN = np.array([1.0, -200.0, 0.03])
SCALES = np.array([1.0, 50.0, 0.01])
CORRELATION = np.array([[1.0, 0.8, -0.3], [0.8, 1.0, 0.1], [-0.3, 0.1, 1.0]])
COVARIANCE = CORRELATION * SCALES * SCALES[:, None]
LOG_Z = 3.25


class Hills(eqx.Module):
    """A mixture of normal densities of one precision, times exp(3.25)."""

    means: jax.Array
    precision: jax.Array
    log_weights: jax.Array

    def __call__(self, x):
        away = x[None] - self.means
        squares = jnp.sum(away * (away @ self.precision), axis=1)
        return jax.nn.logsumexp(self.log_weights - 0.5 * squares)


def hills(means, precision, weights):
    """Two of them always, so that all targets here share their programs."""
    log_det = np.linalg.slogdet(precision)[1]
    log_weights = LOG_Z + np.log(weights) + 0.5 * log_det - 0.5 * len(precision) * np.log(2 * np.pi)
    return Hills(jnp.asarray(means), jnp.asarray(precision), jnp.asarray(log_weights))


def one_hill():
    """A Gaussian with units of their own, and a start far off."""
    density = hills(np.stack([MEAN, MEAN]), np.linalg.inv(COVARIANCE), [0.5, 0.5])
    return tp.Target(density, tp.Gaussian(np.zeros(3), 100.0**2))


@cache
def fitted(family):
    return advi(one_hill(), family=family, progress=False)


def divergence(fit):
    """KL(q || p) between Gaussians, in closed form."""
    factor = np.asarray(fit.base.factor)
    covariance = np.diag(factor**2) if factor.ndim == 1 else factor @ factor.T
    precision, away = np.linalg.inv(COVARIANCE), np.asarray(fit.base.mean) - MEAN
    logs = np.linalg.slogdet(COVARIANCE)[1] - np.linalg.slogdet(covariance)[1]
    return 0.5 * (np.trace(precision @ covariance) + away @ precision @ away - 3 + logs)


def test_a_gaussian_is_fitted_exactly():
    fit = fitted("dense")
    assert divergence(fit) < 1e-5
    assert fit.log_zeta == pytest.approx(LOG_Z, abs=1e-4)
    assert fit.local[0].error < 1e-3


def test_a_diagonal_fit_has_the_inverse_of_the_precisions():
    fit = fitted("diagonal")
    variances = 1 / np.diagonal(np.linalg.inv(COVARIANCE))
    np.testing.assert_allclose(np.asarray(fit.base.factor) ** 2, variances, rtol=2e-3)
    assert np.abs((np.asarray(fit.base.mean) - MEAN) / np.sqrt(variances)).max() < 2e-3
    # The bound falls short of log Z by the divergence that is left, as it must.
    short = LOG_Z - divergence(fit)
    assert abs(fit.log_zeta - short) < 5 * fit.local[0].error
    assert fit.log_zeta < LOG_Z


@pytest.mark.parametrize("draws", [unscaled_draws, unpaired_draws])
def test_draws_with_other_moments_are_seen(draws, monkeypatch):
    monkeypatch.setattr(variational_climb, "fixed_draws", draws)
    assert divergence(advi(one_hill(), family="dense", progress=False)) > 1e-2


def test_fixed_draws_have_the_moments_of_their_law():
    draws = fixed_draws(64, 9, 1)
    np.testing.assert_allclose(draws.mean(0), 0, atol=1e-14)
    np.testing.assert_allclose(draws.T @ draws / 64, np.eye(9), atol=1e-13)
    few = fixed_draws(8, 9, 1)
    np.testing.assert_allclose(np.mean(few**2, axis=0), 1, atol=1e-13)
    assert not np.allclose(draws, fixed_draws(64, 9, 2))


def test_conjugate_evidence():
    """One posterior of known evidence, which is Gaussian and independent: the bound is log Z."""
    rows = jnp.asarray(np.random.default_rng(4).standard_normal((5, 3)) + 1.0)
    model = ConjugateNormal(rows, 2.0, 0.7)
    fit = advi(model.problem(), progress=False)
    assert fit.log_zeta == pytest.approx(float(model.log_normaliser(1.0)), abs=1e-4)


def skewed(x):
    """Two dimensions, neither Gaussian nor symmetric: bent, and with a heavy tail."""
    return jnp.log(2.0) + x[0] - jnp.exp(x[0]) - jnp.log(jnp.cosh(x[1] - 0.3 * x[0] ** 2))


@cache
def skewed_fit():
    return advi(tp.Target(skewed, example=np.zeros(2)), progress=False)


def test_the_bound_is_below_log_z():
    u, v = np.meshgrid(np.linspace(-30, 6, 1501), np.linspace(-40, 320, 3001), indexing="ij")
    bend = np.abs(v - 0.3 * u**2)
    log_cosh = bend + np.log1p(np.exp(-2 * bend)) - np.log(2)
    mass = np.exp(np.log(2) + u - np.exp(u) - log_cosh).sum()
    log_z = np.log(mass * (36 / 1500) * (360 / 3000))
    assert log_z == pytest.approx(np.log(2 * np.pi), abs=1e-3)  # the quadrature, checked by hand
    fit = skewed_fit()
    assert fit.log_zeta + 5 * fit.local[0].error < log_z
    assert fit.log_zeta > log_z - 0.5


def test_the_same_call_gives_the_same_fit():
    again = advi(tp.Target(skewed, example=np.zeros(2)), progress=False)
    assert again.log_zeta == skewed_fit().log_zeta
    np.testing.assert_array_equal(again.base.factor, skewed_fit().base.factor)


MEANS = np.array([[-5.0, 0.0, 1.0], [5.0, 0.0, 0.0]])
PRECISION = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.6], [0.0, 0.6, 1.0]])


def two_hills():
    """Masses 0.3 and 0.7, ten standard deviations apart, one of three axes correlated."""
    return tp.Target(hills(MEANS, PRECISION, [0.3, 0.7]), tp.Gaussian(np.zeros(3), 6.0**2))


@cache
def found():
    return local_fits(two_hills(), 6, family="dense", progress=False)


def near_truth(fit):
    mean = np.array([0.3, 0.7]) @ MEANS
    away = MEANS[0] - MEANS[1]
    covariance = np.linalg.inv(PRECISION) + 0.3 * 0.7 * np.outer(away, away)
    factor = np.asarray(fit.base.factor)
    return (
        abs(fit.log_zeta - LOG_Z) < 0.01
        and np.abs(np.asarray(fit.base.mean) - mean).max() < 0.05
        and np.abs(factor @ factor.T - covariance).max() < 0.3
    )


def test_both_modes_are_found():
    assert len(found().local) == 2
    assert near_truth(found())


def test_copies_that_are_not_dropped_are_seen():
    both = found().local
    assert near_truth(match_moments([*both, *both]))
    doubled = with_copies([*both, *both])
    assert doubled.log_zeta - LOG_Z == pytest.approx(np.log(2), abs=0.01)
    assert not near_truth(doubled)


def test_a_start_leads_to_its_own_mode():
    fit = advi(two_hills(), family="dense", start=np.array([-4.0, 0.5, 0.5]), progress=False)
    np.testing.assert_allclose(fit.base.mean, [-5.0, 0.0, 1.0], atol=0.01)
    assert fit.log_zeta == pytest.approx(LOG_Z + np.log(0.3), abs=0.01)


@pytest.mark.slow
def test_single_precision():
    fit = advi(tp.Target(skewed, example=np.zeros(2)), precision="single", progress=False)
    assert fit.log_zeta == pytest.approx(skewed_fit().log_zeta, abs=1e-3)
    np.testing.assert_allclose(fit.base.mean, skewed_fit().base.mean, atol=0.01)
    assert fit.base.mean.dtype == np.float64


@eqx.filter_jit
def slope_of(objective, parameters):
    return jax.value_and_grad(objective)(parameters)


def test_draws_in_turns_are_the_same():
    """Value and gradient of the bound, all draws at once and three at a time."""
    draws = jnp.asarray(fixed_draws(8, 2, 0))
    unit = jnp.asarray([1.0, 2.0])
    parameters = Parameters(jnp.asarray([0.1, 0.2]), jnp.asarray([0.3, -0.1]), jnp.asarray([0.4]))
    both = [
        slope_of(Objective(skewed, jnp.zeros(2), unit, draws, at_once), parameters)
        for at_once in (100, 3)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13), *both)


@pytest.mark.parametrize("dense", [False, True])
def test_gradient_of_the_bound(dense):
    """By finite differences, through the rule that is written by hand."""
    objective = Objective(
        skewed, jnp.ones(2), jnp.asarray([1.0, 2.0]), jnp.asarray(fixed_draws(8, 2, 0)), 100
    )
    begin = standard(2, 0.5, dense=dense)
    _, slope = slope_of(objective, begin)
    flat, back = jax.flatten_util.ravel_pytree(begin)
    for i, got in enumerate(jax.flatten_util.ravel_pytree(slope)[0]):
        step = 1e-5 * jnp.eye(flat.size)[i]
        ends = [float(slope_of(objective, back(flat + sign * step))[0]) for sign in (1, -1)]
        assert float(got) == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_no_step_goes_where_the_density_is_not_finite():
    objective = Objective(
        lambda x: jnp.log(x[0]), jnp.ones(1), jnp.ones(1), jnp.asarray(fixed_draws(4, 1, 0)), 100
    )
    value, slope = slope_of(objective, standard(1, 5.0, dense=False))
    assert float(value) > 1e29
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


@pytest.mark.slow
def test_too_few_steps_are_told():
    with pytest.warns(FitWarning, match="1 of 1 fits ended before a maximum"):
        advi(one_hill(), family="dense", num_steps=2, progress=False)


def test_rebased():
    rows = jnp.asarray(np.ones((4, 2)))
    model = ConjugateNormal(rows)
    base = tp.Gaussian(np.ones(2), [[1.0, 0.2], [0.2, 2.0]])
    densities = rebased(model.problem(), base)
    x = jnp.asarray([0.3, -0.4])
    assert densities.bridge
    assert densities.hot is not None
    assert densities.num_rows == 4
    assert float(densities.hot(x)) == pytest.approx(float(base(x)))
    whole = float(model.hot(x) + model.cold(x))
    assert float(densities.cold(x)) == float(densities.whole(x)) == pytest.approx(whole)
    key = jax.random.key(3)
    np.testing.assert_allclose(densities.draw(key), base.draw(key))


class Own:
    """A user's own base: anything with a value and a draw."""

    def __call__(self, x):
        return -jnp.sum(jnp.abs(x)) - x.size * jnp.log(2.0)

    def draw(self, key):
        return jax.random.laplace(key, (2,))


def test_rebased_on_an_own_base():
    target = tp.Target(skewed, example={"u": np.zeros(()), "v": np.zeros(())})
    assert rebased(target, Own()).draw(jax.random.key(0)).shape == (2,)


@pytest.fixture
def as_a_user() -> Iterator[None]:
    """Without the types that tests check and users do not."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def nowhere(x):
    return jnp.sum(x) * jnp.nan


class Vector(Own):
    def __call__(self, x):
        return x


SKEWED = tp.Target(skewed, example=np.zeros(2))
BAD_CALLS = {
    "not a problem": (lambda: advi(skewed), ArgumentError, "problem: wanted a Problem"),
    "family": (lambda: advi(SKEWED, family="full"), UnknownNameError, "family 'full'"),
    "no steps": (lambda: advi(SKEWED, num_steps=0), ArgumentError, "num_steps"),
    "no samples": (lambda: advi(SKEWED, num_samples=0), ArgumentError, "num_samples"),
    "odd samples": (lambda: advi(SKEWED, num_samples=7), ArgumentError, "even number"),
    "unbounded": (
        lambda: advi(one_hill(), family="dense", num_samples=4),
        ArgumentError,
        "unbounded with fewer than 6",
    ),
    "seed": (lambda: advi(SKEWED, seed=-1), ArgumentError, "seed"),
    "start": (lambda: advi(SKEWED, start=[1.0]), ArgumentError, "start: wanted 2 values"),
    "start not finite": (lambda: advi(SKEWED, start=[np.nan, 0.0]), ArgumentError, "start"),
    "precision": (lambda: advi(SKEWED, precision="half"), ArgumentError, "precision"),
    "nowhere finite": (
        lambda: advi(tp.Target(nowhere, example=np.zeros(2))),
        StartError,
        "0 of 64 starting points",
    ),
    "no fits": (lambda: local_fits(SKEWED, 0), ArgumentError, "num_fits"),
    "rebased on a class": (lambda: rebased(SKEWED, Own), ArgumentError, "base: wanted"),
    "rebased on a function": (lambda: rebased(SKEWED, skewed), ArgumentError, "base: wanted"),
    "rebased of a function": (lambda: rebased(skewed, Own()), ArgumentError, "problem"),
    "rebased on three": (
        lambda: rebased(SKEWED, tp.Gaussian(np.zeros(3), 1.0)),
        ArgumentError,
        r"shape \(3,\), but the position has 2 values",
    ),
    "rebased on a vector": (lambda: rebased(SKEWED, Vector()), ArgumentError, "scalar"),
}


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls(name):
    call, kind, words = BAD_CALLS[name]
    with pytest.raises(kind, match=words):
        call()


def test_rows_elsewhere_are_refused():
    rows = np.ones((6, 2))
    problem = tp.Problem(
        lambda x: -jnp.sum(x**2),
        lambda x, data: -jnp.sum((data - x[None]) ** 2, axis=1),
        tp.ArrayRows(rows),
        lambda key: jax.random.normal(key, (2,)),
    )
    with pytest.raises(DataError, match="all rows in memory"):
        advi(problem, progress=False)
