"""MINTEE: its jump summed over every batch, its steps from exact draws, and whole runs."""

from itertools import permutations
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.samplers.equi_energy import broken_mintee
from tests.shared import small_runs

import temperance as tp
from temperance.engine.checkpoint import Store
from temperance.errors import ArgumentError
from temperance.ladders.energies import EnergyLadder
from temperance.ladders.row_sums import Rows
from temperance.moves.move import Params
from temperance.rows.batches import Batches
from temperance.samplers.equi_energy.batch_energies import as_key, batch_sizes
from temperance.samplers.equi_energy.minibatch_rung import MinibatchRung
from temperance.samplers.equi_energy.one_rung import EquiEnergyRungState
from temperance.samplers.equi_energy.reservoir import add, empty
from temperance.testing import enumeration, invariance

SIZES = (2, 3, 6)
HEAT = np.array([5.0, 2.0, 1.0])
LEVELS = np.array([3.5, 2.0, -np.inf])
DATA = np.array([-1.4, -0.3, 0.2, 0.9, 1.1, 2.3])
TWINS = {
    "one energy for both rungs": broken_mintee.WithOneEnergyForBothRungs,
    "no ratio": broken_mintee.WithoutARatio,
    "every new batch taken": broken_mintee.WithEveryNewBatchTaken,
    "the ring of its own batch": broken_mintee.WithTheRingOfItsOwnBatch,
}


def log_prior(x: Array) -> Array:
    return -0.5 * jnp.sum((x / 2.0) ** 2)


def terms(x: Array, rows: Array) -> Array:
    return -0.5 * (rows - x[0]) ** 2


def make(kind: type[MinibatchRung], rung: int, **options: Any) -> MinibatchRung:
    rows = Rows(log_prior, terms, jnp.asarray(DATA), len(DATA))
    ladder = EnergyLadder(lambda x: log_prior(x) + jnp.sum(terms(x, DATA)), HEAT, LEVELS)
    params = Params(jnp.full((3, 1), 1.2), jnp.ones((3, 1)))
    return kind(
        rows, ladder, tp.metropolis(1.2, metric="unit"), params, jnp.asarray(0), SIZES, rung,
        **({"jump_probability": 0.7, "capacity": 8} | options),
    )  # fmt: skip


# -- the jump, summed over every order of the rows -----------------------------------------------

POSITIONS = np.array([-1.5, -0.4, 0.3, 1.0, 2.2])


def components(rung: int) -> np.ndarray:
    """-h of the rung's batch and of the hotter one's, for every position and every order."""
    of_rows = -0.5 * (DATA[None] - POSITIONS[:, None]) ** 2
    prior = -0.5 * (POSITIONS / 2.0) ** 2
    found = [
        [
            [
                prior[x] + 6 / m * of_rows[x, list(order[:m])].sum()
                for m in (SIZES[rung], SIZES[rung - 1])
            ]
            for order in permutations(range(6))
        ]
        for x in range(len(POSITIONS))
    ]
    return np.array(found).reshape(-1, 2)


def jump_matrix_defect(kind: type[MinibatchRung], rung: int) -> float:
    """Max |f P - f| of the jump alone, into rings that hold the hotter law exactly."""
    sampler, every = make(kind, rung), components(rung)
    level, beta = LEVELS[rung], 1 / HEAT[rung]
    law = enumeration.normalised(beta * np.minimum(every[:, 0], -level))
    hot = enumeration.normalised(np.minimum(every[:, 1], -LEVELS[rung - 1]) / HEAT[rung - 1])
    ring_of = jax.jit(jax.vmap(sampler.ring_to_jump_into))
    stored = np.asarray(jax.vmap(sampler.ladder.ring)(jnp.asarray(every[:, 1:])))
    asked = np.asarray(ring_of(jnp.asarray(every)))
    mass = np.array([hot[stored == ring].sum() for ring in range(3)])
    ratio = jax.jit(jax.vmap(sampler.jump_log_ratio, (None, 0)))
    flow_in, flow_out = np.zeros_like(law), np.zeros_like(law)
    for state, (here, ring) in enumerate(zip(every, asked, strict=True)):
        chance = np.where(stored == ring, hot / mass[ring], 0.0)
        chance = chance * np.exp(np.minimum(np.asarray(ratio(here, every)), 0.0))
        flow_in += law[state] * chance
        flow_out[state] = law[state] * chance.sum()
    return float(np.abs(flow_in - flow_out).max() / law.max())


@pytest.mark.parametrize("rung", [1, 2])
def test_a_jump_over_all_batches_leaves_its_rung_alone(rung: int) -> None:
    assert jump_matrix_defect(MinibatchRung, rung) < 1e-12


@pytest.mark.parametrize(
    "name", ["one energy for both rungs", "no ratio", "the ring of its own batch"]
)
def test_slips_of_the_jump_do_not(name: str) -> None:
    assert jump_matrix_defect(TWINS[name], 1) > 1e-3


# -- the kernel itself, from exact draws -----------------------------------------------------------

GRID = np.linspace(-7.0, 7.0, 2801)


def batch_table(rung: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every ordered batch of a rung, the chance of each, and the distribution of x given it.

    Three places of an order are told apart even where a rung looks at two, because a jump goes on
    to the third, which must not follow from the others.
    """
    m = SIZES[rung]
    batches = np.array(list(permutations(range(6), 3))) if m < 6 else np.zeros((1, 0), int)
    log_likelihood = -0.5 * (DATA[:, None] - GRID[None]) ** 2
    sums = [
        log_likelihood[b[:m]].sum(axis=0) if m < 6 else log_likelihood.sum(axis=0) for b in batches
    ]
    energy = -(6 / m * np.array(sums) - 0.5 * (GRID / 2.0) ** 2)
    density = np.exp(-np.maximum(energy, LEVELS[rung]) / HEAT[rung])
    mass = density.sum(axis=1)
    return batches, mass / mass.sum(), np.cumsum(density, axis=1) / mass[:, None]


def names_of(batches: np.ndarray) -> np.ndarray:
    """A name for each ordered batch, found by trying."""
    tried = np.random.default_rng(0).integers(0, 2**32, (40_000, 2), dtype=np.uint32)
    length = batches.shape[1]
    found = jax.jit(jax.vmap(lambda name: Batches(6).places(as_key(name), 0, length)))(tried)
    first = {tuple(batch): i for i, batch in reversed(list(enumerate(np.asarray(found).tolist())))}
    return tried[[first[tuple(batch)] for batch in batches.tolist()]]


class ExactRung(eqx.Module):
    """Draws of (x, batch) from a rung, with rings of draws from the rung above."""

    sampler: MinibatchRung
    names: tuple[Array, ...]
    chances: tuple[Array, ...]
    curves: tuple[Array, ...]

    @classmethod
    def of(cls, sampler: MinibatchRung) -> "ExactRung":
        tables = [batch_table(rung) for rung in range(3)]
        names = [names_of(b) if b.shape[1] else np.zeros((1, 2), np.uint32) for b, _, _ in tables]
        return cls(
            sampler,
            tuple(jnp.asarray(name) for name in names),
            tuple(jnp.asarray(chance) for _, chance, _ in tables),
            tuple(jnp.asarray(curve) for _, _, curve in tables),
        )

    def state(self, key: Array, rung: int) -> tuple[Array, Array]:
        key_batch, key_x, key_name = jax.random.split(key, 3)
        which = jax.random.choice(key_batch, len(self.chances[rung]), p=self.chances[rung])
        uniform = jax.random.uniform(key_x)
        x = jnp.interp(uniform, self.curves[rung][which], jnp.asarray(GRID))
        name = self.names[rung][which]
        if SIZES[rung] == 6:  # every order of all rows is as good as every other
            name = jax.random.bits(key_name, (2,), jnp.uint32)
        return x[None], name

    def draw(self, key: Array) -> EquiEnergyRungState:
        key_point, key_rings = jax.random.split(key)
        rung = self.sampler.rung
        point = self.sampler._at(*self.state(key_point, rung))
        above = make(MinibatchRung, rung - 1)

        def fill(rings: Any, one: Array) -> tuple[Any, None]:
            stored = above._at(*self.state(one, rung - 1))
            ring = self.sampler.ladder.ring(stored.components[:1])
            return add(rings, ring, stored, jnp.asarray(True)), None

        rings, _ = jax.lax.scan(fill, empty(point, 3, 8), jax.random.split(key_rings, 12))
        return EquiEnergyRungState(point, rings, None, jnp.zeros((), int))


def statistics(state: EquiEnergyRungState) -> Array:
    x = state.point.position[0]
    own, hotter = state.point.components
    return jnp.stack([x, x**2, own, hotter, x * (own - hotter)])


def verdict(kind: type[MinibatchRung], rung: int, seed: int) -> Any:
    sampler = make(kind, rung)
    exact = ExactRung.of(sampler)
    # Rings are new at every replicate, but not at every step: one jump is exact, two are not.
    return invariance(
        lambda key, state: sampler.step(key, state)[0], exact.draw, statistics,
        num_steps=1, num_replicates=8192, seed=seed,
    )  # fmt: skip


@pytest.mark.parametrize("rung", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_step_leaves_its_rung_alone(rung: int, seed: int) -> None:
    found = verdict(MinibatchRung, rung, seed)
    assert found.passed, found


# The slips of the jump are summed over all batches above.
@pytest.mark.parametrize(
    "name",
    [pytest.param("one energy for both rungs", marks=pytest.mark.slow), "every new batch taken"],
)
def test_broken_steps_are_rejected(name: str, seed: int) -> None:
    assert not verdict(TWINS[name], 1, seed).lawful


# -- sizes and runs ------------------------------------------------------------------------------


def test_sizes_follow_from_temperatures() -> None:
    """T = n / m^alpha, and the paper's own ladder from its own alpha."""
    assert batch_sizes(10_000, [1000.0, 200.0, 1.0], 0.5) == (100, 2500, 10_000)
    heat = [103.51, 74.06, 53.02, 37.93, 27.13, 19.41, 1.0]
    printed = (1000, 1400, 1959, 2743, 3841, 5378, 100_000)
    assert np.allclose(batch_sizes(100_000, heat, 0.995), printed, rtol=1e-3)


def two_signs(num_rows: int = 200) -> tp.Problem:
    generator = np.random.default_rng(3)
    y = generator.normal(size=num_rows) + np.where(generator.random(num_rows) < 0.5, 0.9, -0.9)

    def signed(x: Array, rows: Array) -> Array:
        return jnp.logaddexp(-0.5 * (rows - x[0]) ** 2, -0.5 * (rows + x[0]) ** 2)

    return tp.Problem(
        lambda x: -0.5 * jnp.sum((x - 0.3) ** 2), signed, y,
        lambda key: 0.3 + jax.random.normal(key, (1,)),
    )  # fmt: skip


RUN: dict[str, Any] = {
    "num_draws": 60, "num_warmup": 40, "num_chains": 2, "progress": False, "num_fill": 60,
    "temperatures": [40.0, 8.0, 1.0], "batch_sizes": [20, 60, 200], "move": "metropolis",
}  # fmt: skip


@pytest.mark.slow
def test_a_run_tells_of_its_batches() -> None:
    tree = tp.sample(two_signs(), "mintee", **RUN)
    ladder = tree["tempering"].dataset
    assert ladder["size"].values.tolist() == [20, 60, 200]
    assert tree["posterior"]["x"].shape == (2, 60, 1)
    assert (ladder["refresh_rate"].values[:2] > 0).all()
    assert float(ladder["fill_rows"].sum()) > 0
    text = str(tp.summary(tree))
    assert "rows by rung" in text
    assert "batches renewed" in text


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"integrator": "position"}, {"single": "always"}])
def test_warm_up_learns_from_gradients_that_a_trajectory_saw(options: dict[str, str]) -> None:
    """A point carries none where HMC drifts first."""
    tree = tp.sample(two_signs(), "mintee", **RUN | {"move": tp.hmc(**options)})
    assert (tree["tempering"]["step_size"].values > 0).all()
    assert (tree["tempering"]["move_acceptance"].values > 0.3).all()
    assert np.unique(tree["posterior"]["x"]).size > 30


class StoppedError(Exception):
    """A run that is cut off."""


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["fill-0", "warm-3"])
def test_a_killed_run_resumes_bit_identically(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Store.append

    def stops(self: Store, name: str, *args: Any, **kwargs: Any) -> Any:
        block = append(self, name, *args, **kwargs)
        if name == phase:
            raise StoppedError
        return block

    call = {"problem": two_signs(), "method": "mintee", "checkpoint": tmp_path / "run.zarr"} | RUN
    with small_runs.small_blocks():
        whole = tp.sample(**call | {"checkpoint": None})
        monkeypatch.setattr(Store, "append", stops)
        with pytest.raises(StoppedError):
            tp.sample(**call)
        monkeypatch.setattr(Store, "append", append)
        small_runs.assert_identical(tp.sample(**call), whole)


WRONG = {
    "a target": (tp.Target(lambda x: -jnp.sum(x**2), base=tp.Gaussian(np.zeros(1), 1.0)), {}),
    "alpha": (two_signs(), {"alpha": 1.5}),
    "sizes without temperatures": (two_signs(), {"batch_sizes": [20, 200]}),
    "a target of some rows": (
        two_signs(), {"temperatures": [9.0, 1.0], "batch_sizes": [20, 100]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name: str) -> None:
    problem, options = WRONG[name]
    with pytest.raises(ArgumentError):
        tp.sample(problem, "mintee", num_draws=2, num_warmup=20, progress=False, **options)
