"""Ladders of truncated energies obey their laws to rounding; twins with one slip do not."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.ladders import broken_energies as broken

import temperance as tp
from temperance.errors import ArgumentError
from temperance.ladders.energies import (
    EnergyLadder,
    rungs_for_heat,
    spaced_levels,
    spaced_temperatures,
    spacing_for,
)
from temperance.moves.move import Params

HEAT = np.array([5.0, 2.0, 1.0])
LEVELS = np.array([3.0, 1.2, -np.inf])


def density(x: Array) -> Array:
    """Its support ends at x_0 = -3; energies of the test's positions lie on all sides of levels."""
    return jnp.where(x[0] > -3, -0.5 * jnp.sum(x**2) + 0.3 * jnp.sin(x[0]), -jnp.inf)


def positions() -> Array:
    return jnp.asarray([[0.1, 0.2], [1.5, -0.9], [-2.2, 1.5], [0.0, 3.5], [-1.0, 1.0]])


OUTSIDE = jnp.asarray([-4.0, 0.0])


def written_out(rung: int, x: Array) -> float:
    return -max(-float(density(x)), LEVELS[rung]) / HEAT[rung]


def check(ladder: EnergyLadder) -> None:
    """Every way to ask for a density, an increment or a gradient, against the formula."""
    rungs = range(3)
    for x in positions():
        point = ladder.evaluate(x, gradient=True)
        wanted = np.array([written_out(k, x) for k in rungs])
        answers = {
            "log_density": [ladder.log_density(k, x) for k in rungs],
            "log_densities": ladder.log_densities(x),
            "at(k)(x)": [ladder.at(k)(x) for k in rungs],
            "at(k).log_density": [ladder.at(k).log_density(point) for k in rungs],
        }
        for name, found in answers.items():
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-13, err_msg=name)
        steps = np.diff(wanted)
        np.testing.assert_allclose(ladder.increments(point.components), steps, atol=1e-13)
        own = [ladder.log_increment(k, x) for k in (0, 1)]
        np.testing.assert_allclose(np.asarray(own), steps, atol=1e-13)
        for k in rungs:
            slope = jax.grad(lambda v, k=k: -jnp.maximum(-density(v), LEVELS[k]) / HEAT[k])(x)
            np.testing.assert_allclose(ladder.at(k).gradient(point), slope, atol=1e-13)
            np.testing.assert_allclose(ladder.at(k).slope(x), slope, atol=1e-13)


def test_every_rung_is_the_formula() -> None:
    ladder = EnergyLadder(density, HEAT, LEVELS)
    check(ladder)
    assert all(float(ladder.log_density(k, OUTSIDE)) == -np.inf for k in range(3))
    increments = ladder.increments(ladder.evaluate(OUTSIDE, gradient=False).components)
    assert not np.isnan(np.asarray(increments)).any()


def test_rungs_may_be_traced() -> None:
    ladder = EnergyLadder(density, HEAT, LEVELS)
    x = positions()[1]
    found = jax.jit(jax.vmap(lambda k: ladder.at(k)(x)))(jnp.arange(3))
    np.testing.assert_allclose(found, [written_out(k, x) for k in range(3)], rtol=1e-13)


@pytest.mark.parametrize(
    "twin",
    [
        broken.WithTheTargetTruncated,
        broken.WithTheIncrementOfWholeEnergies,
        broken.WithASlopeBelowTheLevel,
    ],
)
def test_the_laws_reject_broken_ladders(twin: Callable[..., EnergyLadder]) -> None:
    with pytest.raises(AssertionError):
        check(twin(density, HEAT, LEVELS))


@pytest.mark.parametrize(
    "move", [tp.metropolis(), tp.mala(), tp.hmc(), tp.nuts(max_num_doublings=2)]
)
def test_moves_run_on_a_rung_as_they_are(move: tp.AbstractMove, key: jax.Array) -> None:
    """Below its level a rung is flat, where every proposal that stays below is accepted."""
    ladder = EnergyLadder(density, HEAT, [8.0, 7.0, -np.inf])
    point = ladder.evaluate(jnp.asarray([0.5, -0.5]), gradient=move.uses_gradient)
    params = Params(jnp.asarray([0.3]), jnp.ones(2))
    keys = jax.random.split(key, 20)
    moved, info = jax.vmap(lambda k: move.step(k, point, ladder.at(0), params))(keys)
    np.testing.assert_allclose(info.acceptance, 1.0, rtol=1e-12)
    assert (np.asarray(moved.position) != np.asarray(point.position)).any(axis=1).all()


def test_rings_are_cut_by_the_levels_of_the_hot_rungs() -> None:
    ladder = EnergyLadder(density, HEAT, LEVELS)
    energies = np.array([-5.0, 1.2 - 1e-9, 1.2, 2.9, 3.0, 1e9])
    rings = [int(ladder.ring(jnp.asarray([-h]))) for h in energies]
    assert rings == [0, 0, 1, 1, 2, 2]
    assert ladder.num_rings == 3
    # Without truncation there is one ring.
    flat = EnergyLadder(density, HEAT, np.full(3, -np.inf))
    assert {int(flat.ring(jnp.asarray([-h]))) for h in energies} == {2}


# -- the choice of levels and temperatures -------------------------------------------------------


def test_levels_are_spaced_by_the_rule() -> None:
    heat, lowest, spacing = spaced_temperatures(30.0, 6), -7.0, 1.7
    levels = spaced_levels(lowest, heat, spacing)
    assert levels[-1] == -np.inf
    # (H_{k-1} - H_k) / T_k = c, with the lowest energy in the place of the target's level.
    ends = np.r_[levels[:-1], lowest]
    np.testing.assert_allclose((ends[:-1] - ends[1:]) / heat[1:], spacing, rtol=1e-12)
    ratio = heat[0] / heat[1]
    np.testing.assert_allclose(ends, lowest + spacing * (heat - 1) / (ratio - 1), rtol=1e-12)


def test_the_default_spacing_puts_levels_at_the_mean_energies_of_a_normal_density() -> None:
    heat = spaced_temperatures(30.0, 6)
    levels = spaced_levels(2.0, heat, spacing_for(heat, 8))
    np.testing.assert_allclose(levels[:-1], 2.0 + 0.5 * 8 * (heat[:-1] - 1), rtol=1e-12)


def test_temperatures_are_in_equal_ratios_and_as_many_as_dimensions_want() -> None:
    heat = spaced_temperatures(64.0, 4)
    np.testing.assert_allclose(heat, [64.0, 16.0, 4.0, 1.0], rtol=1e-12)
    assert rungs_for_heat(64.0, 2) == pytest.approx(7.0)
    assert rungs_for_heat(64.0, 200) > 4 * rungs_for_heat(64.0, 2)


@pytest.mark.parametrize(
    ("heat", "levels", "words"),
    [
        ([1.0], [-np.inf], "two rungs"),
        ([1.0, 2.0], LEVELS[1:], "decreasing"),
        ([3.0, 3.0, 1.0], LEVELS, "decreasing"),
        ([3.0, 2.0], LEVELS[1:], "end at 1"),
        ([np.nan, 1.0], LEVELS[1:], "finite"),
        (["hot", "cold"], LEVELS[1:], "numbers that decrease to 1"),
        (HEAT, LEVELS[1:], "each of the 3 temperatures"),
        (HEAT, [3.0, 1.0, 0.0], "the target is not truncated"),
        (HEAT, [1.0, 3.0, -np.inf], "decrease with the temperatures"),
        (HEAT, [np.nan, 3.0, -np.inf], "numbers"),
        (HEAT, ["a", "b", "c"], "energies that decrease"),
    ],
)
def test_wrong_ladders_are_refused(heat: object, levels: object, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        EnergyLadder(density, heat, levels)


def test_wrong_choices_are_refused() -> None:
    for hottest, num_rungs in ((1.0, 4), (np.inf, 4), (5.0, 1)):
        with pytest.raises(ArgumentError, match="two rungs"):
            spaced_temperatures(hottest, num_rungs)
    for lowest, spacing in ((np.nan, 1.0), (0.0, 0.0), (0.0, np.inf)):
        with pytest.raises(ArgumentError, match="lowest energy"):
            spaced_levels(lowest, HEAT, spacing)
