"""HMC in position order, as it runs on nested subsamples, where points carry no gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.moves import broken_hmc_position_order as broken
from tests.moves.curved_rung import DENSE, DIAGONAL, RUNG, Exact, Kernel, params, run, volume
from tests.shared.subsampled_rows import AtRung, make_ladder

from temperance._types import Point
from temperance.moves.hmc import Hmc, hmc
from temperance.testing import Verdict, invariance, reversibility

STEPS, SIZE = 3, 0.7
POSITION = hmc(STEPS, integrator="position")
TWINS = (
    broken.WithoutTheHalfDriftTakenBack,
    broken.WithAWholeFirstDrift,
    broken.WithGradientsOfTheStart,
    broken.WithoutMomentumInTheRatio,
)


def twin(kind: type[Hmc]) -> Hmc:
    return kind(STEPS, 0.0, (None,), "diagonal", (0.8,))


@pytest.mark.parametrize("factor", [DIAGONAL, DENSE], ids=["diagonal", "dense"])
def test_position_order_leaves_the_rung_invariant_and_is_reversible(factor: Array, seed: int):
    tuned = params(SIZE, factor=factor)
    assert not POSITION.uses_gradient
    verdict = run(invariance, POSITION, tuned, seed, num_steps=12, band=(0.5, 0.98))
    assert verdict.passed, verdict
    verdict = run(reversibility, POSITION, tuned, seed, band=(0.5, 0.98))
    assert verdict.passed, verdict


@pytest.mark.parametrize("kind", TWINS)
def test_invariance_rejects_slips_in_position_order(kind: type[Hmc], seed: int):
    verdict = run(invariance, twin(kind), params(SIZE), seed, num_steps=12)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


# A hot and a cold rung of nested subsamples, both Gaussian and neither centred.

SIZES = (2, 12)


def of_point(point: Point) -> Array:
    u, v = jnp.tanh(2 * (point.position - jnp.array([0.6, -0.4])))
    known = jnp.tanh(0.1 * jnp.sum(point.components) + 2.0)
    return jnp.stack([u, v, u * v, u**2, v**2, known])


def on_subsample(move: Hmc, rung: int, seed: int) -> Verdict:
    ladder = make_ladder(SIZES)
    width = (SIZES[rung] + 0.5) ** -0.5
    kernel = Kernel(move, params(1.2, factor=jnp.array([0.9, 1.1]) * width), ladder.at(rung))
    return invariance(
        kernel, AtRung(ladder, rung), of_point, num_steps=12, seed=seed, band=(0.3, 0.98)
    )


@pytest.mark.parametrize("rung", [0, 1])
def test_position_order_leaves_nested_subsamples_invariant(rung: int, seed: int):
    verdict = on_subsample(hmc(STEPS), rung, seed)
    assert verdict.passed, verdict


@pytest.mark.parametrize("rung", [0, 1])
def test_invariance_on_nested_subsamples_rejects_a_slip(rung: int, seed: int):
    verdict = on_subsample(twin(broken.WithoutTheHalfDriftTakenBack), rung, seed)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


# Without randomness.


def test_the_loose_twin_without_a_slip_is_ours(seed: int):
    """The twins differ from ours in their slips alone, and drifts may be run together."""
    point = Exact(RUNG, False)(jax.random.key(seed))
    found = []
    for move in (twin(broken.LoosePositionHmc), hmc(STEPS, jitter=0.0, integrator="position")):
        step = eqx.filter_jit(move.step)
        ends = [step(jax.random.key(i), point, RUNG, params(SIZE)) for i in range(4)]
        found.append([(end.position, info.acceptance[0]) for end, info in ends])
    assert any(not np.array_equal(end, point.position) for end, _ in found[0])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), *found)


def ours(factor: Array):
    """Where a trajectory ends, and its momentum there."""

    def both(x: Array, z: Array) -> tuple[Array, Array]:
        point = RUNG.evaluate(x, gradient=False)
        end, last, _ = POSITION._position_steps(
            point, z, jnp.asarray(0.4), RUNG, params(0.4, factor=factor)
        )
        return end.position, last

    return jax.jit(both)


def theirs(kind: type[broken.LoosePositionHmc]):
    return jax.jit(lambda x, z: twin(kind).path(x, z, jnp.asarray(0.4), RUNG.slope, params(0.4)))


def astray(both, x: Array, z: Array) -> float:
    """How far from its start a trajectory there and back ends."""
    there = both(x, z)
    assert np.linalg.norm(there[0] - x) > 0.1
    back = both(there[0], -there[1])
    return float(max(np.abs(back[0] - x).max(), np.abs(-back[1] - z).max()))


@pytest.mark.parametrize("factor", [DIAGONAL, DENSE], ids=["diagonal", "dense"])
def test_position_order_runs_backwards_and_keeps_volume(factor: Array, seed: int):
    x, z = jnp.asarray(np.random.default_rng(seed).normal(size=(2, 2)))
    assert astray(ours(factor), x, z) < 1e-11
    assert abs(volume(ours(factor), x, z) - 1) < 1e-10


@pytest.mark.parametrize("kind", TWINS[:3])
def test_the_way_back_rejects_the_slips(kind: type[broken.LoosePositionHmc], seed: int):
    x, z = jnp.asarray(np.random.default_rng(seed).normal(size=(2, 2)))
    assert astray(theirs(kind), x, z) > 1e-3
