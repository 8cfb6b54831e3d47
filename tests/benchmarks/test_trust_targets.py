"""benchmarks/trust/targets.py: log evidence and probabilities are what the cases say."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.trust import targets
from benchmarks.trust.galaxies import VELOCITIES
from benchmarks.trust.targets import FAMILIES, Mixture, random_case, trust_table
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, multivariate_t
from tests.benchmarks import broken_trust_targets as broken

import temperance as tp
from temperance.problems.problem import densities_of

NUM_DRAWS = 40_000
DRAWN = [name for name in FAMILIES if name != "labels"]


def case_of(family, seed, most=20):
    """A case with exact draws, in few enough dimensions."""
    own = list(FAMILIES).index(family)
    for number in range(own + 10 * seed, own + 10 * seed + 1000, 10):
        case = random_case(number)
        if case.draw is not None and case.dimension <= most:
            return case
    raise AssertionError(family)


def densities(case, draws):
    return np.asarray(jax.jit(jax.vmap(densities_of(case.target).whole))(jnp.asarray(draws)))


def is_right(case, rng):
    draws = case.draw(rng, NUM_DRAWS)
    p = case.probability
    z = (case.event(draws).mean() - p) / np.sqrt(p * (1 - p) / NUM_DRAWS)
    return abs(z) < 4.5


@pytest.mark.parametrize("family", DRAWN)
def test_the_event_has_its_probability_under_exact_draws(family, seed):
    case = case_of(family, seed)
    rng = np.random.default_rng(seed)
    assert 0.02 < case.probability < 0.98
    assert is_right(case, rng)
    wrong = [
        twin(case) for twin in broken.DRAWN if abs(twin(case).probability - case.probability) > 0.02
    ]
    assert wrong
    assert not any(is_right(twin, rng) for twin in wrong)


@pytest.mark.parametrize("case", trust_table(), ids=lambda case: case.name)
def test_the_fixed_targets_are_right(case, seed):
    rng = np.random.default_rng(seed)
    assert is_right(case, rng)
    found, error = bridged(case, rng)
    assert abs(found - case.log_z) < 5 * error + 1e-3


def bridged(case, rng):
    """log Z by bridge sampling between exact draws and kernels, with its error.

    Kernels have the place and shape of other exact draws and of those nearest to them.
    """
    d, num = case.dimension, 80
    draws, others = case.draw(rng, 10_000), case.draw(rng, 10_000)
    logs, kernels = np.empty((num, 2 * len(draws))), []
    for place in others[:num]:
        far = (((others - place) / others.std(axis=0)) ** 2).sum(axis=1)
        near = others[np.argsort(far)[:200]]
        covariance = np.atleast_2d(np.cov(near.T)) + 1e-12 * np.eye(d)
        kernels.append(multivariate_normal(place, covariance))
    which = np.bincount(rng.integers(0, num, len(draws)), minlength=num)
    others = np.vstack(
        [
            np.reshape(k.rvs(n, random_state=rng), (n, d))
            for k, n in zip(kernels, which, strict=True)
        ]
    )
    both = np.vstack([draws, others])
    for i, kernel in enumerate(kernels):
        logs[i] = kernel.logpdf(both)
    ratio = densities(case, both) - (logsumexp(logs, axis=0) - np.log(num))
    ours, theirs = ratio[: len(draws)], ratio[len(draws) :]
    log_z = case.log_z
    for _ in range(100):
        log_z += np.log(expit(theirs - log_z).mean() / expit(log_z - ours).mean())
    up, down = expit(theirs - log_z), expit(log_z - ours)
    error = np.sqrt((up.var() / up.mean() ** 2 + down.var() / down.mean() ** 2) / len(draws))
    return log_z, error


@pytest.mark.parametrize("family", DRAWN)
def test_log_z_is_right_by_a_bridge_from_exact_draws(family, seed):
    case = case_of(family, seed, most=6)
    rng = np.random.default_rng(seed)
    found, error = bridged(case, rng)
    assert error < 0.05
    assert abs(found - case.log_z) < 5 * error
    if isinstance(case.target, tp.Target):
        for twin in broken.EVIDENCE:
            wrong = twin(case)
            found, error = bridged(wrong, rng)
            assert abs(found - wrong.log_z) > 5 * error


@pytest.mark.parametrize("freedom", [None, 2.5])
def test_a_mixture_has_the_density_that_scipy_gives(freedom, seed):
    rng = np.random.default_rng(seed)
    factors = np.stack([targets.factor_of(rng, 4), targets.factor_of(rng, 4) / 3])
    law = Mixture(np.array([0.3, 0.7]), rng.normal(0, 3, (2, 4)), factors, freedom)
    draws = law.draw(rng, 100)
    wanted = 0.0
    for weight, center, factor in zip(law.weights, law.centers, factors, strict=True):
        shape = factor @ factor.T
        one = (
            multivariate_normal(center, shape)
            if freedom is None
            else multivariate_t(center, shape, freedom)
        )
        wanted = wanted + weight * one.pdf(draws)
    np.testing.assert_allclose(jax.vmap(law.log_density)(draws), np.log(wanted), rtol=1e-10)
    twin = broken.WithoutVolumes(law.weights, law.centers, law.factors)
    assert not np.allclose(jax.vmap(twin.log_density)(draws), np.log(wanted), rtol=1e-2)


def grid_of_two_means(case, threshold_from):
    """Log evidence and probability from the density that a sampler is given, by quadrature."""
    threshold = threshold_from(case)
    parts = []
    for low, high in ((-20.0, threshold), (threshold, 62.0)):
        x, wx = targets.panels(low, high, 25)
        y, wy = targets.panels(-20.0, 62.0, 50)
        points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
        logs = densities(case, points) - case.log_z
        parts.append(np.exp(logs) @ np.outer(wx, wy).ravel())
        assert case.event(points).mean() in (0, 1)
    return float(np.log(sum(parts))) + case.log_z, parts[0] / sum(parts)


def threshold_of(case):
    """Where the event ends, to the last bit."""
    low, high = 0.0, 60.0
    while (middle := (low + high) / 2) not in (low, high):
        inside = bool(case.event(np.array([[middle, 0.0]]))[0])
        low, high = (middle, high) if inside else (low, middle)
    return high


def test_labels_are_right_by_quadrature_of_the_density_itself():
    case = next(c for c in map(random_case, range(7, 200, 10)) if c.dimension == 2)
    log_z, probability = grid_of_two_means(case, threshold_of)
    for one in [case, *(twin(case) for twin in broken.ROWS)]:
        right = abs(one.log_z - log_z) < 1e-6 and abs(one.probability - probability) < 1e-6
        assert right == (one is case)


@pytest.mark.slow
def test_the_grid_is_fine_enough_and_its_edges_are_dealt_with():
    weights, sds = np.array([0.6, 0.4]), np.array([2.0, 3.5])
    c = np.array([15.03, 20.61, 21.13, 21.38])
    log_z, below = targets.mixture_of_galaxies(weights, sds, 21.0, 10.0)
    finer, finer_below = targets.mixture_of_galaxies(weights, sds, 21.0, 10.0, 0.13)
    assert log_z == pytest.approx(finer, abs=1e-8)
    np.testing.assert_allclose(below(c), finer_below(c), atol=1e-6)
    _, rough = broken.sums_up_to_the_threshold(weights, sds, 21.0, 10.0)
    assert np.abs(rough(c) - finer_below(c)).max() > 1e-3


@pytest.mark.slow
def test_three_equal_components_are_counted_as_often_as_they_come():
    sds = np.full(3, 3.4)
    log_z, below = targets.mixture_of_galaxies(np.full(3, 1 / 3), sds, 21.0, 10.0)
    grid = np.arange(-2.0, 46.0, 0.4)
    each = -0.5 * ((np.array(VELOCITIES)[:, None] - grid) / 3.4) ** 2 - np.log(3 * 3.4)
    each -= 0.5 * targets.LOG_2PI
    prior = -0.5 * ((grid - 21) / 10) ** 2 - np.log(10) - 0.5 * targets.LOG_2PI
    total = prior[:, None, None] + prior[:, None] + prior
    for row in each:
        total += np.logaddexp(row[:, None, None], np.logaddexp(row[:, None], row))
    assert logsumexp(total) + 3 * np.log(0.4) == pytest.approx(log_z, abs=1e-6)
    first = np.exp(logsumexp(total, axis=(1, 2)) - logsumexp(total))
    # The mean of the first component, from its distribution function.
    x = np.arange(-2.0, 46.0, 0.01)
    assert 46.0 - np.sum(below(x)) * 0.01 == pytest.approx(first @ grid, abs=0.02)


def test_stubborn_rows_are_right_by_quadrature_of_the_density_itself(seed):
    case = targets.stubborn_rows(np.random.default_rng(seed))
    threshold = threshold_of(replace(case, event=lambda x: ~case.event(x)))

    def part(low, high):
        x, weights = targets.panels(low, high, 2000)
        return np.exp(densities(case, x[:, None]) - case.log_z) @ weights

    left, right = part(-10, threshold), part(threshold, 40)
    for one in [case, *(twin(case) for twin in broken.ROWS)]:
        wanted = (np.log(left + right) + case.log_z, right / (left + right))
        gaps = (abs(one.log_z - wanted[0]), abs(one.probability - wanted[1]))
        assert (max(gaps) < 1e-6) == (one is case)


def test_a_seed_names_a_case_and_families_take_turns():
    names = list(FAMILIES)
    one, two = random_case(14), random_case(14)
    assert (one.name, one.log_z, one.probability) == (two.name, two.log_z, two.probability)
    assert [random_case(i).family for i in range(7)] == names[:7]
    assert random_case(24).log_z != one.log_z
    x = one.base.mean
    assert densities(one, [x]) == densities(two, [x])


@pytest.mark.parametrize("family", FAMILIES)
def test_densities_and_gradients_are_finite_where_the_base_draws(family, seed):
    case = random_case(list(FAMILIES).index(family) + 10 * seed)
    draws = jax.vmap(case.base.draw)(jax.random.split(jax.random.key(seed), 200))
    whole = densities_of(case.target).whole
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(whole)))(draws)
    assert not np.isnan(values).any()
    assert (np.isfinite(values)).any()
    assert np.isfinite(gradients).all()
    assert case.event(np.asarray(draws)).shape == (200,)
