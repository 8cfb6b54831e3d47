"""What warm-up learns, against what is known; and that it learns nothing afterwards."""

import itertools
import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tests.shared import small_runs
from tests.shared.small_runs import run

import temperance as tp
from temperance.engine.checkpoint import blocks
from temperance.moves.move import Params
from temperance.warmup.adaptation import Adaptation, Moments, _add, learn_factor, rounds, transplant

RUNGS, DIMENSION = 2, 3
MANY = 10**9  # draws, so that shrinkage to the last factor is beyond the digits compared

# -- factors -------------------------------------------------------------------------------------


def covariances(seed: int) -> np.ndarray:
    """One for each rung, none of them like the other."""
    roots = np.random.default_rng(seed).normal(size=(RUNGS, DIMENSION, DIMENSION))
    return roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(DIMENSION)


def moments_of(covariance: np.ndarray, dense: bool, count: int) -> Moments:
    """What `count` draws with that covariance, and a mean away from the shift, add up to."""
    shift, gap = np.full((RUNGS, DIMENSION), 5.0), np.full((RUNGS, DIMENSION), 0.7)
    second = covariance + gap[:, :, None] * gap[:, None, :]
    if not dense:
        second = np.diagonal(second, axis1=1, axis2=2)
    return Moments(*(jnp.asarray(v) for v in (shift, count * gap, count * second)))


def adaptation(
    spread: np.ndarray, slope: np.ndarray | None, dense: bool, count: int = MANY
) -> Adaptation:
    sizes = jnp.zeros((RUNGS, 1))
    factor = np.full((RUNGS, DIMENSION), 2.0)
    return Adaptation(
        sizes, sizes, sizes, sizes,
        jnp.asarray(factor[:, :, None] * np.eye(DIMENSION) if dense else factor),
        moments_of(spread, dense, count),
        None if slope is None else moments_of(slope, dense, count),
        jnp.zeros((RUNGS - 1,)),
        jnp.zeros((RUNGS - 1,)),
        jnp.asarray(count // 4),
    )  # fmt: skip


def metric(dense: bool) -> str:
    return "dense" if dense else "diagonal"


@pytest.mark.parametrize("dense", [True, False])
def test_a_gaussian_gives_back_its_covariance(dense: bool) -> None:
    """Gradients of N(m, C) have covariance C^-1, whether or not they are used."""
    wanted = covariances(0)
    if not dense:
        wanted = wanted * np.eye(DIMENSION)
    for slope in (None, np.linalg.inv(wanted)):
        factor = learn_factor(adaptation(wanted, slope, dense), metric(dense), 4)
        got = factor @ factor.transpose(0, 2, 1) if dense else factor[:, :, None] ** 2 * np.eye(3)
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
        if dense:
            np.testing.assert_array_equal(factor, np.tril(factor))


def test_dense_solves_the_fishers_equation() -> None:
    """S cov(g) S = cov(x), where the two know nothing of each other."""
    spread, slope = covariances(1), covariances(2)
    factor = learn_factor(adaptation(spread, slope, True), "dense", 4)
    scale = factor @ factor.transpose(0, 2, 1)
    np.testing.assert_allclose(scale @ slope @ scale, spread, rtol=1e-6)


def test_diagonal_solves_it_for_each_coordinate() -> None:
    spread, slope = covariances(1), covariances(2)
    factor = learn_factor(adaptation(spread, slope, False), "diagonal", 4)
    variances = [np.diagonal(c, axis1=1, axis2=2) for c in (spread, slope)]
    np.testing.assert_allclose(factor**4 * variances[1], variances[0], rtol=1e-6)


@pytest.mark.parametrize("dense", [True, False])
def test_few_draws_change_little_and_too_few_nothing(dense: bool) -> None:
    spread = covariances(0)
    before = np.asarray(adaptation(spread, None, dense).factor)
    few = learn_factor(adaptation(spread, None, dense, 40), metric(dense), 4)
    many = learn_factor(adaptation(spread, None, dense), metric(dense), 4)
    pull = 10 / 50
    if dense:
        square = pull * before @ before.transpose(0, 2, 1) + (1 - pull) * spread
        np.testing.assert_allclose(few @ few.transpose(0, 2, 1), square, rtol=1e-10)
    else:
        np.testing.assert_allclose(few, before**pull * many ** (1 - pull), rtol=1e-6)
    for unchanged in (
        learn_factor(adaptation(spread, None, dense, 16), metric(dense), 4),
        learn_factor(adaptation(spread, None, dense), "unit", 4),
    ):
        np.testing.assert_array_equal(unchanged, before)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_what_cannot_be_a_scale_is_not_learnt(dense: bool, bad: float) -> None:
    spread = np.broadcast_to(np.eye(DIMENSION), (RUNGS, DIMENSION, DIMENSION)).copy()
    spread[0, 0, 0] = bad
    with np.errstate(all="ignore"):
        factor = learn_factor(adaptation(spread, spread, dense), metric(dense), 4)
    assert np.isfinite(factor).all()
    assert (np.diagonal(factor, axis1=1, axis2=2) > 0).all() if dense else (factor > 0).all()
    np.testing.assert_allclose(factor[1], np.eye(DIMENSION) if dense else np.ones(3), rtol=1e-6)


@pytest.mark.parametrize("dense", [True, False])
def test_moments_add_up(dense: bool) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 4, RUNGS, DIMENSION)) + 3.0
    zeros = jnp.zeros((RUNGS, DIMENSION))
    moments = Moments(zeros + 2.5, zeros, jnp.zeros((RUNGS,) + (DIMENSION,) * (1 + dense)))
    for step in values:
        moments = _add(moments, jnp.asarray(step))
    centred = values.reshape(-1, RUNGS, DIMENSION) - 2.5
    np.testing.assert_allclose(moments.first, centred.sum(axis=0))
    form = "nki,nkj->kij" if dense else "nki,nki->ki"
    np.testing.assert_allclose(moments.second, np.einsum(form, centred, centred))
    wild = jnp.full((4, RUNGS, DIMENSION), jnp.nan)
    for one, two in zip(_add(moments, wild), moments, strict=True):
        np.testing.assert_array_equal(one, two)


# -- rounds and rungs ----------------------------------------------------------------------------


def test_rounds_add_up_and_double() -> None:
    for num_warmup in range(3000):
        lengths = rounds(num_warmup)
        assert sum(lengths) == num_warmup
        assert all(length > 0 for length in lengths)
        if num_warmup >= 40:
            *learning, last = lengths
            assert last >= 20
            assert len(learning) <= 5
            for shorter, longer in itertools.pairwise(learning):
                assert 2 * shorter <= longer <= 2 * shorter + len(lengths) * 2
    assert rounds(0) == []
    assert rounds(39) == [39]


def some_params(dense: bool, rungs: int) -> Params:
    rng = np.random.default_rng(3)
    shape = (rungs, DIMENSION, DIMENSION) if dense else (rungs, DIMENSION)
    factor = rng.uniform(0.5, 2.0, size=shape)
    return Params(
        jnp.asarray(rng.uniform(0.1, 1.0, size=(rungs, 2))),
        jnp.asarray(np.tril(factor) if dense else factor),
    )


@pytest.mark.parametrize("dense", [True, False])
def test_parameters_are_carried_to_other_rungs(dense: bool) -> None:
    old, new = np.array([0.0, 0.2, 0.6, 1.0]), np.array([0.0, 0.1, 0.2, 0.5, 0.9, 1.0])
    params = some_params(dense, 4)
    moved = transplant(old, new, params)
    for before, after in zip(params, moved, strict=True):
        assert after.shape == (6, *before.shape[1:])
        for i, j in ((0, 0), (1, 2), (3, 5)):  # the ends, and a rung that stays where it is
            np.testing.assert_allclose(after[j], before[i], rtol=1e-12)
        lowest = np.minimum(before[:-1], before[1:])
        highest = np.maximum(before[:-1], before[1:])
        for j, i in ((1, 0), (3, 1), (4, 2)):
            assert (after[j] >= lowest[i] - 1e-12).all()
            assert (after[j] <= highest[i] + 1e-12).all()
    np.testing.assert_allclose(moved.step_size[1], np.sqrt(np.prod(params.step_size[:2], axis=0)))
    for before, after in zip(params, transplant(old, old, params), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-12)


# -- in a run ------------------------------------------------------------------------------------


def test_step_sizes_reach_the_acceptance_they_aim_at() -> None:
    """In 16 runs a rung had a mean rate of 0.21 and a spread of 0.03: the last round is short."""
    rates = []
    for seed in range(4):
        ladder = run("pt", num_warmup=1000, num_draws=250, seed=seed)["tempering"]
        rates.append(ladder["move_acceptance"].values[1:, 0])
        # The factors have taken the widths of the rungs, so that steps are alike.
        sizes = ladder["step_size"].values[1:, 0]
        assert sizes.max() < 3 * sizes.min()
    assert np.mean(rates) == pytest.approx(0.234, abs=0.05)
    assert (np.abs(np.asarray(rates) - 0.21) < 0.15).all()


def test_hmc_accepts_at_least_what_it_aims_at_and_no_step_passes_the_quarter_period() -> None:
    tree = run("plain", num_warmup=600, num_draws=200)
    assert 0.75 < float(tree["sample_stats"]["acceptance_rate"].mean()) <= 1.0


def test_a_fixed_step_stays() -> None:
    tree = run("pt", move=tp.metropolis(scale=0.3), betas=small_runs.BETAS)
    np.testing.assert_array_equal(tree["tempering"]["step_size"], np.full((4, 1), 0.3))


def test_nothing_adapts_after_warmup(tmp_path: Path) -> None:
    """Of all that a run carries, what warm-up learnt is the same before and after every draw."""
    with small_runs.small_blocks():
        run("pt", checkpoint=tmp_path / "run.zarr")
    seen: dict[str, dict[str, set[bytes]]] = {"warm": {}, "draw": {}}
    for index, path in enumerate(sorted((tmp_path / "run.zarr").glob("block-*"))):
        block = blocks.read_block(path, index)
        kind = block.phase.split("-")[0]
        if kind in seen:
            for form, leaf in zip(block.forms["state"], block.leaves, strict=True):
                if form["name"].startswith("[1]"):
                    seen[kind].setdefault(form["name"], set()).add(leaf.tobytes())
    assert len(seen["draw"]) >= 8
    assert all(len(values) == 1 for values in seen["draw"].values())
    assert len(seen["warm"]["[1].log_step_mean"]) > 3
    assert len(seen["warm"]["[1].factor"]) > 1


def test_notes_of_the_last_round_are_those_of_the_draws(tmp_path: Path) -> None:
    tree = run("pt", checkpoint=tmp_path / "run.zarr")
    last = max((tmp_path / "run.zarr").glob("block-*"))
    notes: dict[str, Any] = json.loads((last / "zarr.json").read_text())["attributes"]["notes"]
    np.testing.assert_array_equal(notes["rungs"]["betas"], tree["tempering"]["beta"])
