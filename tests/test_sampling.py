"""The front door, end to end, where the answer is known."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests import broken_sampling as broken
from tests.shared import small_runs
from tests.shared.small_runs import ROWS, run

import temperance as tp
from temperance.estimates.diagnostics import standard_error
from temperance.estimates.weighted import weighted_mean

# Rows are N(s, 1) with s = sum of the means, N(0, 2) a priori; the difference of the means is
# N(0, 2) before and after.
POSTERIOR_VARIANCE = 1 / (1 / 2 + len(ROWS))
POSTERIOR_MEAN = POSTERIOR_VARIANCE * ROWS.sum()
LOG_EVIDENCE = float(multivariate_normal.logpdf(ROWS, np.zeros(len(ROWS)), np.eye(len(ROWS)) + 2.0))
# In standard errors: 1e-5 for a right run, with room for errors that are themselves estimates.
LIMIT = 5.0
LONG = {"num_draws": 4000, "num_warmup": 400}


def scores(tree: Any) -> np.ndarray:
    """How far four posterior moments are from their known values, in standard errors."""
    mean = tree["posterior"]["mean"].values
    total, gap = mean.sum(axis=-1), mean[..., 0] - mean[..., 1]
    series = np.stack([total, total**2, gap, gap**2], axis=-1)
    exact = [POSTERIOR_MEAN, POSTERIOR_VARIANCE + POSTERIOR_MEAN**2, 0.0, 2.0]
    stats = tree["sample_stats"]
    if "log_weight" not in stats:
        return (series.mean(axis=(0, 1)) - exact) / standard_error(series)
    apart = "log_weight_base" not in stats
    found = weighted_mean(series, stats["log_weight"].values, independent=apart)
    return (found.value - exact) / found.error


def evidence_scores(tree: Any) -> np.ndarray:
    found = [tp.log_evidence(tree, name) for name in ("mbar", "stepping_stones")]
    return np.array([(value - LOG_EVIDENCE) / error for value, error in found])


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] if case in small_runs.LONGER else [])
        for case in small_runs.CASES
    ],
)
def test_every_method_draws_from_the_posterior(case: str) -> None:
    tree = run(case, **LONG)
    assert np.abs(scores(tree)).max() < LIMIT
    assert standard_error(tree["posterior"]["mean"].values).max() < 0.1
    if case in ("pt", "hand"):
        assert np.abs(evidence_scores(tree)).max() < LIMIT
        assert tp.log_evidence(tree)[1] < 0.05


@pytest.mark.parametrize(
    "twin",
    [broken.target_at_half_the_power, broken.hottest_rung_drawn_from_another_prior],
)
def test_broken_twins_do_not(twin: Any) -> None:
    tree = run("hand", method=twin(), **LONG)
    assert np.abs(scores(tree)).max() > LIMIT
    assert np.abs(evidence_scores(tree)).min() > LIMIT


def test_from_above_zero_there_are_draws_and_no_evidence() -> None:
    tree = run("pt", betas=(0.05, 0.2, 0.5, 1.0), scheme="sweep", **LONG)
    assert np.abs(scores(tree)).max() < LIMIT
    assert "evidence" not in tree.children
    with pytest.raises(tp.TemperanceError, match="betas that start at 0"):
        tp.log_evidence(tree)


def test_one_chain_and_one_draw_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    for num_draws in (1, 9):
        tree = run("plain", num_chains=1, num_draws=num_draws, num_warmup=0, progress=True)
        assert dict(tree["posterior"].sizes) == {"chain": 1, "draw": num_draws, "mean_dim_0": 2}
        assert "draw" in capsys.readouterr().err


def test_draws_depend_on_the_seed_and_on_nothing_else() -> None:
    one, same, other = (run("plain", seed=seed)["posterior"] for seed in (3, 3, 4))
    assert one.dataset.equals(same.dataset)
    assert not one.dataset.equals(other.dataset)
    # Chains are not copies of each other.
    first, second = one["mean"].values
    assert not np.isin(first, second).any()


@pytest.mark.parametrize("seed", [2**31, 2**32 + 7, 2**63 - 1])
def test_large_seeds_are_seeds(seed: int) -> None:
    for precision in ("double", "single"):
        small, large = (
            run("plain", seed=s, num_draws=2, num_warmup=0, precision=precision)["posterior"]
            for s in (seed % 2**31, seed)
        )
        assert not large.dataset.equals(small.dataset)


# -- slow ----------------------------------------------------------------------------------------

DIMENSION, WEIGHT, LOG_Z = 10, 0.3, 3.0
HALF_GAP = 5.0 / np.sqrt(DIMENSION)  # in every coordinate: ten standard deviations in all


def mixture(x: Any) -> Any:
    constant = LOG_Z - 0.5 * DIMENSION * np.log(2 * np.pi)
    left, right = (-0.5 * jnp.sum((x - m) ** 2) for m in (-HALF_GAP, HALF_GAP))
    return constant + jnp.logaddexp(np.log(WEIGHT) + left, np.log(1 - WEIGHT) + right)


def test_two_modes_ten_sigma_apart(seed: int) -> None:
    """The issue's own: weight within 0.02 and log Z within 0.05, four chains, nothing hand-set."""
    target = tp.Target(mixture, tp.Gaussian(np.zeros(DIMENSION), 36.0))
    tree = tp.sample(target, num_draws=4000, seed=seed, progress=False)
    left = (tree["posterior"]["x"].sum("x_dim_0") < 0).values.astype(float)
    value, error = tp.log_evidence(tree)
    assert left.shape == (4, 4000)
    assert abs(left.mean() - WEIGHT) < 0.02
    assert abs(value - LOG_Z) < 0.05
    assert abs(left.mean() - WEIGHT) < LIMIT * standard_error(left)
    assert abs(value - LOG_Z) < LIMIT * error
    assert (np.abs(left.mean(axis=1) - WEIGHT) < 0.06).all()  # each chain has seen both
    # The move alone stays where it began.
    plain = tp.sample(target, "plain", num_draws=1000, seed=seed, progress=False)
    weights = (plain["posterior"]["x"].sum("x_dim_0") < 0).mean("draw").values
    assert set(weights) <= {0.0, 1.0}


@pytest.mark.slow
def test_intervals_of_log_evidence_cover(seed: int) -> None:
    count = 200
    hits = np.zeros((3, count), bool)
    for i in range(count):
        tree = run(
            "pt", seed=1000 * seed + i, num_chains=4, num_draws=300, num_warmup=200,
            sweeps_per_draw=1, betas=small_runs.BETAS,
        )  # fmt: skip
        found = [tp.log_evidence(tree, name) for name in ("mbar", "stepping_stones")]
        found.append((found[0][0], broken.error_of_shuffled_draws(tree)))
        hits[:, i] = [abs(value - LOG_EVIDENCE) < 1.96 * error for value, error in found]
    by_mbar, by_stepping_stones, by_the_twin = hits.mean(axis=1)
    assert 0.90 <= by_mbar <= 0.99
    assert 0.90 <= by_stepping_stones <= 0.99
    assert by_the_twin < 0.85
