"""AutoStep: the step size that is chosen, the check from the far end, and what both evaluate."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.moves import broken_moves as broken
from tests.moves.curved_rung import RUNG, Exact, params, run
from tests.shared.counted_rows import count_rows, terms

from temperance._types import Key, Point
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import Rung, SingleRung
from temperance.ladders.prefix import PrefixLadder
from temperance.moves.auto_step import auto_step
from temperance.moves.move import Info, Params, whiten
from temperance.moves.trajectory import Trajectory, follow, reverse
from temperance.programs.random_numbers import normals_and_uniforms
from temperance.testing import reversibility

STEPS, MOST = 3, 4
MOVE = auto_step(STEPS, jitter=0.0, max_doublings=MOST)


class Tried(NamedTuple):
    """What the rule sees of the trajectories from one point, by exponent."""

    error: dict[int, float]
    turned: dict[int, bool]
    ends: Trajectory

    def end(self, exponent: int) -> Trajectory:
        return jax.tree.map(lambda leaf: leaf[exponent + MOST], self.ends)


@eqx.filter_jit
def _follow(begin: Trajectory, tuned: Params) -> tuple[Trajectory, Array]:
    sizes = tuned.step_size[0] * 2.0 ** jnp.arange(-MOST, MOST + 1)
    ends = jax.vmap(lambda size: follow(begin, size, STEPS, RUNG, tuned))(sizes)
    lengths = jnp.linalg.norm(begin.momentum) * jnp.linalg.norm(ends.momentum, axis=1)
    return ends, jnp.arccos(ends.momentum @ begin.momentum / lengths)


def tried(begin: Trajectory, tuned: Params) -> Tried:
    ends, angles = jax.tree.map(np.asarray, _follow(begin, tuned))
    errors = np.nan_to_num(ends.error, nan=np.inf)
    exponents = range(-MOST, MOST + 1)
    turned = ~(angles < np.pi / 4)
    return Tried(
        dict(zip(exponents, errors, strict=True)), dict(zip(exponents, turned, strict=True)), ends
    )


@eqx.filter_jit
def _start(key: Key, momentum: Array, tuned: Params) -> Trajectory:
    point = Exact(RUNG, True)(key)
    slope = whiten(tuned.factor, RUNG.gradient(point))
    return Trajectory(point, momentum, slope, jnp.zeros(()), jnp.zeros(()))


def chosen(seen: Tried, small: float, large: float) -> int:
    """The rule as the module states it."""
    j = 0
    if seen.error[0] > large:
        while seen.error[j] > large and j > -MOST:
            j -= 1
        return j
    while seen.error[j] < small and not seen.turned[j] and j < MOST:
        j += 1
    return j if j == 0 or seen.error[j] < small else j - 1


def test_a_step_follows_the_rule_from_both_ends():
    step = eqx.filter_jit(MOVE.step)
    told, kinds = [], set()
    for i in range(48):
        key, tuned = jax.random.key(i), params((0.1, 0.5, 1.2)[i % 3])
        momentum, uniforms = normals_and_uniforms(key, 2, 4, jnp.result_type(float))
        low, high = sorted(float(u) for u in uniforms[2:])
        start = _start(jax.random.key(1000 + i), momentum, tuned)
        point, seen = start.end, tried(start, tuned)
        bounds = -np.log(high), -np.log(low)
        exponent = chosen(seen, *bounds)
        end = seen.end(exponent)
        agrees = chosen(tried(reverse(end), tuned), *bounds) == exponent
        likely = bool(jnp.log(uniforms[0]) < end.log_ratio)
        after, info = step(key, point, RUNG, tuned)
        assert bool(info.accepted) == (likely and agrees)
        expected = end.end.position if likely and agrees else point.position
        np.testing.assert_allclose(after.position, expected, rtol=1e-9)
        np.testing.assert_allclose(
            info.acceptance[0], np.exp(min(0.0, float(seen.end(0).log_ratio))), rtol=1e-9
        )
        told.append(int(info.num_evaluations) // STEPS)
        kinds.add((int(np.sign(exponent)), likely, agrees))
    # The seeds show every kind of search.
    assert {sign for sign, *_ in kinds} == {-1, 0, 1}
    assert {(-1, True, True), (1, True, True)} <= kinds
    assert any(likely and not agrees for _, likely, agrees in kinds)
    assert min(told) == 1


@pytest.mark.slow
def test_reversibility_rejects_a_step_without_its_check(seed: int):
    twin = broken.AutoStepWithoutCheck(1, 0.3, 20, (None,), "diagonal", (0.8,))
    verdict = run(reversibility, twin, params(2.0), seed, num_replicates=8192)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


def test_a_wall_or_a_density_that_is_not_a_number_halves_the_step():
    for beyond in (-jnp.inf, jnp.nan):
        rung = SingleRung(
            lambda x, b=beyond: jnp.where(x[0] > 0, -0.5 * jnp.sum(x**2) / 0.01, b)
        ).at(0)
        point = rung.evaluate(jnp.array([0.1, 0.0]), gradient=True)
        step = eqx.filter_jit(auto_step(3, max_doublings=12).step)
        went = []
        for i in range(20):
            point, info = step(jax.random.key(i), point, rung, params(2.0, factor=jnp.ones(2)))
            assert np.isfinite(rung.log_density(point))
            went.append(bool(info.accepted))
        assert np.mean(went) > 0.3


def test_every_evaluation_is_counted_with_and_without_gradients_at_points():
    rows, tuned = np.linspace(-1, 1, 7), params(0.6, factor=jnp.ones(2))
    move = auto_step(STEPS)

    @eqx.filter_jit
    def step(key: Key, point: Point, rung: Rung) -> Info:
        return move.step(key, point, rung, tuned)[1]

    def prior(x: Array) -> Array:
        return -0.5 * jnp.sum(x**2)

    whole = GeometricLadder(prior, lambda x: jnp.sum(terms(x, rows)), np.array([0.0, 0.5, 1.0]))
    for rung, bare in ((whole.at(1), 0), (PrefixLadder(prior, terms, rows, (2, 7)).at(1), 1)):
        point = rung.evaluate(jnp.array([0.3, -0.2]), gradient=True)
        assert (point.gradients is None) == bool(bare)
        for i in range(3):
            info, made = count_rows(step, jax.random.key(i), point, rung)
            assert made["plain"] == len(rows) * int(info.num_values)
            assert made["gradient"] == len(rows) * int(info.num_evaluations - info.num_values)
            assert int(info.num_values) == bare * (int(info.num_evaluations) - bare) / 2
            assert (int(info.num_evaluations) - bare) % STEPS == 0
            assert (info.slope is None) == (not bare)
