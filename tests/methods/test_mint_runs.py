"""Whole runs of mint: its law, what it counts and says of itself, and what it refuses."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from jaxtyping import Array
from tests.shared import small_runs
from tests.shared.counted_rows import count_rows, terms as counted_terms
from tests.shared.small_runs import assert_identical, small_blocks
from typer.testing import CliRunner

import temperance as tp
from temperance.cli import app
from temperance.engine.loop import run_block
from temperance.errors import ArgumentError, MoveError, UnknownNameError
from temperance.estimates.diagnostics import standard_error
from temperance.ladders.row_sums import Rows
from temperance.methods.report.work import all_rows
from temperance.moves.minibatch.penalty import MOST_VARIANCE, Moments

ROWS = 300
DATA = 1.0 + 2.0 * np.random.default_rng(4).normal(size=ROWS)
SHORT = {"num_draws": 40, "num_warmup": 40, "num_chains": 2, "progress": False}


def log_prior(x: Array) -> Array:
    return norm.logpdf(x, 0.3, 1.2)


def draw_prior(key: Array) -> Array:
    return 0.3 + 1.2 * jax.random.normal(key)


def terms(x: Array, rows: Array) -> Array:
    return norm.logpdf(rows, x**2, 2.0)


def make_problem(**changes: Any) -> tp.Problem:
    return tp.Problem(log_prior, terms, DATA, draw_prior, **changes)


def tempered_moments(beta: float, power: float) -> tuple[float, float]:
    """The weight above zero and the mean square, by summation over a grid."""
    x = np.linspace(-7.0, 7.0, 2801)
    misfit = ((DATA[:, None] - x**2) ** 2).sum(axis=0) / 8
    logs = -beta * misfit - power * 0.5 * ((x - 0.3) / 1.2) ** 2
    density = np.exp(logs - logs.max())
    return float(density[x > 0].sum() / density.sum()), float(density @ x**2 / density.sum())


def scores(tree: Any, known: tuple[float, float]) -> np.ndarray:
    x = tree["posterior"]["x"].values
    series = np.stack([x > 0, x**2], axis=-1).astype(float)
    return np.abs(series.mean(axis=(0, 1)) - known) / standard_error(series)


@pytest.mark.parametrize("temper_prior", [False, True])
def test_mint_finds_the_weights_of_two_modes_of_a_tempered_law(temper_prior: bool):
    size, alpha = 60, 0.8
    beta = tp.implied_beta(ROWS, size, alpha)
    tree = tp.sample(
        make_problem(), "mint", batch_size=size, alpha=alpha, temper_prior=temper_prior,
        num_draws=1500, num_warmup=300, sweeps_per_draw=4, progress=False,
    )  # fmt: skip
    known = tempered_moments(beta, beta if temper_prior else 1.0)
    assert scores(tree, known).max() < 4
    # The other reading of the prior is another law, and would be noticed.
    other = tempered_moments(beta, 1.0 if temper_prior else beta)
    assert scores(tree, other).max() > 6
    assert set(tree.children) >= {"posterior", "sample_stats", "tempering"}
    assert "evidence" not in tree.children
    stats, rung = tree["sample_stats"], tree["tempering"]
    assert "lp" not in stats
    assert stats["batch_rows"].shape == (4, 1500)
    assert rung["beta"].values == pytest.approx([beta])
    assert rung["size"].values.tolist() == [size]
    assert 0.05 < float(rung["move_acceptance"].mean()) < 0.6
    rows = stats["batch_rows"].values.sum() * 4
    assert tree.attrs["num_row_evaluations"] == pytest.approx(rows, rel=1e-12)
    assert tree.attrs["method"] == "mint"
    assert "ceperley1999" in tp.cite(tree)


NOISES: dict[str, tuple[dict[str, Any], str]] = {
    "common": ({"noise": "common", "alpha": 1.0, "batch_size": 50}, "flatter than stated"),
    "penalty": ({"alpha": 1.0, "batch_size": 40, "most_rows": 40}, "too noisy for the penalty"),
    "pseudo-marginal": (
        {"noise": "pseudo-marginal", "alpha": 1.0, "batch_size": 40, "exchange": 4},
        "lucky batches stick",
    ),
}


@pytest.mark.parametrize("noise", NOISES)
def test_summary_says_what_the_noise_does(noise: str):
    options, words = NOISES[noise]
    tree = tp.sample(make_problem(), "mint", tp.metropolis(scale=3.0), **options, **SHORT)
    said = tp.summary(tree)
    assert any(words in warning for warning in said.warnings), said.warnings
    assert "and not the posterior" in str(said)
    assert tree["tempering"]["noise_variance"].attrs["noise"] == noise
    # Little noise is not worth a word.
    quiet = {"noise": noise, "batch_size": 250, "alpha": 0.1}
    tree = tp.sample(make_problem(), "mint", tp.metropolis(scale=0.3), **quiet, **SHORT)
    said = tp.summary(tree)
    assert not any("noise" in warning or "batch" in warning for warning in said.warnings)
    assert float(tree["tempering"]["trusted_rate"]) == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 2},
        {"batch_size": 3, "noise": "pseudo-marginal", "exchange": 1},
        {"batch_size": 3, "noise": "pseudo-marginal", "corrected": True},
    ],
)
def test_a_run_goes_on_bit_by_bit_with_its_batches(options: dict[str, Any], tmp_path: Path):
    path = tmp_path / "run.zarr"
    case = {"method": "mint", "move": None, **options}
    whole = small_runs.run("plain", num_draws=60, **case)
    with small_blocks():
        small_runs.run("plain", num_draws=20, checkpoint=path, **case)
        longer = small_runs.run("plain", num_draws=60, checkpoint=path, **case)
    assert_identical(longer, whole)


@pytest.mark.parametrize("noise", ["penalty", "pseudo-marginal"])
@pytest.mark.parametrize("move", [pytest.param("metropolis", marks=pytest.mark.slow), "mala"])
def test_single_precision_will_do(noise: str, move: str):
    tree = tp.sample(
        make_problem(), "mint", move, batch_size=20, noise=noise, precision="single", **SHORT
    )
    assert tree["posterior"]["x"].dtype == np.float32
    assert np.isfinite(tree["posterior"]["x"].values).all()


def test_from_the_command_line(tmp_path: Path):
    model = tmp_path / "model.py"
    model.write_text(
        "from tests.methods.test_mint_runs import make_problem\nproblem = make_problem()\n"
    )
    out = tmp_path / "run.nc"
    words = ["run", f"{model}:problem", "--method", "mint", "--set", "batch_size=20", "--set",
             "noise=common", "--num-draws", "20", "--num-warmup", "20", "--num-chains", "2",
             "--no-progress", "--out", str(out)]  # fmt: skip
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 0, said.output
    assert tp.load(out)["tempering"]["size"].values.tolist() == [20]


# Rows, counted as the program runs


def drawn(move: Any, num_rows: int, step: float, chains: int = 2) -> tuple[Any, dict[str, int]]:
    rows = Rows(
        lambda x: -0.5 * jnp.sum(x**2), counted_terms, jnp.linspace(-2, 2, num_rows), num_rows
    )
    params = tp.Params(jnp.array([[step]]), jnp.ones((1, 2)))
    sampler = tp.Plain(tp.RowLadder(rows), move, params)
    state = jax.vmap(sampler.init)(jnp.zeros((chains, 2)))
    steps = map(jnp.asarray, (0, 5, 2))
    (*_, records), seen = count_rows(
        run_block, sampler, state, None, jax.random.key(0), *steps, jnp.asarray(False), 5, 2
    )
    draws = {name: np.asarray(values) for name, values in records.items()}
    run = SimpleNamespace(draws=draws, sampler=sampler, sweeps_per_draw=2, num_rows=num_rows)
    said = all_rows(run)["num_row_evaluations"]
    assert said == pytest.approx(sum(seen.values()), rel=1e-12)
    return draws, seen


STEPS = 2 * 5 * 2  # chains, draws, steps a draw
COUNTS: dict[str, tuple[Any, dict[str, int]]] = {
    "penalty": (tp.mint(batch_size=7), {"plain": 2 * 7, "gradient": 0}),
    "common": (tp.mint(batch_size=7, noise="common"), {"plain": 2 * 7, "gradient": 0}),
    "penalty by langevin": (tp.mint("mala", batch_size=7), {"plain": 14, "gradient": 14}),
    "common by langevin": (
        tp.mint("mala", batch_size=7, noise="common"), {"plain": 14, "gradient": 14}
    ),
    "own": (tp.mint(batch_size=7, noise="pseudo-marginal"), {"plain": 7, "gradient": 0}),
    "own by langevin": (
        tp.mint("mala", batch_size=7, noise="pseudo-marginal"), {"plain": 7, "gradient": 14}
    ),
    "exchange": (
        tp.mint(batch_size=7, noise="pseudo-marginal", exchange=3), {"plain": 10, "gradient": 0}
    ),
}  # fmt: skip


LONG = ("common", "common by langevin", "own")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in COUNTS],
)
def test_a_step_evaluates_what_it_says(name: str):
    move, each = COUNTS[name]
    _, seen = drawn(move, 40, 0.3)
    assert seen == {kind: STEPS * count for kind, count in each.items()}


def test_two_steps_in_one_count_both():
    _, seen = drawn(tp.repeat(tp.mint(batch_size=7), 3), 40, 0.3)
    assert seen["plain"] == STEPS * 3 * 14


def test_a_batch_grows_by_its_own_size_until_its_noise_is_small():
    """One chain: side by side, chains wait for the one that looks at most."""
    draws, _ = drawn(tp.mint(batch_size=8, alpha=1.0), 64, 1.5, chains=1)
    seen = draws["batch_rows"]
    assert seen.min() >= 16
    assert seen.max() > 16
    assert draws["batch_raised"].max() > 0
    bounded, _ = drawn(tp.mint(batch_size=8, alpha=1.0, most_rows=20), 64, 1.5, chains=1)
    assert bounded["batch_rows"].max() <= 2 * 16
    assert bounded["batch_raised"].max() > 0


def test_a_batch_of_all_rows_has_no_noise():
    draws, _ = drawn(tp.mint(batch_size=40, alpha=1.0), 40, 1.5)
    assert np.abs(draws["batch_variance"]).max() == 0
    assert draws["batch_trusted"].min() == 1
    assert MOST_VARIANCE == 4.0


def test_moments_of_parts_are_those_of_the_whole():
    values = np.random.default_rng(0).normal(3.0, 2.0, 30)
    seen = Moments(jnp.zeros((), int), jnp.zeros(()), jnp.zeros(()))
    for part in np.split(values, [10, 20]):
        seen = seen.joined(jnp.asarray(part))
    assert int(seen.number) == 30
    assert float(seen.mean) == pytest.approx(values.mean(), rel=1e-13)
    assert float(seen.spread) == pytest.approx(values.var(ddof=1), rel=1e-13)


# What is refused


def look_back(x: Array, rows: Array) -> Array:
    return jnp.cumsum(terms(x, rows))


def sampled(*args: Any, **options: Any) -> Any:
    return lambda: tp.sample(*args, **(SHORT | options))


def target() -> tp.Target:
    return tp.Target(lambda x: -0.5 * jnp.sum(x**2), base=tp.Gaussian([0.0], 1.0))


def dependent() -> tp.Problem:
    return tp.Problem(log_prior, look_back, DATA, draw_prior, independent=False)


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a target": (lambda: sampled(target(), "mint")(), ArgumentError, "a Target has none"),
    "terms that look back": (lambda: sampled(dependent(), "mint")(), MoveError, "independent=True"),
    "more rows than there are": (
        sampled(make_problem(), "mint", batch_size=ROWS + 1), ArgumentError, f"1 to {ROWS}"
    ),
    "a batch of one": (lambda: tp.mint(batch_size=1), ArgumentError, "at least 2"),
    "alpha of zero": (lambda: tp.mint(alpha=0.0), ArgumentError, "alpha: wanted a number above 0"),
    "colder than the posterior": (
        sampled(make_problem(), "mint", batch_size=ROWS // 2, alpha=2.0), ArgumentError, "T = n /"
    ),
    "swaps": (sampled(make_problem(), "pt", "mint", num_rungs=3), MoveError, "a few rows"),
    "transitions": (sampled(make_problem(), "tt", "mint", num_rungs=3), MoveError, "an exact move"),
    "taking turns": (
        lambda: tp.alternate(tp.mint(), tp.metropolis()), MoveError, "cannot take turns"
    ),
    "taking turns with a kept batch": (
        lambda: tp.alternate(tp.mint(), tp.mint(noise="pseudo-marginal")), MoveError, "its batch"
    ),
    "hmc": (sampled(make_problem(), "mint", "hmc"), MoveError, "metropolis"),
    "correction of a penalty": (
        lambda: tp.mint(corrected=True), ArgumentError, "pseudo-marginal"
    ),
    "growth of a kept batch": (
        lambda: tp.mint(noise="pseudo-marginal", most_rows=200), ArgumentError, "most_rows"
    ),
    "a noise that is none": (lambda: tp.mint(noise="penality"), UnknownNameError, "penalty"),
    "a proposal that is none": (lambda: tp.mint("malla"), UnknownNameError, "mala"),
    "an option of another method": (
        sampled(make_problem(), "mint", betas=[0.0, 1.0]), UnknownNameError, "betas"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_calls_are_refused(name: str):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()


def test_a_ladder_without_rows_is_refused():
    ladder = tp.GeometricLadder(log_prior, lambda x: -(x**2), [0.0, 1.0])
    move = tp.mint()
    point = ladder.evaluate(jnp.zeros(()), gradient=False)
    params = tp.Params(jnp.ones(1), jnp.ones(1))
    with pytest.raises(MoveError, match="RowLadder"):
        move.step(jax.random.key(0), point, ladder.at(1), params)
