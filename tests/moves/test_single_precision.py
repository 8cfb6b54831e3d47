"""HMC that kicks by gradients of single precision, on densities where those are far off.

Rows and positions are moved so far from zero that single precision has whole numbers and nothing
between: gradients become steps. The law is to be what it is without them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.moves import broken_single_precision as broken
from tests.moves.curved_rung import Kernel, params
from tests.shared.subsampled_rows import AtRung, Terms, draw_prior, log_prior, make_rows

import temperance as tp
from temperance._types import Point
from temperance.engine.loop import step_chains
from temperance.errors import ArgumentError
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import Rung
from temperance.ladders.prefix import PrefixLadder
from temperance.moves.hmc import Hmc, hmc, in_single, kicks
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.samplers.plain import Plain
from temperance.samplers.transitions import TemperedTransitions
from temperance.testing import Verdict, invariance, reversibility

FAR = 2.0**23
SIZES = (2, 12)
STEPS = 3
TWINS = (broken.DecidesInSingle, broken.KicksInSingleAtFirst)


class FarTerms(Terms):
    """The same terms, from where single precision sees whole numbers."""

    def __call__(self, x: Array, rows: Array) -> Array:
        return super().__call__(x + FAR, rows + FAR)


def far_ladder(sizes: tuple[int, ...] = SIZES) -> PrefixLadder:
    return PrefixLadder(log_prior, FarTerms(0.0), make_rows(sizes[-1]), sizes)


def twin(kind: type[Hmc]) -> Hmc:
    return kind(STEPS, 0.2, (None,), "diagonal", (0.8,))


def of_point(point: Point) -> Array:
    u, v = jnp.tanh(2 * (point.position - jnp.array([0.6, -0.4])))
    return jnp.stack([u, v, u * v, u**2, v**2])


def judged(
    judge: Callable[..., Verdict], move: Hmc, rung: int, seed: int, **options: Any
) -> Verdict:
    ladder = far_ladder()
    width = (SIZES[rung] + 0.5) ** -0.5
    kernel = Kernel(move, params(1.2, factor=jnp.array([0.9, 1.1]) * width), ladder.at(rung))
    return judge(kernel, AtRung(ladder, rung), of_point, seed=seed, **options)


@pytest.mark.parametrize(("single", "rung"), [("hot", 0), ("always", 0), ("always", 1)])
def test_rough_gradients_leave_the_law_as_it_is(single: str, rung: int, seed: int):
    move = hmc(STEPS, single=single)
    verdict = judged(invariance, move, rung, seed, num_steps=12, band=(0.3, 0.98))
    assert verdict.passed, verdict
    verdict = judged(reversibility, move, rung, seed, band=(0.3, 0.98))
    assert verdict.passed, verdict


@pytest.mark.parametrize("rung", [0, 1])
@pytest.mark.parametrize("kind", TWINS)
def test_invariance_rejects_single_precision_elsewhere(kind: type[Hmc], rung: int, seed: int):
    verdict = judged(invariance, twin(kind), rung, seed, num_steps=12)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


# Without randomness.


def test_gradients_are_rough_where_they_are_said_to_be(seed: int):
    """What the tests above are worth: the gradients that they kick by are off by a tenth."""
    ladder = far_ladder()
    x = jnp.asarray(np.random.default_rng(seed).normal(size=2))
    hot, target = ladder.at(0), ladder.at(1)
    for rung, single in ((hot, "hot"), (hot, "always"), (target, "always")):
        rough, right = eqx.filter_jit(kicks(rung, single))(x), eqx.filter_jit(rung.slope)(x)
        assert rough.dtype == right.dtype
        assert 0.01 < np.abs(rough - right).max() < 4.0
    for rung, single in ((hot, "never"), (target, "never"), (target, "hot")):
        np.testing.assert_array_equal(
            eqx.filter_jit(kicks(rung, single))(x), eqx.filter_jit(rung.slope)(x)
        )


def astray(move: Hmc, rung: Rung, seed: int) -> float:
    """How far from its start a trajectory there and back ends."""
    x, z = jnp.asarray(np.random.default_rng(seed).normal(size=(2, 2)))

    @jax.jit
    def both(x: Array, z: Array) -> tuple[Array, Array]:
        point = rung.evaluate(x, gradient=False)
        factor = jnp.full(2, 0.3)
        end, last, _ = move._position_steps(
            point, z, jnp.asarray(1.2), rung, params(1.2, factor=factor)
        )
        return end.position, last

    there = both(x, z)
    assert np.linalg.norm(there[0] - x) > 0.1
    back = both(there[0], -there[1])
    return float(max(np.abs(back[0] - x).max(), np.abs(-back[1] - z).max()))


def test_rough_kicks_run_backwards(seed: int):
    rung = far_ladder().at(1)
    assert astray(hmc(STEPS, single="always"), rung, seed) < 1e-10
    assert astray(twin(broken.KicksInSingleAtFirst), rung, seed) > 1e-3


class Overflowing(eqx.Module):
    """A normal density, by way of numbers that single precision does not have."""

    def __call__(self, x: Array, rows: Array) -> Array:
        huge = jnp.exp(100.0 + 0.0 * x)
        return -0.5 * jnp.sum((x * huge)[None] * (rows * 0 + x[None] / huge[None]), axis=1)


def test_what_single_precision_cannot_do_is_done_in_double(seed: int):
    ladder = PrefixLadder(log_prior, Overflowing(), np.ones((4, 2)), (2, 4))
    x = jnp.asarray(np.random.default_rng(seed).normal(size=2))
    light = in_single(ladder.at(0))
    assert not np.isfinite(light(in_single(x)))
    np.testing.assert_array_equal(kicks(ladder.at(0), "hot")(x), ladder.at(0).slope(x))


class Looping(Terms):
    """A loop that starts in double precision and goes on in whatever its rows have."""

    def __call__(self, x: Array, rows: Array) -> Array:
        start = jnp.zeros(rows.shape[0], jnp.float64)
        looped = jax.lax.fori_loop(0, 2, lambda _, carry: carry.astype(rows.dtype), start)
        return super().__call__(x, rows) + looped


def test_a_density_that_is_of_double_precision_alone_says_what_to_do():
    ladder = PrefixLadder(log_prior, Looping(0.0), make_rows(4), (2, 4))
    with pytest.raises(ArgumentError, match=r"single='hot'.*single precision.*single='never'"):
        kicks(ladder.at(0), "hot")(jnp.zeros(2))
    assert np.isfinite(kicks(ladder.at(1), "hot")(jnp.zeros(2))).all()


@pytest.mark.parametrize("sampler", [Plain, ParallelTempering])
def test_heated_by_powers_it_is_done_in_double_too(sampler: Any, seed: int):
    """And decided as it goes: no more than one side is evaluated, whatever the number of chains."""
    rows = jnp.ones((4, 2))
    ladder = GeometricLadder(log_prior, lambda x: jnp.sum(Overflowing()(x, rows)), [0.5, 1.0])
    x = jnp.asarray(np.random.default_rng(seed).normal(size=2))
    rung = ladder.at(0)
    np.testing.assert_array_equal(kicks(rung, "always")(x), rung.slope(x))
    tuned = tp.Params(jnp.full((2, 1), 0.3), jnp.ones((2, 2)))
    made = sampler(ladder, hmc(STEPS, single="always"), tuned)
    start = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), made.init(x))
    keys = jax.random.split(jax.random.key(seed), 3)
    ends, _ = step_chains(made, keys, start)
    assert np.abs(np.asarray(jax.vmap(made.snapshot)(ends)["position"]) - x[None]).max() > 0.01

    def program(step: Callable[..., Any]) -> str:
        return str(jax.make_jaxpr(lambda keys, state: step(keys, state)[0])(keys, start))

    assert "cond[" in program(partial(step_chains, made))
    assert "cond[" not in program(jax.vmap(made.step))


def programs(single: str) -> list[str]:
    """What the kicks of each rung of a Gaussian process are made of."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(24, 2))
    problem = tp.gaussian_process(inputs, np.sin(inputs[:, 0]))
    ladder = PrefixLadder.of(problem, [12, 24])
    start = problem.draw_prior(jax.random.key(0))
    return [str(jax.make_jaxpr(kicks(ladder.at(k), single))(start)) for k in (0, 1)]


def test_only_hot_rungs_factor_in_single_precision():
    hot, target = programs("hot")
    assert "f32[12,12]" in hot
    assert "f32[24,24]" not in target
    assert "f32[24,24]" in programs("always")[1]
    assert "f32[" not in "".join(programs("never"))


def test_gradients_of_a_gaussian_process_are_nearly_the_same(seed: int):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(40, 3))
    y = np.sin(inputs[:, 0]) + 0.2 * rng.normal(size=40)
    ladder = PrefixLadder.of(tp.gaussian_process(inputs, y), [20, 40])
    start = {
        "log_length": jnp.asarray(rng.normal(0.3, 0.3, 3)),
        "log_scale": jnp.asarray(0.2),
        "log_noise": jnp.asarray(-1.5),
    }
    for k in (0, 1):
        rung = ladder.at(k)
        close, right = (
            eqx.filter_jit(kicks(rung, "always"))(start),
            eqx.filter_jit(rung.slope)(start),
        )
        np.testing.assert_allclose(close, right, rtol=1e-3, atol=1e-3)
        assert not np.array_equal(close, right)


def test_points_carry_no_gradients_where_all_kicks_are_single():
    hot, always = hmc(single="hot"), hmc(single="always")
    assert hot.uses_gradient
    assert not hot.branches
    assert not always.uses_gradient
    assert always.sees_gradients()
    assert always.branches


@pytest.mark.parametrize("sampler", [ParallelTempering, TemperedTransitions])
def test_samplers_kick_in_single_precision_where_it_is_hot(sampler, seed: int):
    """Near zero, where single precision is fine, a step is the same up to its rounding."""
    ladder = PrefixLadder(log_prior, Terms(0.3), make_rows(12), (2, 5, 12), independent=False)
    tuned = tp.Params(jnp.full((3, 1), 0.5), jnp.full((3, 2), 0.3))
    ends = []
    for single in ("never", "hot"):
        made = sampler(ladder, hmc(STEPS, single=single), tuned)
        state = made.init(draw_prior(jax.random.key(seed)))
        program = str(jax.make_jaxpr(made.step)(jax.random.key(0), state))
        assert ("f32[2]" in program) == (single == "hot")
        state, _ = eqx.filter_jit(made.step)(jax.random.key(seed + 1), state)
        ends.append(np.asarray(made.snapshot(state)["position"]))
    np.testing.assert_allclose(*ends, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["plain", "pt", "tt", "st", "gibbs-ct", "joint-ct", "ais"])
def test_every_way_to_travel_takes_it(method: str):
    def two_modes(x: Array) -> Array:
        return jnp.logaddexp(-0.5 * jnp.sum((x - 2) ** 2), -0.5 * jnp.sum((x + 2) ** 2))

    target = tp.Target(two_modes, base=tp.Gaussian([0.0, 0.0], 9.0))
    options = {"num_draws": 200, "num_warmup": 100, "progress": False}
    tree = tp.sample(target, method, tp.hmc(single="always"), **options)
    draws = tree["posterior"]["x"]
    assert draws.dtype == np.float64
    assert np.isfinite(draws.values).all()
    if method in ("pt", "tt"):
        assert abs(float((draws > 0).mean()) - 0.5) < 0.2
