"""The kit that judges samplers is judged: it passes what is right and rejects what is wrong."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy import integrate, stats

from temperance._types import Key
from temperance.ladders.geometric import GeometricLadder
from temperance.moves.metropolis import metropolis
from temperance.moves.move import Params
from temperance.problems.gaussian import Gaussian
from temperance.samplers.transitions import TemperedTransitions
from temperance.testing import (
    ConjugateNormal,
    ConstantSwaps,
    CurvedGamma,
    GaussianBridge,
    TwoModes,
    check_gradients,
    check_ladder,
    check_terms,
    enumeration,
    invariance,
    joint,
    reversibility,
    sequential,
    two_modes,
)
from temperance.testing.invariance import ALPHA, Replicates, compare, exchangeable
from temperance.testing.targets import AbstractKnown

# A ten-dimensional normal and an autoregression that leaves N(0, variance) invariant.


def draw(key: Key) -> Array:
    return jax.random.normal(key, (10,))


def autoregression(variance: float = 1.0, rho: float = 0.9) -> Callable[[Key, Array], Array]:
    sd = np.sqrt((1 - rho**2) * variance)
    return lambda key, x: rho * x + sd * jax.random.normal(key, x.shape)


def moments(x: Array) -> Array:
    return jnp.stack([jnp.sum(x), jnp.sum(x**2), jnp.sum(x[:5] * x[5:])])


def test_a_right_kernel_passes_and_an_error_of_8_percent_does_not(seed: int):
    right = invariance(autoregression(), draw, moments, num_steps=20, seed=seed)
    assert right.passed, right
    assert right.sizes[0] == 4096
    assert right.p_values.shape == (6,)
    wrong = invariance(autoregression(variance=1.08), draw, moments, num_steps=20, seed=seed)
    assert wrong.moving, wrong
    assert not wrong.lawful, wrong
    assert wrong.p_values.min() * 6 < ALPHA


def test_one_step_does_not_see_what_twenty_do(seed: int):
    slow = autoregression(variance=1.08, rho=0.99)
    assert invariance(slow, draw, moments, num_steps=1, seed=seed).passed
    assert not invariance(slow, draw, moments, num_steps=200, seed=seed).lawful


def test_what_only_the_parts_together_show_is_rejected(seed: int):
    """Every coordinate keeps its law, and two become one."""

    def couple(key: Key, x: Array) -> Array:
        fresh = autoregression()(key, x)
        return fresh.at[5:].set(fresh[:5])

    def marginal(x: Array) -> Array:
        return jnp.stack([x[0], x[7], x[0] ** 2, x[7] ** 2])

    assert invariance(couple, draw, marginal, seed=seed).passed
    assert not invariance(couple, draw, moments, seed=seed).lawful


def test_a_frozen_kernel_is_lawful_and_does_not_pass(seed: int):
    frozen = invariance(lambda _, x: x, draw, moments, seed=seed)
    assert frozen.lawful
    assert not frozen.moving
    assert not frozen.passed
    np.testing.assert_array_equal(frozen.moved, 0.0)
    lazy = invariance(
        lambda key, x: jnp.where(jax.random.uniform(key) < 0.5, -x, x), draw,
        lambda x: x[:2], seed=seed, band=(0.6, 1.0),
    )  # fmt: skip
    assert lazy.lawful
    assert not lazy.moving
    assert abs(lazy.moved[0] - 0.5) < 0.05


def test_a_kernel_that_only_rounds_is_frozen(seed: int):
    rounding = invariance(lambda _, x: x * (1 + 1e-15) + 1e-14, draw, moments, seed=seed)
    assert not rounding.moving


def test_a_kernel_that_leaves_the_numbers_is_rejected(seed: int):
    lost = invariance(lambda _, x: x / 0.0 * 0.0, draw, moments, seed=seed)
    assert not lost.lawful


def test_reversibility_passes_detailed_balance_and_rejects_a_rotation(seed: int):
    """Rotations leave a normal invariant, and turn one way only."""

    def plane(key: Key) -> Array:
        return jax.random.normal(key, (2,))

    def rotate(key: Key, x: Array) -> Array:
        angle = 0.5 * jax.random.uniform(key)
        c, s = jnp.cos(angle), jnp.sin(angle)
        return jnp.stack([c * x[0] - s * x[1], s * x[0] + c * x[1]])

    def itself(x: Array) -> Array:
        return x

    assert reversibility(autoregression(), plane, itself, seed=seed).passed
    assert invariance(rotate, plane, itself, seed=seed).passed
    turned = reversibility(rotate, plane, itself, seed=seed)
    assert turned.moving
    assert not turned.lawful
    with pytest.raises(ValueError, match="two statistics"):
        reversibility(rotate, plane, lambda x: x[:1], seed=seed)


# False alarms.


def test_the_sequential_rule_keeps_its_budget(seed: int):
    """With uniform p-values the rule rejects with at most alpha, and spends most of it."""
    rng = np.random.default_rng(seed)
    alpha, runs = 0.05, 20_000
    verdicts = [sequential(lambda _: rng.uniform(size=1), alpha)[0] for _ in range(runs)]
    rejected = runs - sum(verdicts)
    assert stats.binomtest(rejected, runs, alpha, alternative="greater").pvalue > 1e-4
    assert rejected / runs > alpha / 4


def test_the_sequential_rule_asks_for_more_when_in_doubt():
    asked: list[int] = []

    def doubtful(size: int) -> np.ndarray:
        asked.append(size)
        return np.array([0.01, 0.8])

    passed, _, sizes = sequential(doubtful)
    assert asked == sizes
    assert asked[:3] == [1, 2, 4]
    assert not passed
    assert sequential(lambda _: np.array([0.5, 0.9]))[2] == [1]
    assert sequential(lambda _: np.array([1e-9, 0.9]))[0] is False
    assert sequential(lambda _: np.array([np.nan, 0.9]))[0] is False


def test_p_values_of_equal_laws_are_uniform_and_those_of_discrete_ones_not_too_small(seed: int):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(400):
        one, two, three = rng.normal(size=(3, 500, 2)) ** np.array([1, 2])
        found.append(np.r_[compare(Replicates(one, one, two, three)), 0.0])
    p = np.array(found)[:, :-1]
    for column in p.T:
        assert stats.kstest(column, "uniform", alternative="greater").pvalue > 1e-4
    coins = rng.integers(2, size=(4, 300, 200)).astype(float)
    p = compare(Replicates(*coins))
    assert stats.kstest(p[::2], "uniform", alternative="greater").pvalue > 1e-4
    assert np.mean(p < 0.01) < 0.03


def test_exchangeable_pairs_have_uniform_p_values(seed: int):
    rng = np.random.default_rng(seed)
    p = []
    for _ in range(300):
        before, after = rng.normal(size=(2, 400, 2))
        p.append(exchangeable(Replicates(before, after, after, after))[0])
    assert stats.kstest(p, "uniform").pvalue > 1e-4


# Geweke's joint test, where the posterior cannot be drawn.

ROWS = 4


def draw_prior(key: Key) -> Array:
    return 0.7 * jax.random.normal(key, (2,))


def rates(theta: Array) -> Array:
    return theta[0] + theta[1] * jnp.linspace(-1.0, 1.0, ROWS)


def draw_data(key: Key, theta: Array) -> Array:
    return jax.random.poisson(key, jnp.exp(rates(theta))).astype(float)


def log_likelihood(theta: Array, data: Array) -> Array:
    return jnp.sum(data * rates(theta) - jnp.exp(rates(theta)))


def both(theta: Array, data: Array) -> Array:
    y = jnp.log1p(data)
    return jnp.stack([theta[0] * jnp.sum(y), theta[1] * (y[-1] - y[0]), theta[0], theta[1] ** 2])


def posterior_step(prior_sd: float = 0.7, use: Callable[[Array], Array] = lambda y: y):
    """A tempered transition on the ladder from the prior to the posterior given the data."""
    prior = Gaussian(np.zeros(2), prior_sd**2)

    def step(key: Key, theta: Array, data: Array) -> Array:
        ladder = GeometricLadder(prior, lambda x: log_likelihood(x, use(data)), [0.2, 1.0])
        params = Params(jnp.full((2, 1), 0.6), jnp.ones((2, 2)))
        sampler = TemperedTransitions(ladder, metropolis(), params)
        return sampler.step(key, sampler.init(theta))[0].point.position

    return step


def test_the_joint_test_passes_the_posteriors_kernel(seed: int):
    verdict = joint(draw_prior, draw_data, posterior_step(), both, seed=seed)
    assert verdict.passed, verdict


@pytest.mark.parametrize(
    "wrong",
    [
        posterior_step(prior_sd=1.0),
        posterior_step(use=lambda y: y[::-1]),
        lambda key, *_: draw_prior(key),
    ],
    ids=["another prior", "rows in the wrong order", "the prior's own kernel"],
)
def test_the_joint_test_rejects_kernels_of_other_posteriors(wrong: Any, seed: int):
    verdict = joint(draw_prior, draw_data, wrong, both, seed=seed)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


# The targets are what they say.

DATA = jnp.asarray(np.random.default_rng(1).normal(0.5, 1.0, size=(3, 1)))
BRIDGE = GaussianBridge(
    jnp.zeros(1), jnp.full(1, 4.0), jnp.full(1, 1.5), jnp.full(1, 0.3), log_z=0.7
)
ONE_DIMENSION: list[AbstractKnown] = [ConjugateNormal(DATA, 1.3, 0.8), BRIDGE]


@pytest.mark.parametrize("known", ONE_DIMENSION, ids=["conjugate normal", "bridge"])
def test_constants_and_draws_agree_with_quadrature(known: AbstractKnown, seed: int):
    betas = [0.0, 0.3, 1.0]
    ladder = known.ladder(betas)
    grid = jnp.linspace(-15.0, 15.0, 6001)
    densities = np.exp(jax.jit(jax.vmap(ladder.log_densities))(grid[:, None]))
    keys = jax.random.split(jax.random.key(seed), 4000)
    for k, beta in enumerate(betas):
        constant = integrate.simpson(densities[:, k], grid)
        np.testing.assert_allclose(known.log_normaliser(beta), np.log(constant), atol=1e-9)
        cdf = integrate.cumulative_simpson(densities[:, k], x=grid, initial=0.0) / constant
        draws = np.asarray(jax.vmap(known.draw, (0, None))(keys, jnp.asarray(beta)))[:, 0]
        assert stats.kstest(draws, lambda x, c=cdf: np.interp(x, grid, c)).pvalue > 1e-5


def test_the_curved_gamma_is_what_it_says(seed: int):
    known = CurvedGamma()
    ladder = known.ladder([0.0, 0.6, 1.0])
    u = jnp.linspace(-14.0, 4.0, 1201)

    # v given u is normal, so the integral over v needs only a window around its centre.
    window = jnp.linspace(-12.0, 12.0, 401)
    values = jax.jit(
        jax.vmap(
            lambda a: jax.vmap(
                lambda b: ladder.log_density(1, jnp.stack([a, known.curvature * a**2 + b]))
            )(window)
        )
    )(u)
    inner = integrate.simpson(np.exp(values), window)
    constant = integrate.simpson(inner, u)
    np.testing.assert_allclose(known.log_normaliser(0.6), np.log(constant), atol=1e-8)
    keys = jax.random.split(jax.random.key(seed), 4000)
    draws = np.asarray(jax.vmap(known.draw, (0, None))(keys, jnp.asarray(0.6)))
    cdf = integrate.cumulative_simpson(inner, x=np.asarray(u), initial=0.0) / constant
    assert stats.kstest(draws[:, 0], lambda x: np.interp(x, u, cdf)).pvalue > 1e-5
    precision = 0.4 * known.precisions[0] + 0.6 * known.precisions[1]
    z = (draws[:, 1] - known.curvature * draws[:, 0] ** 2) * np.sqrt(precision)
    assert stats.kstest(z, "norm").pvalue > 1e-5
    assert abs(np.corrcoef(z, draws[:, 0])[0, 1]) < 0.08
    for end in (0.0, 1.0):
        np.testing.assert_allclose(known.log_normaliser(end), 0.0, atol=1e-12)


def test_known_ladders_obey_the_laws(seed: int):
    x = jnp.asarray(np.random.default_rng(seed).normal(size=(4, 2)))
    ladder = CurvedGamma().ladder([0.0, 0.4, 1.0], exact=True)
    check_ladder(ladder, x)
    check_gradients(ladder, x)
    assert ladder.draw_hottest() is not None
    conjugate = ConjugateNormal(jnp.ones((3, 2)))
    check_terms(conjugate.terms, conjugate.data, x)
    problem = conjugate.problem()
    np.testing.assert_allclose(
        jnp.sum(problem.terms(x[0], problem.data)), conjugate.cold(x[0]), rtol=1e-12
    )


def test_two_modes_is_the_mixture(seed: int):
    target = two_modes(log_z=1.5)
    assert target.base is not None
    mixture = TwoModes(log_z=1.5)
    x = np.asarray(jax.vmap(mixture.draw)(jax.random.split(jax.random.key(seed), 2000)))
    center = 5 / np.sqrt(10) * np.ones(10)
    wanted = np.logaddexp(
        np.log(0.3) + stats.multivariate_normal(-center).logpdf(x),
        np.log(0.7) + stats.multivariate_normal(center).logpdf(x),
    )
    got = jax.vmap(target.log_density)(jnp.asarray(x))
    np.testing.assert_allclose(got, wanted + 1.5, rtol=1e-10)
    heavy = np.asarray(jax.vmap(mixture.heavier)(jnp.asarray(x)))
    assert stats.binomtest(int(heavy.sum()), 2000, 0.7).pvalue > 1e-5
    np.testing.assert_allclose(np.asarray(target.base.factor), 6.0)
    assert (
        stats.kstest((x - np.where(heavy[:, None], 1, -1) * center).ravel(), "norm").pvalue > 1e-5
    )


def test_constant_swaps_obey_the_laws_of_a_ladder():
    ladder = ConstantSwaps(jnp.array([0.3, 0.9]))
    check_ladder(ladder, jnp.arange(3.0)[:, None])


# Finite spaces.


def test_enumeration_knows_right_from_wrong():
    log_density = np.array([0.3, -1.0, 0.5, 0.0, 0.2])
    law = enumeration.normalised(log_density)
    right = enumeration.cycle_metropolis(log_density)
    np.testing.assert_allclose(right.sum(axis=1), 1.0)
    assert enumeration.defect(right, law) < 1e-15
    assert enumeration.imbalance(right, law) < 1e-15
    np.testing.assert_allclose(enumeration.stationary(right), law, atol=1e-12)
    wrong = enumeration.cycle_metropolis(0.92 * log_density)
    assert enumeration.defect(wrong, law) > 1e-3
    distance = enumeration.total_variation(enumeration.stationary(wrong), law)
    other = enumeration.total_variation(enumeration.normalised(0.92 * log_density), law)
    assert abs(distance - other) < 1e-12
    assert distance > 5e-3
    asymmetric = np.random.default_rng(0).dirichlet(np.ones(5), size=5)
    assert enumeration.defect(enumeration.metropolis(asymmetric, log_density), law) < 1e-15
    with pytest.raises(ValueError, match="reducible"):
        enumeration.stationary(np.eye(3))
