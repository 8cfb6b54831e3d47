"""Runs of smc: known weights and log Z, by powers, by rows and waste-free; what is said when."""

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.samplers.annealing import broken_smc as broken
from tests.shared import small_runs
from tests.shared.small_runs import make_problem

import temperance as tp
from temperance.errors import InterruptedRunError
from temperance.estimates.diagnostics import effective_size
from temperance.methods import smc

# Two modes with known weights and log Z, and a base over both.
SHIFT, WEIGHT, LOG_Z = 3.0, 0.3, -1.3
ISLANDS = 24
QUICK: dict[str, Any] = {"progress": False, "num_chains": ISLANDS, "move": "metropolis"}
# What is adaptive biases Z-hat by a multiple of 1 / N; with these particles it may be by 2 %.
BOUND = 0.02


def two_modes(x: Any) -> Any:
    left = jnp.log(WEIGHT) - 0.5 * jnp.sum((x + SHIFT) ** 2)
    right = jnp.log(1 - WEIGHT) - 0.5 * jnp.sum((x - SHIFT) ** 2)
    return jnp.logaddexp(left, right) - 0.5 * x.size * jnp.log(2 * jnp.pi) + LOG_Z


TARGET = tp.Target(two_modes, base=tp.Gaussian(np.zeros(2), 16.0))


def log_evidence_of_rows() -> float:
    """The small runs' rows, whose evidence is that of a normal of their sum."""
    covariance = np.eye(6) + 2 * np.ones((6, 6))
    solved = np.linalg.solve(covariance, small_runs.ROWS)
    log_determinant = np.linalg.slogdet(2 * np.pi * covariance)[1]
    return float(-0.5 * small_runs.ROWS @ solved - 0.5 * log_determinant)


def left_scores(tree: Any) -> tuple[float, float]:
    """How far the left mode's weight is from its own, and the error of it, by the islands."""
    each = (tree["posterior"]["x"].values.sum(axis=-1) < 0).mean(axis=1)
    return float(each.mean() - WEIGHT), float(each.std(ddof=1) / np.sqrt(len(each)))


def is_right(tree: Any) -> bool:
    """Weight and log Z together, each within its error and the bias of adapting."""
    gap, error = left_scores(tree)
    value, error_z = tp.log_evidence(tree)
    return abs(gap) < 4.5 * error + BOUND and abs(value - LOG_Z) < 4.5 * error_z + BOUND


@functools.cache
def by_powers(seed: int) -> Any:
    return tp.sample(TARGET, "smc", seed=seed, num_draws=400, **QUICK)


def test_by_powers(seed: int):
    tree = by_powers(seed)
    assert is_right(tree)
    assert left_scores(tree)[1] < 0.02
    assert tp.log_evidence(tree)[1] < 0.05
    path = tree["tempering"]
    assert (np.nanmax(path["beta"].values, axis=0) == 1).all()
    assert tree.attrs["num_evaluations"] == 400 * np.nansum(path["num_moves"].values)
    said = tp.summary(tree)
    assert said.facts["particles by island"] == 400
    assert len(said.facts["moves by island"]) == ISLANDS
    assert not said.warnings


def test_waste_free(seed: int):
    options = QUICK | {"num_draws": 800, "waste_free": 80}
    tree = tp.sample(TARGET, "smc", seed=seed, **options)
    assert is_right(tree)
    assert left_scores(tree)[1] < 0.03
    assert tp.log_evidence(tree)[1] < 0.05


@pytest.mark.parametrize("kind", [broken.MeanOfLogs, broken.WeighedAfterMoves])
def test_slips_are_told_apart(kind: Any, seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(smc, "SequentialMonteCarlo", kind)
    assert not is_right(tp.sample(TARGET, "smc", seed=seed, num_draws=400, **QUICK))


@pytest.mark.parametrize(
    "kind", [None, pytest.param(broken.WeighedAfterMoves, id="weighed after moves")]
)
def test_by_rows(kind: Any, seed: int, monkeypatch: pytest.MonkeyPatch):
    if kind is not None:
        monkeypatch.setattr(smc, "SequentialMonteCarlo", kind)
    options = QUICK | {"num_draws": 300, "num_moves": 10, "sizes": (0, 1, 3, 6)}
    tree = tp.sample(make_problem(), "smc", seed=seed, **options)
    value, error = tp.log_evidence(tree)
    assert (abs(value - log_evidence_of_rows()) < 4.5 * error + BOUND) == (kind is None)
    if kind is None:
        assert error < 0.05
        # Ten moves on one, three and six rows; those added are looked at once before.
        assert tree.attrs["num_row_evaluations"] == ISLANDS * 300 * (10 * (1 + 3 + 6) + 6)
        np.testing.assert_allclose(tree["tempering"]["beta"][:, 0], [1 / 6, 1 / 2, 1.0])


def test_rows_double_by_themselves():
    ladder = smc.METHOD.prepare(call_by_rows(100)).ladder
    assert ladder.sizes == (0, 2, 4, 8, 16, 32, 64, 100)


def call_by_rows(num_rows: int) -> Any:
    """What `sample` hands to the method."""
    from temperance.engine.method import Call
    from temperance.problems.problem import densities_of

    problem = make_problem(data=np.zeros(num_rows))
    options = smc.Options(by_rows=True)
    return Call(
        problem, densities_of(problem), tp.metropolis(), options, 2, 0, 20, jax.random.key(0)
    )


# -- draws that come from one chain ----------------------------------------------------------------


def overstated(seed: int) -> float:
    """How much larger the islands' spread of means is than each island's effective size says."""
    normal = tp.Target(lambda x: -0.5 * jnp.sum(x**2), base=tp.Gaussian(np.zeros(1), 2.0))
    tree = tp.sample(
        normal, "smc", tp.metropolis(scale=0.5), seed=seed, num_draws=2000, waste_free=40,
        num_chains=60, progress=False,
    )  # fmt: skip
    x = tree["posterior"]["x"].values[..., 0]
    said = np.mean([one.var() / effective_size(one[None]) for one in x])
    return float(x.mean(axis=1).var(ddof=1) / said)


def test_waste_free_draws_say_how_few_they_are(seed: int, monkeypatch: pytest.MonkeyPatch):
    assert overstated(seed) < 2.5
    # As the sampler has them, states of a chain are as many draws apart as there are chains.
    monkeypatch.setattr(smc.Slices, "order", lambda _, num: np.arange(num))
    assert overstated(seed) > 5


# -- what is said ----------------------------------------------------------------------------------


def words(tree: Any) -> str:
    return " ".join(tp.summary(tree).warnings)


def test_one_island_has_no_error_bar(seed: int):
    tree = tp.sample(TARGET, "smc", seed=seed, num_draws=50, **(QUICK | {"num_chains": 1}))
    assert "one island has no spread" in words(tree)
    assert np.isinf(tp.log_evidence(tree)[1])


def test_too_few_particles_are_told(seed: int):
    """A base far off leaves few ancestors, and R-hat need not see that all islands lost a mode."""
    far = tp.Target(two_modes, base=tp.Gaussian(np.full(2, 30.0), 1.0))
    tree = tp.sample(far, "smc", seed=seed, num_draws=60, **(QUICK | {"num_chains": 4}))
    said = words(tree)
    assert "descend from" in said
    assert "give more particles" in said
    assert "warm up" not in said
    assert np.nanmin(tree["tempering"]["origins"].values) < 10


def test_islands_that_disagree_are_told(seed: int):
    tree = by_powers(seed).copy()
    assert "islands disagree" not in words(tree)
    tree["evidence"] = tree["evidence"].dataset.assign(error=("estimator", [0.7]))
    assert "islands disagree about log evidence: its standard error is 0.7" in words(tree)


def test_an_end_to_the_temperatures(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(smc, "MOST_TEMPERATURES", 2)
    with pytest.raises(InterruptedRunError, match=r"after 2 temperatures .* smaller conditional"):
        tp.sample(TARGET, "smc", "metropolis", num_draws=50, conditional_ess=0.95, progress=False)


def test_a_page_of_particles(seed: int, tmp_path: Path):
    page = " ".join(tp.report(by_powers(seed), tmp_path / "run.html").read_text().split())
    for expected in ("particles by island", "ancestors by island", "islands", "delmoral2006"):
        assert expected in page
    loaded = tp.load(tp.save(by_powers(seed), tmp_path / "run.nc") or tmp_path / "run.nc")
    assert tp.log_evidence(loaded) == tp.log_evidence(by_powers(seed))
