"""The equi-energy sampler: its jump exactly, its rings in time, and whole runs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from jaxtyping import Array
from tests.samplers.equi_energy import broken_jumps
from tests.shared import small_runs
from tests.shared.small_runs import assert_identical, make_problem
from tests.test_sampling import LIMIT, scores

import temperance as tp
from temperance.engine.checkpoint import Store
from temperance.errors import ArgumentError, MoveError, UnknownNameError
from temperance.estimates.diagnostics import standard_error
from temperance.ladders.energies import EnergyLadder, spaced_temperatures
from temperance.moves.move import Params
from temperance.samplers.equi_energy.all_rungs import EquiEnergy
from temperance.samplers.equi_energy.jumps import jump
from temperance.samplers.equi_energy.one_rung import EquiEnergyRung, EquiEnergyRungState
from temperance.samplers.equi_energy.reservoir import Reservoir, add, empty
from temperance.testing import enumeration, invariance

# -- by enumeration ------------------------------------------------------------------------------

# Energies of eight states on a cycle: three valleys, and states on all sides of each level.
ENERGIES = np.array([0.3, 2.0, 4.5, 0.9, 1.6, 5.5, 0.1, 3.1])
HEAT = np.array([6.0, 2.5, 1.0])
LEVELS = np.array([3.0, 1.0, -np.inf])


def table_ladder() -> EnergyLadder:
    energies = jnp.asarray(ENERGIES)
    return EnergyLadder(lambda x: -energies[x.astype(int)], HEAT, LEVELS)


def laws(ladder: EnergyLadder) -> np.ndarray:
    states = jnp.arange(8.0)
    table = np.asarray(jax.vmap(ladder.log_densities)(states)).T
    return np.stack([enumeration.normalised(row) for row in table])


def jump_matrix(rung: int, jump: Callable[..., Any]) -> np.ndarray:
    """P(x, y) from the jump's own probabilities, with rings that hold rung - 1 exactly.

    A reservoir with nothing but y says with which probability a jump from x lands there once y is
    drawn; y is drawn with its share of its ring at the hotter rung.
    """
    ladder = table_ladder()
    points = jax.vmap(lambda x: ladder.evaluate(x, gradient=False))(jnp.arange(8.0))
    rings = jax.vmap(ladder.ring)(points.components)
    hotter = laws(ladder)[rung - 1]
    shares = hotter / np.array([hotter[np.asarray(rings) == ring].sum() for ring in rings])

    def chance(x: Any, y: Any, ring: Array) -> Array:
        none = empty(y, ladder.num_rings, 1)
        only = add(none, ring, y, jnp.asarray(True))
        told = jump(jax.random.key(0), x, only, ladder, rung)[1]
        return told.found * told.acceptance

    every = jax.vmap(jax.vmap(chance, (None, 0, 0)), (0, None, None))(points, points, rings)
    matrix = np.asarray(every) * shares[None]
    np.fill_diagonal(matrix, 0.0)
    return matrix + np.diag(1 - matrix.sum(axis=1))


@pytest.mark.parametrize("rung", [1, 2])
def test_a_jump_into_exact_rings_leaves_its_rung_alone(rung: int) -> None:
    law = laws(table_ladder())[rung]
    matrix = jump_matrix(rung, jump)
    assert matrix.min() >= 0.0
    assert enumeration.defect(matrix, law) < 1e-12
    assert enumeration.imbalance(matrix, law) < 1e-12
    assert (matrix - np.diag(np.diag(matrix)) > 0.05).any()
    # And with a move before it, which is one step of the sampler.
    step = enumeration.cycle_metropolis(np.log(law)) @ (0.5 * np.eye(8) + 0.5 * matrix)
    assert enumeration.total_variation(enumeration.stationary(step), law) < 1e-12


@pytest.mark.parametrize("name", broken_jumps.JUMPS)
def test_broken_jumps_do_not(name: str) -> None:
    law = laws(table_ladder())[2]
    matrix = jump_matrix(2, broken_jumps.JUMPS[name])
    step = enumeration.cycle_metropolis(np.log(law)) @ (0.5 * np.eye(8) + 0.5 * matrix)
    assert enumeration.defect(matrix, law) > 1e-3
    assert enumeration.total_variation(enumeration.stationary(step), law) > 0.01


# -- by invariance -------------------------------------------------------------------------------

# In two dimensions h = |x|^2 / 2 is flat below a level and exponential above it, at any angle.
PLANE_HEAT = spaced_temperatures(4.0, 3)
PLANE_LEVELS = np.array([0.9, 0.35, -np.inf])
NUM_STORED = 12


def plane() -> EnergyLadder:
    return EnergyLadder(lambda x: -0.5 * jnp.sum(x**2), PLANE_HEAT, PLANE_LEVELS)


def draw_rung(key: jax.Array, rung: Array | int) -> Array:
    """One exact draw of rung `rung`."""
    heat, level = jnp.asarray(PLANE_HEAT)[rung], jnp.maximum(jnp.asarray(PLANE_LEVELS)[rung], 0.0)
    uniforms = jax.random.uniform(key, (3,))
    flat = uniforms[0] < level / (level + heat)
    h = jnp.where(flat, level * uniforms[1], level - heat * jnp.log1p(-uniforms[1]))
    angle = 2 * jnp.pi * uniforms[2]
    return jnp.sqrt(2 * h) * jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def exact_rings(key: jax.Array, ladder: EnergyLadder, rung: Array | int) -> Reservoir:
    """Rings filled with new and independent draws of `rung`."""
    points = jax.vmap(
        lambda k: ladder.evaluate(draw_rung(k, rung), gradient=False)
    )(jax.random.split(key, NUM_STORED))  # fmt: skip
    none = empty(jax.tree.map(lambda leaf: leaf[0], points), ladder.num_rings, 5)

    def one(rings: Reservoir, point: Any) -> tuple[Reservoir, None]:
        return add(rings, ladder.ring(point.components), point, jnp.asarray(True)), None

    return jax.lax.scan(one, none, points)[0]


def statistics(x: Array) -> Array:
    h = 0.5 * jnp.sum(x**2)
    return jnp.stack([h, jnp.exp(-h), x[0], x[0] * x[1], jnp.tanh(x[0] + x[1])])


class JumpAlone(eqx.Module):
    """A jump of rung 1 into rings that are new each time."""

    jump: Any = eqx.field(static=True)
    rung: int = eqx.field(static=True, default=1)

    def __call__(self, key: jax.Array, x: Array) -> Array:
        key_rings, key_jump = jax.random.split(key)
        ladder = plane()
        rings = exact_rings(key_rings, ladder, self.rung - 1)
        point = ladder.evaluate(x, gradient=False)
        return self.jump(key_jump, point, rings, ladder, self.rung)[0].position


def at_rung_1(key: jax.Array) -> Array:
    return draw_rung(key, 1)


def at_the_target(key: jax.Array) -> Array:
    return draw_rung(key, 2)


def test_a_jump_into_new_draws_is_invariant(seed: int) -> None:
    verdict = invariance(JumpAlone(jump), at_rung_1, statistics, seed=seed, num_steps=8)
    assert verdict.passed, verdict


@pytest.mark.parametrize("name", broken_jumps.JUMPS)
def test_broken_jumps_are_not(name: str, seed: int) -> None:
    # The printed ratio needs two hotter rungs.
    step = JumpAlone(broken_jumps.JUMPS[name], rung=2)
    assert not invariance(step, at_the_target, statistics, seed=seed, num_steps=8).lawful


def parameters() -> Params:
    return Params(jnp.asarray([[3.0], [2.0], [1.5]]), jnp.ones((3, 2)))


class AllRungs(eqx.Module):
    """One step of the sampler of all rungs, with new rings; `shift` takes those of other rungs."""

    shift: int = eqx.field(static=True, default=0)

    def __call__(self, key: jax.Array, positions: Array) -> Array:
        key_rings, key_step = jax.random.split(key)
        ladder = plane()
        sampler = EquiEnergy(ladder, tp.metropolis(), parameters(), 0.7, 5, stagger=0, burn_in=0)
        keys = jax.random.split(key_rings, 2)
        rungs = jnp.arange(2) + self.shift
        rings = jax.vmap(lambda k, rung: exact_rings(k, ladder, rung))(keys, rungs)
        state = sampler.init_replicas(positions)._replace(rings=rings)
        return sampler.step(key_step, state)[0].points.position


def every_rung(key: jax.Array) -> Array:
    return jax.vmap(draw_rung)(jax.random.split(key, 3), jnp.arange(3))


def joint_statistics(positions: Array) -> Array:
    own = jax.vmap(statistics)(positions)[:, :3].reshape(-1)
    return jnp.append(own, jnp.tanh(positions[1, 0] * positions[2, 0]))


def test_a_step_of_all_rungs_is_invariant(seed: int) -> None:
    verdict = invariance(AllRungs(), every_rung, joint_statistics, seed=seed, num_steps=3)
    assert verdict.passed, verdict


def test_with_the_rings_of_the_rung_itself_it_is_not(seed: int) -> None:
    twin = AllRungs(shift=1)
    assert not invariance(twin, every_rung, joint_statistics, seed=seed, num_steps=3).lawful


@pytest.mark.parametrize("rung", [0, 2])
def test_a_step_of_one_rung_is_invariant(rung: int, seed: int) -> None:
    def step(key: jax.Array, x: Array) -> Array:
        key_rings, key_step = jax.random.split(key)
        ladder, zero = plane(), jnp.zeros((), int)
        one = EquiEnergyRung(
            ladder, tp.metropolis(), parameters(), jnp.asarray(rung), zero, 0.7, 5, True
        )
        state = one.init(x)
        if rung:
            state = state._replace(hotter=exact_rings(key_rings, ladder, rung - 1))
        return one.step(key_step, state)[0].point.position

    verdict = invariance(step, lambda key: draw_rung(key, rung), statistics, seed=seed, num_steps=3)
    assert verdict.passed, verdict


# -- rings in time -------------------------------------------------------------------------------


def trace(sampler: Any, state: Any, num_steps: int, key: jax.Array) -> Any:
    """States and infos after each of `num_steps`."""

    def body(state: Any, key: jax.Array) -> Any:
        state, info = sampler.step(key, state)
        return state, (state, info)

    return jax.jit(lambda s: jax.lax.scan(body, s, jax.random.split(key, num_steps))[1])(state)


def test_rungs_follow_each_other_and_rings_freeze(key: jax.Array) -> None:
    stagger, burn_in = 20, 5
    sampler = EquiEnergy(plane(), tp.metropolis(), parameters(), 1.0, 100, stagger, burn_in)
    states, infos = trace(sampler, sampler.init(jnp.ones(2)), 60, key)
    steps = np.arange(1, 61)
    written = np.asarray(states.rings.written).sum(axis=-1)
    for rung in (0, 1):
        wanted = np.clip(np.minimum(steps, 2 * stagger) - rung * stagger - burn_in, 0, None)
        np.testing.assert_array_equal(written[:, rung], wanted)
    tried = np.asarray(infos.jump_tried)
    np.testing.assert_array_equal(tried.sum(axis=0), [0, 40, 20])
    assert tried[:20].sum() == 0
    # A jump stays in its ring, and finds a state where the ring above has one.
    rings = np.asarray(jax.vmap(jax.vmap(sampler.ladder.ring))(states.points.components))
    above = np.asarray(states.rings.written)[40:, 1]
    has = above[np.arange(20), rings[40:, 2]] > 0
    np.testing.assert_array_equal(np.asarray(infos.jump_found)[40:, 2], has)
    assert (np.asarray(infos.jumped) <= np.asarray(infos.jump_found)).all()
    assert np.asarray(infos.jumped)[20:, 1].sum() > 0
    # Frozen, the rings stay as they are to the last bit.
    for leaf in jax.tree.leaves(states.rings):
        assert (np.asarray(leaf)[40:] == np.asarray(leaf)[39]).all()
    # What is stored is what was there, in the ring of its energy.
    first = np.asarray(states.points.position)[burn_in : 2 * stagger, 0]
    stored = np.asarray(states.rings.points.position)[-1, 0]
    held = np.asarray(states.rings.written)[-1, 0]
    energies = 0.5 * np.sum(first**2, axis=1)
    ring = np.searchsorted(PLANE_LEVELS[-2::-1], energies, side="right")
    for j in range(3):
        np.testing.assert_array_equal(stored[j, : held[j]], first[ring == j])
    assert float(states.lowest[-1]) == pytest.approx(
        0.5 * np.sum(np.asarray(states.points.position) ** 2, axis=-1).min(), rel=0.5
    )


def test_one_rung_fills_its_rings_and_counts_its_own_moves(key: jax.Array) -> None:
    ladder = plane()
    rung, burn_in = jnp.asarray(1), jnp.asarray(7)
    sampler = EquiEnergyRung(ladder, tp.hmc(3), parameters(), rung, burn_in, 0.5, 100, True)
    state = sampler.init(jnp.ones(2))
    states, infos = trace(sampler, state, 30, key)
    assert isinstance(state, EquiEnergyRungState)
    written = np.asarray(states.own.written).sum(axis=-1)
    np.testing.assert_array_equal(written, np.clip(np.arange(1, 31) - 7, 0, None))
    assert np.asarray(states.hotter.written).sum() == 0
    np.testing.assert_array_equal(np.asarray(infos.num_evaluations).sum(axis=0), [0, 90, 0])
    assert np.asarray(infos.jump_found).sum() == 0
    assert 0 < np.asarray(infos.jump_tried)[:, 1].sum() < 30
    drawing = EquiEnergyRung(ladder, tp.hmc(3), parameters(), rung, burn_in, 0.5, 100, False)
    assert drawing.init(jnp.ones(2)).own is None


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"ladder": tp.GeometricLadder(abs, abs, [0.0, 1.0])}, ArgumentError, "EnergyLadder"),
        ({"jump_probability": 1.5}, ArgumentError, "jump_probability"),
        ({"capacity": 0}, ArgumentError, "capacity"),
        ({"stagger": -1}, ArgumentError, "stagger"),
        ({"move": replace(tp.metropolis(), exact=False)}, MoveError, "exact move"),
    ],
)
def test_samplers_that_cannot_be(changes: Any, error: Any, words: str) -> None:
    parts = {"ladder": plane(), "move": tp.metropolis(), "params": parameters()} | changes
    jaxtyping.config.update("jaxtyping_disable", True)  # as a user has it
    try:
        with pytest.raises(error, match=words):
            EquiEnergy(**parts)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


# -- whole runs ----------------------------------------------------------------------------------

WEIGHT, APART = 0.3, 4.0
SHORT: dict[str, Any] = {
    "method": "ee", "move": "metropolis", "num_draws": 30, "num_warmup": 60, "num_chains": 2,
    "sweeps_per_draw": 2, "num_fill": 50, "capacity": 50, "progress": False,
}  # fmt: skip


def mixture(x: Array) -> Array:
    """Two modes eight standard deviations apart in two dimensions."""
    left, right = (-0.5 * jnp.sum((x - jnp.asarray([m, 0.0])) ** 2) for m in (-APART, APART))
    return jnp.logaddexp(np.log(WEIGHT) + left, np.log(1 - WEIGHT) + right)


def two_modes() -> tp.Target:
    return tp.Target(mixture, tp.Gaussian(np.zeros(2), 25.0))


def test_draws_are_from_the_posterior() -> None:
    long = {"num_rungs": 3, "num_draws": 2000, "num_warmup": 200, "num_fill": 1000, "num_chains": 4}
    tree = tp.sample(make_problem(), **SHORT | long)
    assert np.abs(scores(tree)).max() < LIMIT
    assert standard_error(tree["posterior"]["mean"].values).max() < 0.2


@pytest.mark.slow
def test_two_modes_have_their_weights(seed: int) -> None:
    """Nothing is set by hand, and the errors of the rings are in the standard error."""
    tree = tp.sample(
        two_modes(), "ee", "metropolis", num_draws=1000, num_warmup=400, num_chains=8, seed=seed,
        progress=False,
    )  # fmt: skip
    x = tree["posterior"]["x"].values
    left = (x[..., 0] < 0).astype(float)
    inside = np.where(left > 0, x[..., 0] + APART, x[..., 0] - APART)
    series = np.stack([left, inside, inside**2, x[..., 1], x[..., 1] ** 2], axis=-1)
    errors = standard_error(series)
    away = (series.mean(axis=(0, 1)) - [WEIGHT, 0.0, 1.0, 0.0, 1.0]) / errors
    assert np.abs(away).max() < LIMIT
    assert errors[0] < 0.08
    assert (left.mean(axis=1) > 0.02).all()
    assert (left.mean(axis=1) < 0.8).all()
    tempering = tree["tempering"]
    heat, levels = tempering["temperature"].values, tempering["level"].values
    # The base is five times as wide as a mode.
    assert 6 < heat[0] < 60
    assert heat[-1] == 1.0
    assert levels[-1] == -np.inf
    # One rule for all rungs.
    steps = -np.diff(levels[:-1]) / heat[1:-1]
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)
    # One move a step, at the target alone, and what came before is told apart.
    assert tree.attrs["num_evaluations"] == 8 * 1000 * 8
    evaluations = tempering["num_evaluations"].values
    assert evaluations[-1] == 8 * 1000 * 8
    assert evaluations[:-1].sum() == 0
    fill = tempering["fill_evaluations"].values
    np.testing.assert_array_equal(fill[:-1], 8 * 1600.0)
    assert fill[-1] == 0
    facts = tp.summary(tree).facts
    for name in (
        "temperatures",
        "energy levels",
        "jump acceptance",
        "states in the target's rings",
    ):
        assert name in facts
    assert "kou2006" in tp.cite(tree)


def test_the_ladder_belongs_to_the_problem_and_not_to_the_seed() -> None:
    one, two = (tp.sample(make_problem(), seed=seed, num_rungs=3, **SHORT) for seed in (1, 2))
    np.testing.assert_array_equal(one["tempering"]["temperature"], two["tempering"]["temperature"])
    assert not np.array_equal(one["posterior"]["mean"], two["posterior"]["mean"])


def test_given_temperatures_and_levels_are_kept() -> None:
    given = {"temperatures": [8.0, 3.0, 1.0], "levels": [9.0, 6.0]}
    tree = tp.sample(make_problem(), **SHORT, **given)
    np.testing.assert_allclose(tree["tempering"]["temperature"], [8.0, 3.0, 1.0], rtol=1e-15)
    np.testing.assert_array_equal(tree["tempering"]["level"], [9.0, 6.0, -np.inf])


@pytest.mark.slow
def test_a_target_needs_no_base() -> None:
    tree = tp.sample(
        tp.Target(mixture, example=np.zeros(2)), max_temperature=20.0, num_rungs=3, **SHORT
    )
    np.testing.assert_allclose(tree["tempering"]["temperature"], [20.0, 20**0.5, 1.0])


def test_rungs_too_far_apart_are_told() -> None:
    far = {"temperatures": [1e9, 1e6, 1.0], "levels": [100.0, 50.0]}
    words = " ".join(tp.summary(tp.sample(two_modes(), **SHORT, **far)).warnings)
    assert "empty ring" in words
    assert "hardly ever accepted" in words


class StoppedError(Exception):
    """A process that ends between two blocks."""


@pytest.fixture(scope="module")
def whole() -> Any:
    return tp.sample(make_problem(), num_rungs=3, **SHORT)


@pytest.mark.parametrize("phase", ["pilot-1", "warm-1", "fill-0", "fill-1", "draw-0"])
def test_resumed_from_any_stage_the_draws_are_the_same(
    phase: str, whole: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.zarr"
    append = Store.append

    def stops(self: Store, name: str, *args: Any, **kwargs: Any) -> Any:
        block = append(self, name, *args, **kwargs)
        if name == phase:
            raise StoppedError
        return block

    call = {"problem": make_problem(), "num_rungs": 3, "checkpoint": path} | SHORT
    with small_runs.small_blocks():
        monkeypatch.setattr(Store, "append", stops)
        with pytest.raises(StoppedError):
            tp.sample(**call)
        monkeypatch.setattr(Store, "append", append)
        assert_identical(tp.sample(**call), whole)


def test_draws_are_appended(whole: Any, tmp_path: Path) -> None:
    call = {"problem": make_problem(), "num_rungs": 3, "checkpoint": tmp_path / "run.zarr"} | SHORT
    assert_identical(tp.sample(**call), whole)
    longer = tp.sample(**call | {"num_draws": 50})
    assert_identical(longer, whole, draws=30)
    assert longer["posterior"].sizes["draw"] == 50


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_temperature": 0.1}, "temperature above 1"),
        ({"max_temperature": True}, "temperature above 1"),
        ({"temperatures": [1.0, 5.0]}, "decreasing"),
        ({"temperatures": [5.0, 1.0], "max_temperature": 3.0}, "give one"),
        ({"temperatures": [5.0, 1.0], "num_rungs": 3}, "num_rungs is 3, but there are 2 temp"),
        ({"levels": [5.0]}, "give temperatures too"),
        ({"temperatures": [5.0, 2.0, 1.0], "levels": [1.0, 5.0]}, "decrease"),
        ({"temperatures": [5.0, 2.0, 1.0], "levels": [5.0, -np.inf]}, "finite"),
        ({"jump_probability": 0}, "jump_probability"),
        ({"jump_probability": "often"}, "jump_probability"),
        ({"capacity": 0}, "capacity: wanted a whole number"),
        ({"num_fill": 0}, "num_fill: wanted a whole number"),
        ({"num_warmup": 0}, "num_warmup"),
        ({"num_rungs": 1}, "num_rungs"),
    ],
)
def test_wrong_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        tp.sample(make_problem(), **SHORT | options)


def test_options_of_other_methods_are_unknown() -> None:
    with pytest.raises(UnknownNameError, match="betas"):
        tp.sample(make_problem(), betas=[0.1, 1.0], **SHORT)
