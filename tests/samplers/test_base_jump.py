"""Jumps from the base: invariance at every power, and modes that small steps do not join."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.samplers import broken_base_jump as broken

import temperance as tp
from temperance._types import Key
from temperance.errors import ArgumentError
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import Point
from temperance.moves.hmc import hmc
from temperance.moves.move import Params
from temperance.samplers.base_jump import jump_from_base, log_ratio
from temperance.samplers.simulated import SimulatedTempering
from temperance.testing import GaussianBridge, invariance

KNOWN = GaussianBridge(
    jnp.array([0.0, 0.5]), jnp.array([1.0, 2.0]), jnp.array([0.8, -0.2]), jnp.array([0.5, 1.0])
)
LADDER = KNOWN.ladder([0.0, 0.5, 1.0], exact=True)


def steps(jump: Any, beta: float) -> Any:
    def step(key: Key, x: Array) -> Array:
        point = LADDER.evaluate(x, gradient=True)
        return jump(key, LADDER, jnp.asarray(beta), point, hmc()).position

    return step


def statistics(x: Array) -> Array:
    return jnp.array([jnp.tanh(x[0]), jnp.tanh(x[1] * x[0]), jnp.tanh(x[1] - 0.5)])


def judged(jump: Any, beta: float = 0.4) -> Any:
    return invariance(
        steps(jump, beta), lambda key: KNOWN.draw(key, beta), statistics, band=(0.2, 1.0)
    )


def test_a_jump_leaves_every_power_invariant():
    assert judged(jump_from_base).passed


@pytest.mark.parametrize("slip", [broken.jump_at_full_power, broken.jump_without_the_base])
def test_slips_are_seen(slip: Any):
    assert not judged(slip).passed


def test_at_the_base_every_draw_is_taken():
    point = LADDER.evaluate(jnp.zeros(2), gradient=True)
    nowhere = Point(point.position, jnp.array([0.0, -jnp.inf]), point.gradients)
    assert float(log_ratio(LADDER, jnp.asarray(0.0), nowhere, point)) == 0.0
    assert float(log_ratio(LADDER, jnp.asarray(0.5), point, nowhere)) == -jnp.inf


def test_jumps_want_a_base_that_can_be_drawn_from():
    without = GeometricLadder(LADDER.hot, LADDER.cold, [0.0, 1.0], bridge=True)
    params = Params(jnp.ones((2, 1)), jnp.ones((2, 2)))
    with pytest.raises(ArgumentError, match="draw_hot"):
        SimulatedTempering(without, hmc(), params, jnp.zeros(2), jumps=True)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["st", "gibbs-ct"])
def test_one_chain_changes_modes_by_jumps(method: str):
    def log_density(x: Array) -> Array:
        wide, narrow = jnp.sum((x + 4) ** 2), jnp.sum((x - 4) ** 2) / 0.25
        constant = -jnp.log(2 * jnp.pi)
        return jnp.log(0.5) + constant + jnp.logaddexp(-wide / 2, -narrow / 2 - 2 * jnp.log(0.5))

    target = tp.Target(log_density, base=tp.Gaussian([0.0, 0.0], 25.0))
    tree = tp.sample(target, method, base="modes", num_draws=600, num_warmup=400, progress=False)
    group = tree["modes"].dataset
    assert (group["entries"].values > 100).all()
    assert np.all(np.abs(group["share"].values - 0.5) < 5 * group["error"].values)
