"""Climbs end at maxima, in the order of their starts, and cost what they may."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from temperance._types import LogDensity
from temperance.bases import polish
from temperance.bases.batch_gradients import BatchGradients
from temperance.bases.curvature import laplace
from temperance.bases.polish import Climb, Ends

CHUNK = 64
CENTER = np.array([1.0, -2.0, 0.5])


def climb_of(density: LogDensity, dimension: int, unit: Any = 1.0) -> Climb:
    gradients = BatchGradients(density, dimension, CHUNK)
    return Climb(gradients, np.zeros(dimension), np.broadcast_to(unit, dimension))


def starts_of(seed: int, num: int, dimension: int, unit: Any = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num, dimension)) * unit


TURN = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
NARROW = TURN @ np.diag([1.0, 1e2, 1e4]) @ TURN.T


def narrow(x: Any) -> Any:
    """A quadratic whose curvatures differ by 1e4 to one, across the axes."""
    away = x - CENTER
    return -0.5 * away @ jnp.asarray(NARROW) @ away


def rosenbrock(x: Any) -> Any:
    return -((1 - x[0]) ** 2) - 100.0 * (x[1] - x[0] ** 2) ** 2


def gamma(x: Any) -> Any:
    """Of two gamma variables with maximum at 2 and 3: zero density, and no gradient, below zero."""
    inside = (x > 0).all()
    safe = jnp.where(x > 0, x, 1.0)
    logs = jnp.sum(jnp.array([2.0, 3.0]) * jnp.log(safe) - safe)
    return jnp.where(inside, logs, -jnp.inf)


def slope_to_an_edge(x: Any) -> Any:
    """An exponential in one variable, whose highest place is the end of its support."""
    return jnp.where(x[0] > 0, -4.0 * x[0], -jnp.inf) - 0.5 * x[1] ** 2


# -- climbs ----------------------------------------------------------------------------------------


def test_a_narrow_valley_is_climbed(seed: int) -> None:
    climb, starts = climb_of(narrow, 3), starts_of(seed, 100, 3)
    ends = climb.polish(starts, 90)
    assert ends.finished.all()
    assert (ends.value > -0.01).all()
    assert np.median(ends.value) > -1e-6
    np.testing.assert_allclose(ends.value, [narrow(x) for x in ends.x], atol=1e-12)
    assert climb.num_evaluations <= 100 * 91


def test_a_bent_valley_is_climbed(seed: int) -> None:
    ends = climb_of(rosenbrock, 2).polish(starts_of(seed, 100, 2), 150)
    assert ends.finished.all()
    assert (ends.value > -0.01).all()
    assert np.mean(np.abs(ends.x - 1.0).max(axis=1) < 0.01) > 0.9


def test_climbs_stay_inside_of_the_support(seed: int) -> None:
    starts = np.exp(starts_of(seed, 60, 2))
    starts[::3] *= -1.0
    ends = climb_of(gamma, 2).polish(starts, 90)
    outside = np.arange(60) % 3 == 0
    # A start outside has nowhere to go.
    np.testing.assert_array_equal(ends.x[outside], starts[outside])
    assert (ends.value[outside] == -np.inf).all()
    assert ends.finished.all()
    np.testing.assert_allclose(ends.x[~outside], np.tile([2.0, 3.0], (40, 1)), atol=0.01)


def test_a_density_that_grows_without_end_takes_no_more_steps_than_it_may(seed: int) -> None:
    climb = climb_of(lambda x: jnp.sum(x), 2)
    ends = climb.polish(starts_of(seed, 10, 2), 12)
    assert not ends.finished.any()
    assert ends.followed.all()
    assert climb.num_evaluations <= 10 * 13


def two_hills(x: Any) -> Any:
    away = jnp.stack([jnp.sum((x - 6.0) ** 2), jnp.sum((x + 6.0) ** 2)])
    return jax.nn.logsumexp(-0.5 * away)


@pytest.mark.parametrize("num", [1, CHUNK - 1, CHUNK, CHUNK + 1])
def test_ends_are_in_the_order_of_starts(num: int) -> None:
    side = np.where(np.arange(num) % 3 == 0, 1.0, -1.0)
    starts = 6.0 * side[:, None] + starts_of(0, num, 2)
    ends = climb_of(two_hills, 2).polish(starts, 60)
    np.testing.assert_allclose(ends.x, 6.0 * np.repeat(side[:, None], 2, axis=1), atol=0.01)


def test_climbs_are_the_same_bits_again_and_do_not_meet(seed: int) -> None:
    starts = starts_of(seed, 100, 2, 3.0)
    one = climb_of(two_hills, 2).polish(starts, 60)
    two = climb_of(two_hills, 2).polish(starts, 60)
    for left, right in zip(one, two, strict=True):
        assert left.tobytes() == right.tobytes()
    some = climb_of(two_hills, 2).polish(starts[10:20], 60)
    np.testing.assert_allclose(some.x, one.x[10:20], atol=1e-9)


def test_units_are_taken_away_again(seed: int) -> None:
    unit = np.array([1e-3, 1e3])
    gradients = BatchGradients(lambda x: rosenbrock(x / jnp.asarray(unit)), 2, CHUNK)
    climb = Climb(gradients, 0.1 * unit, unit)
    ends = climb.polish(starts_of(seed, 30, 2, unit), 150)
    assert ends.finished.all()
    assert (ends.value > -0.01).all()
    wanted = jax.vmap(jax.grad(lambda x: rosenbrock(x / jnp.asarray(unit))))(jnp.asarray(ends.x))
    np.testing.assert_allclose(ends.slope, wanted, rtol=1e-6, atol=1e-9)


def test_a_limit_gives_up_some_and_says_which(seed: int) -> None:
    num, most = 1000, 20_000.0

    def climbed(limit: float) -> tuple[Ends, int]:
        climb = climb_of(rosenbrock, 2)
        return climb.polish(starts_of(seed, num, 2), 150, limit), climb.num_evaluations

    (free, cost), (limited, less) = climbed(np.inf), climbed(most)
    assert free.followed.all()
    assert less < cost
    # Every start takes the first steps, and a few of them all steps, whatever they cost.
    assert num * polish.ALL_MAY < less <= 1.2 * most
    given_up = ~limited.followed
    assert 0 < given_up.sum() < num
    assert not limited.finished[given_up].any()
    # Those that went on are not touched by it.
    np.testing.assert_allclose(limited.x[limited.followed], free.x[limited.followed], atol=1e-9)


# -- gradients in batches --------------------------------------------------------------------------


@pytest.mark.parametrize("num", [0, 1, CHUNK, CHUNK + 1])
def test_batches_are_what_jax_says_point_by_point(num: int) -> None:
    gradients, points = BatchGradients(rosenbrock, 2, CHUNK), starts_of(0, num, 2)
    values, slopes = gradients(points)
    assert (values.shape, slopes.shape, gradients.num_evaluations) == ((num,), (num, 2), num)
    for x, value, slope in zip(points, values, slopes, strict=True):
        wanted = jax.value_and_grad(rosenbrock)(jnp.asarray(x))
        np.testing.assert_allclose((value, *slope), (wanted[0], *wanted[1]), rtol=1e-12)


def through_python(x: Any) -> Any:
    """Rosenbrock's function where JAX cannot look."""
    shape = jax.ShapeDtypeStruct((), x.dtype)
    return jax.pure_callback(
        lambda y: np.asarray(rosenbrock(y), y.dtype), shape, x, vmap_method="sequential"
    )


def test_without_a_gradient_differences_take_its_place() -> None:
    gradients, points = BatchGradients(through_python, 2, CHUNK), starts_of(0, 10, 2)
    values, slopes = gradients(points)
    exact = BatchGradients(rosenbrock, 2, CHUNK)(points)
    np.testing.assert_allclose(values, exact[0], rtol=1e-12)
    np.testing.assert_allclose(slopes, exact[1], rtol=1e-5, atol=1e-5)
    assert not gradients.has_gradient
    assert gradients.num_evaluations == 10 * 5


def test_what_is_not_finite_is_minus_infinity_and_flat() -> None:
    def odd(x: Any) -> Any:
        return jnp.sqrt(x[0]) + jnp.where(x[0] == 4.0, jnp.nan, 0.0)

    values, slopes = BatchGradients(odd, 1, 4)(np.array([[1.0], [-1.0], [4.0], [0.0]]))
    np.testing.assert_array_equal(values, [1.0, -np.inf, -np.inf, -np.inf])
    np.testing.assert_array_equal(slopes[:, 0], [0.5, 0.0, 0.0, 0.0])


# -- curvature -------------------------------------------------------------------------------------


def test_the_covariance_of_a_normal_density(seed: int) -> None:
    climb = climb_of(narrow, 3, [2.0, 3.0, 5.0])
    centers = np.stack([CENTER, CENTER])
    found = laplace(climb, centers, np.zeros((2, 3)))
    wanted = np.linalg.inv(NARROW)
    np.testing.assert_allclose(found, np.stack([wanted, wanted]), rtol=1e-4, atol=1e-4 * 1e-4)


def test_at_an_edge_the_width_is_that_of_an_exponential() -> None:
    climb = climb_of(slope_to_an_edge, 2, 3.0)
    edge = np.array([[1e-9, 0.0]])
    _, slopes = climb.gradients(edge)
    covariance = laplace(climb, edge, slopes)[0]
    assert covariance[0, 0] == pytest.approx(1 / 16, rel=0.2)
    assert covariance[1, 1] == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("sign", [0.0, 1.0])
def test_no_width_is_more_than_that_of_the_starts(sign: float) -> None:
    """Where a density is flat, or bends upwards."""
    unit = np.array([0.5, 20.0])
    climb = climb_of(lambda x: 0.5 * sign * jnp.sum(x**2), 2, unit)
    found = laplace(climb, np.zeros((1, 2)), np.zeros((1, 2)))[0]
    np.testing.assert_allclose(found, np.diag(unit**2), rtol=1e-6)
