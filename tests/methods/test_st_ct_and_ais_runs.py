"""Runs of ST, both CTs, AIS and BDMC: coverage, what comes back, what is said, what is refused."""

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from tests.shared import small_runs
from tests.shared.small_runs import make_problem

import temperance as tp
from temperance.engine.method import Call
from temperance.errors import ArgumentError, UnknownNameError
from temperance.estimates.weighted import log_ratio
from temperance.ladders.joint import JointLadder
from temperance.methods.report.weights import Travels
from temperance.problems.problem import densities_of
from temperance.samplers.inverse_temperature import log_target_weight
from temperance.warmup.anneals import AnnealedPowers
from temperance.warmup.rung_weights import Stops
from temperance.warmup.serial_tempering import Ready

# Two modes with known weights and log Z, and a base over both.
SHIFT, WEIGHT, LOG_Z = 2.5, 0.3, -1.3
QUICK: dict[str, Any] = {"progress": False, "num_warmup": 200}


def two_modes(x: Any) -> Any:
    sides = jnp.stack(
        [
            jnp.log(WEIGHT) - 0.5 * jnp.sum((x + SHIFT) ** 2),
            jnp.log(1 - WEIGHT) - 0.5 * jnp.sum((x - SHIFT) ** 2),
        ]
    )
    return jax.nn.logsumexp(sides) - 0.5 * x.size * jnp.log(2 * jnp.pi) + LOG_Z


def draw_two_modes(key: Any) -> Any:
    key_side, key_x = jax.random.split(key)
    side = jnp.where(jax.random.uniform(key_side) < WEIGHT, -SHIFT, SHIFT)
    return side + jax.random.normal(key_x, (1,))


TARGET = tp.Target(two_modes, base=tp.Gaussian(np.zeros(1), 7.0))
TRAVELLING = ("joint-ct", "gibbs-ct", "st")


@functools.cache
def many_chains(method: str) -> Any:
    return tp.sample(TARGET, method=method, num_chains=200, num_draws=250, **QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("method", TRAVELLING)
def test_intervals_of_log_z_cover(method: str):
    """Each of 200 chains has an interval of its own."""
    tree = many_chains(method)
    stats = tree["sample_stats"]
    zeta = float(tree["tempering"]["log_zeta"])
    hits = []
    for one, zero in zip(stats["log_weight"].values, stats["log_weight_base"].values, strict=True):
        found = log_ratio(one[None], zero[None], zeta)
        hits.append(abs(found.value - LOG_Z) < 1.96 * found.error)
    assert 0.90 <= np.mean(hits) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("method", TRAVELLING)
def test_all_chains_together(method: str):
    tree = many_chains(method)
    value, error = tp.log_evidence(tree)
    assert error < 0.05
    assert abs(value - LOG_Z) < 4.5 * error
    left = tp.expectation(tree, lambda x: (x[..., 0] < 0).astype(float))
    assert abs(left.value - WEIGHT) < 4.5 * left.error
    # Unweighted, the draws are of the joint law and not of the target.
    assert abs(float((tree["posterior"]["x"] < 0).mean()) - WEIGHT) > 0.03
    wide = tp.expectation(tree, lambda x: x[..., 0] ** 2, under="base")
    assert abs(wide.value - 7.0) < 4.5 * wide.error


@pytest.mark.slow
@pytest.mark.parametrize("method", TRAVELLING)
def test_what_the_summary_says(method: str):
    said = tp.summary(many_chains(method))
    assert {"mean", "sd", "ess", "mcse_mean", "r_hat"} <= set(said.table.columns)
    assert "agreement is necessary, and not sufficient" in said.facts["base moments"]
    assert said.facts["round trips by chain"].shape == (200,)
    assert "log evidence (weights)" in said.facts


@pytest.mark.slow
def test_anneals_there_and_back(seed: int):
    tree = tp.sample(
        TARGET, method="bdmc", exact=draw_two_modes, num_draws=250, seed=seed, num_rungs=24, **QUICK
    )
    for estimator in ("forward", "reverse"):
        value, error = tp.log_evidence(tree, estimator)
        assert abs(value - LOG_Z) < 4.5 * error + 0.02
    left = tp.expectation(tree, lambda x: (x[..., 0] < 0).astype(float))
    assert abs(left.value - WEIGHT) < 4.5 * left.error
    said = tp.summary(tree)
    assert "log evidence lies between" in said.facts
    assert said.facts["steps of an anneal"] == 23
    assert tree["sample_stats"]["log_weight_reverse"].shape == (4, 250)


@pytest.mark.slow
def test_anneals_with_betas_by_conditional_ess(seed: int):
    tree = tp.sample(TARGET, method="ais", conditional_ess=0.95, num_draws=250, seed=seed, **QUICK)
    value, error = tp.log_evidence(tree)
    assert abs(value - LOG_Z) < 4.5 * error
    betas = tree["tempering"]["anneal_beta"].values
    assert betas[0] == 0
    assert betas[-1] == 1
    assert 3 < len(betas) < 100


@pytest.mark.slow
def test_anneals_over_subsamples_know_the_evidence(seed: int):
    """The rows of the small runs, whose evidence is that of a normal of their sum."""
    rows = small_runs.ROWS
    covariance = np.eye(6) + 2 * np.ones((6, 6))
    truth = -0.5 * rows @ np.linalg.solve(covariance, rows)
    truth -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    tree = tp.sample(
        make_problem(), method="ais", move="metropolis", sizes=(0, 1, 2, 4, 6), num_draws=500,
        seed=seed, **QUICK,
    )  # fmt: skip
    value, error = tp.log_evidence(tree)
    assert abs(value - truth) < 4.5 * error
    assert error < 0.2
    assert tree.attrs["num_row_evaluations"] > 0


def test_a_chain_that_never_travels_is_told():
    """A base so far off that nothing lies between it and the target."""
    far = tp.Target(two_modes, base=tp.Gaussian(np.full(1, 60.0), 1.0))
    tree = tp.sample(
        far, method="gibbs-ct", num_draws=20, num_warmup=0, log_zeta=LOG_Z, progress=False
    )
    words = " ".join(tp.summary(tree).warnings)
    assert "round trips from base to target and back" in words


def stuck(ends: list[str]) -> tuple[list[str], dict[str, Any]]:
    """What is said of a run with each chain at one end or on its way: warnings and facts."""
    tree = tp.sample(
        TARGET, method="joint-ct", move="metropolis", log_zeta=LOG_Z, num_chains=len(ends),
        num_draws=400, num_warmup=0, progress=False,
    )  # fmt: skip
    draws = {name: array.values for name, array in tree["sample_stats"].dataset.items()}
    rng = np.random.default_rng(0)
    at = {"base": -8.0, "target": 8.0, "between": 0.0}
    tilts = np.stack([at[end] + rng.normal(size=400) for end in ends])
    draws["control"] = np.stack([at[end] * np.ones(400) for end in ends])
    for name, sign in (("log_weight", 1), ("log_weight_base", -1)):
        draws[name] = np.asarray(log_target_weight(jnp.asarray(sign * tilts)))[:, :, None]
    draws["position"] = tree["posterior"]["x"].values
    draws["round_trips"] = np.tile(np.arange(400) // 10, (len(ends), 1))
    ladder = JointLadder(TARGET.base, two_modes, jnp.asarray(LOG_Z), True)
    run = SimpleNamespace(draws=draws, sampler=SimpleNamespace(ladder=ladder))
    piece = Travels(lambda sampler: float(sampler.ladder.log_zeta), has_rungs=False)
    tree["tempering"] = xr.DataTree(xr.Dataset(piece.arrays(run)))
    found = [words for words in piece.warnings(tree) if "moments" not in words]
    return found, piece.facts(tree)


def test_a_chain_that_is_lost_is_told_by_its_own_evidence():
    words, facts = stuck(["between", "base", "between", "between"])
    assert len(words) == 1
    assert "chain 1 alone says -8." in words[0]
    assert "100 % of its draws were at the base and 0 % at the target" in words[0]
    np.testing.assert_array_equal(facts["share of draws at the base by chain"], [0, 1, 0, 0])
    words, facts = stuck(["target", "between", "between", "target"])
    assert "alone says 6." in words[0]
    assert "of its draws were at the base and 100 % at the target" in words[0]
    np.testing.assert_array_equal(facts["share of draws at the target by chain"], [1, 0, 0, 1])
    assert stuck(["between"] * 4)[0] == []


def many_well(x: Any) -> Any:
    """Four double wells and four normal coordinates: log Z is known, and far below the line."""
    a, b = x[0::2], x[1::2]
    return jnp.sum(-(a**4) + 6 * a**2 + 0.5 * a) - 0.5 * jnp.sum(b**2)


def log_z_of_wells(pairs: int) -> float:
    a = np.linspace(-5, 5, 20_001)
    one = np.trapezoid(np.exp(-(a**4) + 6 * a**2 + 0.5 * a), a) * np.sqrt(2 * np.pi)
    return pairs * float(np.log(one))


@pytest.mark.slow
@pytest.mark.parametrize("move", ["hmc", "nuts"])
def test_the_joint_chain_travels_where_base_and_target_are_far_apart(move: str, seed: int):
    target = tp.Target(many_well, base=tp.Gaussian(np.zeros(32), np.full(32, 4.0)))
    tree = tp.sample(target, "joint-ct", move, seed=seed, progress=False)
    value, error = tp.log_evidence(tree)
    assert error < 1.0
    assert abs(value - log_z_of_wells(16)) < 4.5 * error
    assert tree["tempering"]["round_trips"].values.min() > 0
    assert not any("alone says" in words for words in tp.summary(tree).warnings)
    # On the line of the paper no chain goes over, and the summary says so.
    tree = tp.sample(
        target, "joint-ct", move, seed=seed, log_zeta=log_z_of_wells(16), progress=False
    )
    assert tree["tempering"]["round_trips"].values.min() == 0
    assert any("to the target and back" in words for words in tp.summary(tree).warnings)


@pytest.mark.slow
def test_a_small_joint_run_where_base_and_target_are_far_apart(seed: int):
    target = tp.Target(many_well, base=tp.Gaussian(np.zeros(8), np.full(8, 4.0)))
    tree = tp.sample(target, "joint-ct", seed=seed, num_draws=400, num_warmup=400, progress=False)
    value, error = tp.log_evidence(tree)
    assert error < 1.0
    assert abs(value - log_z_of_wells(4)) < 4.5 * error
    assert tree["tempering"]["round_trips"].values.min() > 0


@pytest.mark.slow
def test_log_zeta_is_kept_if_it_is_given():
    for method in ("joint-ct", "gibbs-ct"):
        tree = tp.sample(TARGET, method=method, num_draws=20, log_zeta=0.25, **QUICK)
        assert float(tree["tempering"]["log_zeta"]) == pytest.approx(0.25, abs=1e-15)


@pytest.mark.parametrize(
    "method",
    ["gibbs-ct", *(pytest.param(m, marks=pytest.mark.slow) for m in ("joint-ct", "st", "ais"))],
)
def test_without_a_warm_up(method: str):
    tree = tp.sample(TARGET, method=method, num_warmup=0, num_draws=20, progress=False)
    assert tree["posterior"]["x"].shape == (4, 20, 1)
    assert np.isfinite(tp.log_evidence(tree)[0])


def budgeted(barrier: float, **options: Any) -> tuple[int, int]:
    """How many betas anneals have on rungs with such a barrier, and how many were wanted."""
    call = Call(
        TARGET, densities_of(TARGET), tp.metropolis(), None, num_chains=4, num_warmup=100,
        num_draws=1000, key=jax.random.key(0), method="ais",
    )  # fmt: skip
    rungs = Stops(tuple(np.linspace(0, 1, 11).tolist()), (barrier / 10,) * 10)
    learnt = SimpleNamespace(cost=lambda: 5.0)
    knots = jnp.asarray(rungs.betas)
    ready = Ready(
        tp.Params(jnp.ones((11, 1)), jnp.ones((11, 1))), knots, knots, knots, jnp.asarray(0)
    )
    betas, wanted = AnnealedPowers(call, **options).stops_of(rungs, ready, learnt)
    assert (betas[0], betas[-1]) == (0.0, 1.0)
    assert (np.diff(betas) > 0).all()
    return len(betas), wanted


def test_a_budget_bounds_the_betas_of_anneals():
    """By what a move evaluates, as warm-up has counted it; there and back costs twice as much."""
    assert budgeted(1.0) == (32, 0)
    assert budgeted(3.0) == (145, 0)
    assert budgeted(9.0) == (201, 1297)  # 4000 anneals of 199 moves with 5 evaluations each
    assert budgeted(9.0, max_evaluations=1e8) == (1297, 0)
    assert budgeted(9.0, max_evaluations=1e6) == (51, 1297)
    assert budgeted(9.0, draw_target=draw_two_modes) == (101, 1297)
    assert budgeted(9.0, stops=500) == (500, 0)
    assert budgeted(9.0, max_evaluations=1.0) == (2, 1297)


@pytest.mark.slow
def test_a_budget_is_kept_and_told(seed: int):
    told: dict[str, Any] = {"method": "ais", "move": "metropolis", "progress": False, "seed": seed}
    tree = tp.sample(TARGET, num_draws=250, num_warmup=50, max_evaluations=5000, **told)
    assert 3000 < tree.attrs["num_evaluations"] <= 5000
    said = tp.summary(tree)
    assert "of 31 that were wanted: max_evaluations" in said.facts["steps of an anneal"]
    assert any("an anneal has" in words for words in said.warnings)
    value, error = tp.log_evidence(tree)
    assert abs(value - LOG_Z) < 4.5 * error


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "budget": ({"method": "ais", "max_evaluations": 0}, ArgumentError, "max_evaluations: wanted"),
    "budget and rungs": (
        {"method": "ais", "max_evaluations": 1e5, "num_rungs": 9},
        ArgumentError,
        "give it alone",
    ),
    "budget and share": (
        {"method": "ais", "max_evaluations": 1e5, "conditional_ess": 0.9},
        ArgumentError,
        "give it alone",
    ),
    "log_zeta": ({"method": "gibbs-ct", "log_zeta": "big"}, ArgumentError, "log_zeta: wanted"),
    "base": ({"method": "gibbs-ct", "base": "priour"}, UnknownNameError, "did you mean 'prior'"),
    "betas of st": ({"method": "st", "betas": [0.1, 1.0]}, ArgumentError, "begin at 0"),
    "betas of ais": ({"method": "ais", "betas": [0.1, 1.0]}, ArgumentError, "begins at 0"),
    "share": ({"method": "ais", "conditional_ess": 1.0}, ArgumentError, "conditional_ess: wanted"),
    "both": (
        {"method": "ais", "conditional_ess": 0.9, "num_rungs": 5},
        ArgumentError,
        "give it alone",
    ),
    "rows of a target": ({"method": "ais", "sizes": [0, 5]}, ArgumentError, "a Target has none"),
    "no exact draws": ({"method": "bdmc"}, ArgumentError, "exact: a reverse anneal begins"),
    "exact draws of another shape": (
        {"method": "bdmc", "exact": lambda key: jax.random.normal(key, (3,))},
        ArgumentError,
        "exact: its draws",
    ),
    "exact draws that fail": (
        {"method": "bdmc", "exact": lambda: 0},
        ArgumentError,
        "fails on a random key",
    ),
    "an option of another": ({"method": "st", "log_zeta": 1.0}, UnknownNameError, "log_zeta"),
    "rungs": ({"method": "st", "num_rungs": 1}, ArgumentError, "num_rungs: wanted"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name: str):
    options, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        tp.sample(TARGET, progress=False, **options)


def test_betas_and_rows_do_not_go_together():
    with pytest.raises(ArgumentError, match="betas: it belongs to powers"):
        tp.sample(make_problem(), method="ais", by_rows=True, betas=[0, 1.0], progress=False)


@pytest.mark.slow
def test_one_position_serves_as_an_exact_draw(seed: int):
    problem = make_problem()
    position = {"mean": np.array([0.2, 0.1])}
    tree = tp.sample(
        problem, method="bdmc", move="metropolis", exact=position, num_draws=20, num_rungs=6,
        seed=seed, **QUICK,
    )  # fmt: skip
    assert np.isfinite(tp.log_evidence(tree, "reverse")[0])
    with pytest.raises(tp.TemperanceError, match="leaves of shapes"):
        tp.sample(problem, method="bdmc", exact={"mean": np.zeros(3)}, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["st", "gibbs-ct"])
def test_a_page_of_weighted_draws(method: str, tmp_path: Path):
    page = tp.report(many_chains(method), tmp_path / "run.html").read_text()
    assert "of all temperatures" in page
    assert "to and fro between base and target" in " ".join(page.split())
    assert "error bar does not cover" in " ".join(page.split())
