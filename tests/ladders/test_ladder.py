"""Ladders and Gaussian bases obey their laws to rounding; twins with one slip do not."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from scipy import stats
from tests.ladders import broken_ladder as broken

from temperance._types import LogDensity
from temperance.errors import ArgumentError
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import (
    AbstractLadder,
    AbstractUniformLadder,
    Rungs,
    SingleRung,
    fold_rungs,
    map_rungs,
    weighted,
)
from temperance.moves.hmc import hmc
from temperance.moves.metropolis import metropolis
from temperance.moves.move import Params
from temperance.problems.gaussian import Gaussian
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.samplers.transitions import TemperedTransitions
from temperance.testing import check_gradients, check_ladder, check_terms, check_vmap

BETAS = [0.0, 0.2, 0.7, 1.0]
Build = Callable[..., GeometricLadder]


def hot(x: Array) -> Array:
    return -0.5 * jnp.sum(x**2) + jnp.sin(x[0])


def cold(x: Array) -> Array:
    """A log likelihood whose support ends at x_0 = -3."""
    return jnp.where(x[0] > -3, -3.0 * (x[1] - x[0] ** 2) ** 2 + jnp.cos(x[0]), -jnp.inf)


def positions(seed: int, outside: bool = True) -> Array:
    draws = np.clip(np.random.default_rng(seed).normal(size=(6, 2)), -2.5, None)
    return jnp.asarray(np.vstack([draws, [[-4.0, 1.0]]]) if outside else draws)


@pytest.mark.parametrize("bridge", [False, True])
def test_geometric_ladders_obey_the_laws(bridge: bool, seed: int):
    ladder = GeometricLadder(hot, cold, BETAS, bridge=bridge)
    check_ladder(ladder, positions(seed))
    check_gradients(ladder, positions(seed, outside=False))
    check_vmap(ladder.log_densities, positions(seed))


@pytest.mark.parametrize("bridge", [False, True])
def test_rungs_of_a_geometric_ladder_are_the_powers_written_out(bridge: bool, seed: int):
    ladder = GeometricLadder(hot, cold, BETAS, bridge=bridge)
    for x in jnp.asarray(positions(seed, outside=False)):
        for k, beta in enumerate(BETAS):
            wanted = (1 - beta if bridge else 1) * hot(x) + beta * cold(x)
            np.testing.assert_allclose(ladder.log_density(k, x), wanted, rtol=1e-12)


def test_a_component_of_weight_zero_contributes_zero():
    values = jnp.array([-jnp.inf, jnp.nan, 2.0])
    assert weighted(jnp.array([0.0, 0.0, 3.0]), values) == 6.0
    assert weighted(jnp.array([1.0, 0.0, 3.0]), values) == -jnp.inf
    outside = jnp.array([-4.0, 1.0])
    ladder = GeometricLadder(hot, cold, BETAS)
    np.testing.assert_allclose(ladder.log_density(0, outside), hot(outside))
    assert ladder.log_density(1, outside) == -jnp.inf


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (broken.WithThePrintedSign, check_ladder),
        (broken.WithIncrementsOfTheWrongStep, check_ladder),
        (broken.WithIncrementsReversed, check_ladder),
        (broken.WithZeroTimesInfinity, check_ladder),
        (broken.WithGradientsOfTheOtherComponent, check_gradients),
    ],
)
def test_laws_reject_broken_ladders(twin: Build, check: Callable[..., None], seed: int):
    outside = check is check_ladder
    check(GeometricLadder(hot, cold, BETAS), positions(seed, outside))
    with pytest.raises(AssertionError):
        check(twin(hot, cold, BETAS), positions(seed, outside))


def test_terms_may_only_look_back(seed: int):
    data = jnp.asarray(np.random.default_rng(seed).normal(size=5))
    check_terms(lambda x, y: -0.5 * (y - x[0]) ** 2, data, positions(seed))
    with pytest.raises(AssertionError, match="terms"):
        check_terms(broken.terms_that_look_ahead, data, positions(seed))
    with pytest.raises(AssertionError, match="shape"):
        check_terms(lambda x, y: x[:1] * y[:1], data, positions(seed))


def test_vmap_law_rejects_a_function_with_a_memory():
    seen = []

    def counts_its_calls(x: Array) -> Array:
        seen.append(x)
        return x * len(seen)

    with pytest.raises(AssertionError, match="vmap"):
        check_vmap(counts_its_calls, jnp.ones(3))


def test_a_single_rung_obeys_the_laws(seed: int):
    ladder = SingleRung(cold)
    check_ladder(ladder, positions(seed))
    check_gradients(ladder, positions(seed, outside=False))
    assert ladder.log_densities(jnp.zeros(2)).shape == (1,)


@pytest.mark.parametrize(
    "covariance", [2.0, np.array([0.5, 2.0, 1.0]), np.diag([1.0, 2.0, 3.0]) + 0.4]
)
def test_gaussian_is_scipys(covariance: np.ndarray | float, seed: int):
    mean = np.array([1.0, -2.0, 0.5])
    base = Gaussian(mean, covariance)
    matrix = covariance * np.eye(3) if np.ndim(covariance) < 2 else covariance
    exact = stats.multivariate_normal(mean, matrix)
    x = jnp.asarray(np.random.default_rng(seed).normal(size=(5, 3)))
    np.testing.assert_allclose(jax.vmap(base)(x), exact.logpdf(x), rtol=1e-12)
    draws = np.asarray(jax.vmap(base.draw)(jax.random.split(jax.random.key(seed), 20_000)))
    # Whitened by the known covariance, the draws' squared lengths are chi-square.
    z = np.linalg.solve(np.linalg.cholesky(matrix), (draws - mean).T)
    assert stats.kstest((z**2).sum(axis=0), stats.chi2(3).cdf).pvalue > 1e-5
    for one, two in [(0, 1), (1, 2), (0, 2)]:
        assert abs(np.mean(z[one] * z[two])) < 5 / np.sqrt(20_000)


@pytest.mark.parametrize(
    "betas", [[0.5], [0.0, 0.5], [0.5, 0.2, 1.0], [-0.1, 1.0], [0.0, np.nan, 1.0], [[0.0, 1.0]]]
)
def test_betas_that_are_no_ladder_are_refused(betas: list[float]):
    with pytest.raises(ArgumentError, match="betas"):
        GeometricLadder(hot, cold, betas)


@pytest.mark.parametrize(
    ("mean", "covariance"),
    [([[0.0]], 1.0), ([0.0, 1.0], [1.0, -1.0]), ([0.0, 1.0], np.ones((2, 2))),
     ([0.0, 1.0], [[1.0, 0.5], [0.0, 1.0]]), ([0.0, np.inf], 1.0), ([0.0, 1.0], [1.0] * 3)],
)  # fmt: skip
def test_gaussians_that_are_none_are_refused(mean: list[float], covariance: np.ndarray):
    with pytest.raises(ArgumentError):
        Gaussian(mean, covariance)


# A ladder with one program a rung: the first `sizes[k]` of the rows, statically.


class _Rows(eqx.Module):
    rows: Float[Array, " n"]

    def __call__(self, x: Float[Array, " d"]) -> Array:
        return jnp.sum(-0.5 * (self.rows - x[0] + x[1] ** 2) ** 2)


class Nested(AbstractLadder):
    """A prior, and blocks of rows that enter one rung after another."""

    rows: Float[Array, " n"]
    sizes: tuple[int, ...] = eqx.field(static=True)
    static_only: bool = eqx.field(static=True, default=True)

    @property
    def num_rungs(self) -> int:
        return len(self.sizes)

    def densities(self) -> Sequence[LogDensity]:
        cuts = [0, *self.sizes]
        blocks = [_Rows(self.rows[a:b]) for a, b in pairwise(cuts)]
        return [hot, *blocks]

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        if self.static_only and not isinstance(rung, int):
            raise TypeError("this ladder's rungs are static")
        return jnp.concatenate([jnp.ones(1), jnp.where(jnp.arange(self.num_rungs) <= rung, 1.0, 0)])


class NestedUniform(Nested, AbstractUniformLadder):
    """The same densities, one program for all rungs."""


def nested(seed: int, sizes: tuple[int, ...] = (1, 3, 6)) -> tuple[AbstractLadder, AbstractLadder]:
    rows = jnp.asarray(np.random.default_rng(seed).normal(size=max(sizes)))
    return Nested(rows, sizes), NestedUniform(rows, sizes, static_only=False)


def test_static_rungs_obey_the_laws(seed: int):
    for ladder in nested(seed):
        check_ladder(ladder, positions(seed, outside=False))
        check_gradients(ladder, positions(seed, outside=False))


def test_map_and_fold_do_the_same_with_static_rungs(seed: int):
    static, uniform = nested(seed)
    x = jnp.asarray(positions(seed, outside=False))[:3]

    for first in (0, 1):
        one, two = (
            map_rungs(ladder, lambda r, x: r(x), first, x[first:]) for ladder in (static, uniform)
        )
        np.testing.assert_allclose(one, two, rtol=1e-12)
        np.testing.assert_allclose(one[0], static.log_density(first, x[first]), rtol=1e-12)

    def fold(ladder: AbstractLadder):
        def body(carry: Array, rung: Rungs, x: Array) -> tuple[Array, Array]:
            value = ladder.at(rung)(x)
            return 0.5 * carry + value, value

        return fold_rungs(ladder, body, jnp.zeros(()), [2, 0, 1], x)

    run = eqx.filter_jit(fold)
    (sum_one, each_one), (sum_two, each_two) = run(static), run(uniform)
    np.testing.assert_allclose(sum_one, sum_two, rtol=1e-12)
    np.testing.assert_allclose(each_one, each_two, rtol=1e-12)


@pytest.mark.parametrize(
    ("sampler", "move"), [(ParallelTempering, hmc(2)), (TemperedTransitions, metropolis())]
)
def test_samplers_do_the_same_with_static_rungs(sampler: Callable, move: object, seed: int):
    ends = []
    for ladder in nested(seed):
        params = Params(jnp.full((3, 1), 0.4), jnp.ones((3, 2)))
        kernel = sampler(ladder, move, params)
        step = eqx.filter_jit(kernel.step)
        state = kernel.init(jnp.zeros(2))
        for i in range(4):
            state, _ = step(jax.random.fold_in(jax.random.key(seed), i), state)
        ends.append(step(jax.random.key(seed), state)[0])
    for one, two in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10)


@pytest.mark.parametrize("uniform", [False, True])
def test_a_fold_over_no_rungs_returns_the_carry(uniform: bool, seed: int):
    ladder = nested(seed)[uniform]

    def body(carry: Array, rung: Rungs, x: Array) -> tuple[Array, Array]:
        return carry + ladder.at(rung)(x), jnp.zeros(2)

    carry, outs = fold_rungs(ladder, body, jnp.ones(()), [], jnp.zeros((0, 2)))
    assert carry == 1
    assert outs.shape == (0, 2)
