"""Mixtures: normalised, drawn as they say, and the same in JAX as in NumPy."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp
from tests.problems import broken_mixture as broken

import temperance as tp
from temperance.errors import ArgumentError
from temperance.problems.mixture import MOST_DOF, StudentMixture, covering
from temperance.testing import sequential

DOFS = [*map(float, range(1, MOST_DOF + 1)), np.inf]
SCALE = np.array([[4.0, 1.2], [1.2, 0.5]])
MEAN = np.array([1.0, -2.0])
NUM = 2048
Law = Callable[[np.ndarray], list[float]]


def single(dofs: float, kind: type = StudentMixture) -> StudentMixture:
    return kind([1.0], MEAN[None], SCALE[None], [dofs])


def several(kind: type = StudentMixture) -> StudentMixture:
    """Three components of unequal weights, widths and tails; the weights do not add up to one."""
    means = np.array([[0.0, 0.0], [4.0, 1.0], [-3.0, 2.0]])
    scales = np.stack([SCALE, 0.3 * np.eye(2), np.diag([0.5, 2.0])])
    return kind([2.0, 5.0, 3.0], means, scales, [2.0, np.inf, 7.0])


def two_normals(kind: type = tp.Mixture) -> Any:
    return kind([1.0, 3.0], [tp.Gaussian([-2.0], 0.25), tp.Gaussian([1.0], 1.0)])


@eqx.filter_jit
def _values(density: Any, points: Any) -> Any:
    return jax.vmap(density)(points)


@eqx.filter_jit
def _draws(density: Any, keys: Any) -> Any:
    return jax.vmap(density.draw)(keys)


def of_jax(density: Any, seed: int, num: int) -> np.ndarray:
    return np.asarray(_draws(density, jax.random.split(jax.random.key(seed), num)))


def of_numpy(density: StudentMixture, seed: int, num: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return density.draws(rng, rng.multinomial(num, np.exp(np.asarray(density.log_weights))))


# -- densities -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dofs", DOFS)
def test_a_component_is_the_t_density(dofs: float, seed: int) -> None:
    points = MEAN + 3.0 * np.random.default_rng(seed).standard_normal((50, 2))
    law = stats.multivariate_normal if np.isinf(dofs) else stats.multivariate_t
    wanted = law(MEAN, SCALE, **({} if np.isinf(dofs) else {"df": dofs})).logpdf(points)
    np.testing.assert_allclose(_values(single(dofs), points), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mixture", [several(), covering(of_numpy(several(), 0, 200))])
def test_numpy_and_jax_agree(mixture: StudentMixture, seed: int) -> None:
    points = 5.0 * np.random.default_rng(seed).standard_normal((50, 2))
    logs = mixture.log_components(points)
    assert logs.shape == (50, len(mixture.means))
    np.testing.assert_allclose(_values(mixture, points), logsumexp(logs, axis=1), rtol=1e-12)


def mass_of_plane(density: Any) -> float:
    """The integral over the plane, by quadrature in x = sinh u, y = sinh v."""
    u = np.linspace(-14.0, 14.0, 561)
    one = np.sinh(u)
    points = np.stack(np.meshgrid(one, one, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = logsumexp(density.log_components(points), axis=1).reshape(len(u), len(u))
    jacobian = np.log(np.cosh(u))
    return float(np.exp(logs + jacobian[:, None] + jacobian).sum() * (u[1] - u[0]) ** 2)


def test_a_mixture_has_mass_one() -> None:
    assert mass_of_plane(several()) == pytest.approx(1.0, abs=1e-5)
    assert abs(mass_of_plane(several(broken.WithoutDeterminant)) - 1.0) > 0.1


def test_a_mixture_of_normals_has_mass_one() -> None:
    grid = np.linspace(-15.0, 15.0, 3001)
    density = np.exp(_values(two_normals(), grid[:, None]))
    assert integrate.simpson(density, x=grid) == pytest.approx(1.0, abs=1e-9)
    wanted = 0.25 * stats.norm(-2, 0.5).pdf(grid) + 0.75 * stats.norm(1, 1).pdf(grid)
    np.testing.assert_allclose(density, wanted, rtol=1e-11, atol=1e-300)


def test_gradients_are_finite_where_every_component_is_zero() -> None:
    class Nowhere:
        def __call__(self, x: Any) -> Any:
            return -jax.numpy.inf + 0.0 * x[0]

        def draw(self, key: Any) -> Any:
            return jax.numpy.zeros(1)

    mixture = tp.Mixture([1.0, 1.0], [Nowhere(), Nowhere()])
    value, slope = jax.value_and_grad(mixture)(jax.numpy.ones(1))
    assert value == -np.inf
    assert not np.isnan(slope).any()


# -- draws -----------------------------------------------------------------------------------------


def laws_of_one(dofs: float, points: np.ndarray) -> list[float]:
    """p-values of a t density's draws: both projections, and the distance from the middle."""
    student = stats.norm() if np.isinf(dofs) else stats.t(dofs)
    away = points - MEAN
    p_values = [
        stats.kstest(away @ along / np.sqrt(along @ SCALE @ along), student.cdf).pvalue
        for along in (np.array([1.0, 0.0]), np.array([1.0, -2.0]))
    ]
    square = np.sum(away * np.linalg.solve(SCALE, away.T).T, axis=1) / 2
    distance = stats.chi2(2, scale=0.5) if np.isinf(dofs) else stats.f(2, dofs)
    return [*p_values, stats.kstest(square, distance.cdf).pvalue]


def draws_agree(density: Any, law: Law, seed: int, draw: Any) -> bool:
    seeds = iter(range(1000 * seed, 1000 * (seed + 1)))
    return sequential(lambda size: np.array(law(draw(density, next(seeds), size * NUM))))[0]


@pytest.mark.parametrize("draw", [of_jax, of_numpy])
@pytest.mark.parametrize("dofs", DOFS)
def test_draws_are_of_the_density(dofs: float, draw: Any, seed: int) -> None:
    assert draws_agree(single(dofs), lambda points: laws_of_one(dofs, points), seed, draw)


@pytest.mark.parametrize(
    ("twin", "dofs"),
    [
        (broken.OneSquareTooMany, 1.0),
        (broken.OneSquareTooMany, 4.0),
        (broken.TransposedFactor, 3.0),
    ],
)
def test_draws_of_another_density_are_rejected(twin: type, dofs: float, seed: int) -> None:
    law = lambda points: laws_of_one(dofs, points)  # noqa: E731
    assert not draws_agree(single(dofs, twin), law, seed, of_jax)


def shares_of_regions(points: np.ndarray) -> list[float]:
    """The p-value that discs about the components hold what the density says they do."""
    mixture = several()
    angles, radii = np.linspace(0, 2 * np.pi, 61)[:-1], np.linspace(0, 1, 41)
    middles = 0.5 * (radii[1:] + radii[:-1])
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    inside, shares = np.zeros((len(mixture.means), len(points)), bool), []
    for j, mean in enumerate(np.asarray(mixture.means)):
        disc = mean + middles[:, None, None] * ring
        density = np.exp(logsumexp(mixture.log_components(disc.reshape(-1, 2)), axis=1))
        area = np.repeat(np.pi * np.diff(radii**2) / len(ring), len(ring))
        shares.append(density @ area)
        inside[j] = np.sum((points - mean) ** 2, axis=1) < 1.0
    counts = np.r_[inside.sum(axis=1), (~inside.any(axis=0)).sum()]
    wanted = np.r_[shares, 1 - np.sum(shares)] * len(points)
    return [float(stats.chisquare(counts, wanted).pvalue)]


@pytest.mark.parametrize("draw", [of_jax, of_numpy])
def test_each_component_is_drawn_by_its_weight(draw: Any, seed: int) -> None:
    assert draws_agree(several(), shares_of_regions, seed, draw)


def law_of_normals(points: np.ndarray) -> list[float]:
    def below(x: Any) -> Any:
        return 0.25 * stats.norm(-2, 0.5).cdf(x) + 0.75 * stats.norm(1, 1).cdf(x)

    return [stats.kstest(points[:, 0], below).pvalue]


def test_a_mixture_of_normals_is_drawn_by_its_weights(seed: int) -> None:
    assert draws_agree(two_normals(), law_of_normals, seed, of_jax)
    assert not draws_agree(two_normals(broken.EvenWeights), law_of_normals, seed, of_jax)


# -- covering --------------------------------------------------------------------------------------


def test_covering_is_as_wide_as_points_whatever_their_tails(seed: int) -> None:
    points = of_numpy(single(1.0), seed, 4000)
    points[0] = 1e200
    mixture = covering(points)
    np.testing.assert_array_equal(mixture.dofs, [3.0])
    np.testing.assert_allclose(mixture.means[0], MEAN, atol=0.2)
    scale = np.asarray(mixture.factors)[0] @ np.asarray(mixture.factors)[0].T
    assert np.isfinite(scale).all()
    # Of a Cauchy density the quartiles lie one scale from the middle.
    ratio = np.diag(scale) / np.diag(SCALE)
    assert (ratio > 1.0).all()
    assert (ratio < 20.0).all()
    assert scale[0, 1] / np.sqrt(scale[0, 0] * scale[1, 1]) > 0.5


def test_covering_of_a_constant_is_a_density() -> None:
    mixture = covering(np.ones((50, 2)))
    assert np.isfinite(mixture.log_components(np.ones((1, 2)))).all()


# -- wrong calls -----------------------------------------------------------------------------------

NORMAL = tp.Gaussian([0.0, 0.0], 1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tp.Mixture([1.0, -1.0], [NORMAL, NORMAL]), "weights: wanted positive numbers"),
        (lambda: tp.Mixture([1.0, np.nan], [NORMAL, NORMAL]), "weights: wanted positive numbers"),
        (lambda: tp.Mixture([[1.0, 1.0]], [NORMAL, NORMAL]), "positive numbers in a vector"),
        (lambda: tp.Mixture([1.0], [NORMAL, NORMAL]), "there are 1 for 2 components"),
        (lambda: tp.Mixture([1.0, 1.0], [NORMAL, abs]), r"components: wanted .* draw\(key\)"),
        (lambda: tp.Mixture([1.0, 1.0], [NORMAL, tp.Gaussian]), "components: wanted normalised"),
        (
            lambda: tp.Mixture([1.0, 1.0], [NORMAL, tp.Gaussian([0.0], 1.0)]),
            "components: wanted one dimension",
        ),
        (lambda: single(2.5), "dofs: wanted whole numbers from 1 to 16 or inf"),
        (lambda: single(0.0), "dofs: wanted whole numbers"),
        (lambda: single(17.0), "dofs: wanted whole numbers"),
    ],
)
def test_wrong_calls(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        call()
