"""Clouds and their fits: where the mass is, how wide, with which tails, and how much of it."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from tests.bases import broken_mixture_fit as broken

from temperance.bases.batch_gradients import BatchGradients
from temperance.bases.clouds import RECORDS, walk
from temperance.bases.mixture_fit import Parts, fit_cloud, weigh
from temperance.problems.mixture import StudentMixture

SCALE = np.array([[2.0, 0.9], [0.9, 0.5]])
MEAN = np.array([3.0, -1.0])
WALKERS = 200


def cloud_of(dofs: float, seed: int, walkers: int = WALKERS) -> np.ndarray:
    """Independent draws of a t density, as if walkers had been there."""
    rng = np.random.default_rng(seed)
    law = StudentMixture([1.0], MEAN[None], SCALE[None], [dofs])
    return law.draws(rng, np.array([walkers * RECORDS])).reshape(walkers, RECORDS, 2)


def score(parts: Parts, points: np.ndarray) -> float:
    """The mean log density of new points."""
    return float(logsumexp(parts.mixture().log_components(points), axis=1).mean())


# -- fits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dofs", "wanted"), [(3.0, (3.0,)), (np.inf, (8.0, np.inf))])
def test_a_fit_knows_tails_and_widths(dofs: float, wanted: tuple[float, ...], seed: int) -> None:
    parts = fit_cloud(cloud_of(dofs, seed), np.random.default_rng(seed))
    assert len(parts.weights) == 1
    assert parts.dofs[0] in wanted
    np.testing.assert_allclose(parts.means[0], MEAN, atol=0.2)
    if parts.dofs[0] == dofs:
        np.testing.assert_allclose(parts.scales[0], SCALE, rtol=0.2, atol=0.02)
    new = cloud_of(dofs, seed + 1).reshape(-1, 2)
    truth = Parts(np.ones(1), MEAN[None], SCALE[None], np.array([dofs]))
    assert score(parts, new) == pytest.approx(score(truth, new), abs=0.02)


def test_a_bent_cloud_gets_several_parts(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def banana(num: int) -> np.ndarray:
        z = rng.standard_normal((num, 2))
        return np.stack([3.0 * z[:, 0], 0.3 * z[:, 1] + z[:, 0] ** 2], axis=-1)

    parts = fit_cloud(banana(WALKERS * RECORDS).reshape(WALKERS, RECORDS, 2), rng)
    assert len(parts.weights) > 1
    assert parts.weights.sum() == pytest.approx(1.0)
    new = banana(2000)
    one = Parts(np.ones(1), new.mean(0)[None], np.cov(new.T)[None], np.array([np.inf]))
    assert score(parts, new) > score(one, new) + 0.3


@pytest.mark.parametrize("walkers", [1, 2, 3])
def test_few_walkers_have_a_fit(walkers: int, seed: int) -> None:
    parts = fit_cloud(cloud_of(np.inf, seed, walkers), np.random.default_rng(seed))
    assert np.isfinite(parts.mixture().log_components(MEAN[None])).all()


def test_a_cloud_without_extent_has_a_fit(seed: int) -> None:
    cloud = np.ones((WALKERS, RECORDS, 2))
    cloud[..., 1] = np.random.default_rng(seed).standard_normal((WALKERS, RECORDS))
    parts = fit_cloud(cloud, np.random.default_rng(seed))
    assert np.isfinite(parts.mixture().log_components(cloud[:, 0])).all()


# -- weights ---------------------------------------------------------------------------------------

TRUE, DRAWN = np.array([0.9, 0.1]), np.array([0.5, 0.5])


def gap_of_weights(weigher: Any, seed: int) -> float:
    """The error of the weights of two overlapping parts, of draws that are half of each."""
    means, scales = np.array([[-1.5, 0.0], [1.5, 0.0]]), np.stack([np.eye(2), 0.3 * np.eye(2)])
    drawn = StudentMixture(DRAWN, means, scales, [np.inf, 8.0])
    points = drawn.draws(np.random.default_rng(seed), np.array([4000, 4000]))
    logs = drawn.log_components(points) - np.log(DRAWN)
    target = logsumexp(logs + np.log(TRUE), axis=1) + 123.0
    found = weigher(target - logsumexp(logs + np.log(DRAWN), axis=1), logs, DRAWN)
    assert found.sum() == pytest.approx(1.0)
    return float(np.abs(found - TRUE).max())


def test_parts_are_weighed_by_importance(seed: int) -> None:
    assert gap_of_weights(weigh, seed) < 0.03
    assert gap_of_weights(broken.without_importance, seed) > 0.1
    assert gap_of_weights(broken.one_over_importance, seed) > 0.1


def test_draws_outside_of_the_support_weigh_nothing() -> None:
    logs = np.log(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]))
    found = weigh(np.array([0.0, 0.0, -np.inf]), logs, DRAWN)
    np.testing.assert_allclose(found, weigh(np.zeros(2), logs[:2], DRAWN))


# -- clouds ----------------------------------------------------------------------------------------


def tilted(x: Any) -> Any:
    away = x - MEAN
    return -0.5 * away @ jnp.linalg.inv(jnp.asarray(SCALE)) @ away


def test_walkers_spread_as_the_density_does(seed: int) -> None:
    gradients = BatchGradients(tilted, 2, 128)
    starts = np.tile(MEAN + np.array([1.0, 0.5]), (WALKERS, 1))
    # Coordinates that are three times too narrow.
    factors = np.broadcast_to(np.linalg.cholesky(SCALE) / 3, (WALKERS, 2, 2))
    cloud = walk(gradients, np.random.default_rng(seed), starts, factors, 48)
    assert cloud.shape == (WALKERS, RECORDS, 2)
    last = cloud[:, -1]
    np.testing.assert_allclose(last.mean(0), MEAN, atol=0.4)
    np.testing.assert_allclose(np.cov(last.T), SCALE, rtol=0.4, atol=0.2)
    # It moves.
    assert (cloud[:, 1:] != cloud[:, :-1]).any(axis=2).mean() > 0.5


def test_walkers_stay_inside_of_the_support(seed: int) -> None:
    def half(x: Any) -> Any:
        return jnp.where(x[0] > 0, -x[0] - 0.5 * x[1] ** 2, -jnp.inf)

    gradients = BatchGradients(half, 2, 128)
    starts = np.tile([0.5, 0.0], (WALKERS, 1))
    factors = np.broadcast_to(np.eye(2), (WALKERS, 2, 2))
    cloud = walk(gradients, np.random.default_rng(seed), starts, factors, 48)
    assert (cloud[..., 0] > 0).all()
    assert cloud[:, -1, 0].mean() == pytest.approx(1.0, abs=0.4)
