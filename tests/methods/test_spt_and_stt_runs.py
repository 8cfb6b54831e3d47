"""Whole runs of spt and stt: draws, log evidence, sizes, and what was evaluated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.shared.stages import shared_of
from tests.shared.subsampled_rows import (
    SCALE,
    Terms,
    draw_prior,
    log_evidence,
    log_prior,
    make_problem,
)

import temperance as tp
from temperance.engine.loop import traces
from temperance.estimates.diagnostics import standard_error
from temperance.ladders.prefix import PrefixLadder
from temperance.ladders.size_spacing import colder_part, cut_evenly, variances
from temperance.ladders.spacing import spt_cost, stt_cost
from temperance.moves.move import Params
from temperance.warmup.subsample_rungs import Sizes, SubsampleRungs

ROWS, SHARED = 40, 0.3
# One set of sizes, so that few programs are compiled.
SIZES = (0, 2, 6, 16, 40)
SHORT = {"num_warmup": 200, "num_chains": 2, "progress": False, "move": "metropolis"}


def score(tree, problem) -> float:
    """How many standard errors the posterior mean is off, at worst."""
    shared = problem.terms.shared
    n = problem.num_rows
    known = n / (1 + n * shared)
    mean = known * problem.data.mean(axis=0) / (known + SCALE**-2)
    x = tree["posterior"]["x"].values
    return float(np.max(np.abs(x.mean(axis=(0, 1)) - mean) / standard_error(x)))


@pytest.mark.parametrize("shared", [pytest.param(0.0, marks=pytest.mark.slow), SHARED])
def test_spt_finds_the_posterior_and_its_evidence(shared: float):
    problem = make_problem(ROWS, shared)
    tree = tp.sample(problem, "spt", sizes=SIZES, num_draws=600, **SHORT)
    assert score(tree, problem) < 4
    exact = log_evidence(problem.data, shared)
    for estimator in ("mbar", "bridges", "stepping_stones"):
        value, error = tp.log_evidence(tree, estimator)
        assert abs(value - exact) < 4 * error < 1.0
    np.testing.assert_array_equal(tree["tempering"]["size"], SIZES)
    np.testing.assert_allclose(tree["tempering"]["beta"], np.array(SIZES) / ROWS)
    assert tree["tempering"]["round_trips"].values.min() > 10
    # Without evidence nothing is completed, and the draws stay what they are.
    if not shared:
        bare = tp.sample(problem, "spt", sizes=SIZES, num_draws=20, evidence=False, **SHORT)
        assert "evidence" not in bare.children
        same = tree["posterior"]["x"].values[:, :20]
        np.testing.assert_array_equal(bare["posterior"]["x"].values, same)


@pytest.mark.parametrize("shared", [0.0, pytest.param(SHARED, marks=pytest.mark.slow)])
def test_stt_finds_the_posterior(shared: float):
    problem = make_problem(ROWS, shared)
    tree = tp.sample(problem, "stt", sizes=(6, 16, 40), num_draws=800, **SHORT)
    assert score(tree, problem) < 4
    assert float(tree["tempering"]["transition_rate"]) > 0.03
    with pytest.raises(tp.TemperanceError, match="evidence=True"):
        tp.log_evidence(tree)


def test_another_seed_compiles_nothing_and_shuffles_anew():
    problem = make_problem(ROWS)
    options = SHORT | {"sizes": SIZES, "num_draws": 5, "evidence": False}
    tp.sample(problem, "spt", seed=1, **options)
    traces.clear()
    traces["run"] = 0
    tp.sample(problem, "spt", seed=2, **options)
    assert traces["run"] == 0


@pytest.mark.slow
def test_rows_are_counted_as_they_are_evaluated():
    """By hand for one sweep of each sampler, and near the theory of the cost factors."""
    problem = make_problem(ROWS)
    sizes = np.array([5, 10, 20, 40])
    ladder = PrefixLadder.of(problem, sizes)
    num_steps = 9
    # So short that no move at the target is refused, and new subsamples need no look of their own.
    params = Params(jnp.full((4, 1), 0.001), jnp.ones((4, 2)))
    rows = {}
    for kind in (tp.ParallelTempering, tp.TemperedTransitions):
        sampler = kind(ladder, tp.hmc(num_steps), params)
        tree = tp.sample(problem, sampler, num_draws=10, num_warmup=0, num_chains=1, progress=False)
        rows[kind] = tree.attrs["num_row_evaluations"] / 10 / ROWS
    moves = num_steps + 1
    # Ten rounds of deo compare each pair five times.
    wanted = moves * spt_cost(sizes) + 0.5 * (ROWS - sizes[0]) / ROWS
    assert rows[tp.ParallelTempering] == pytest.approx(wanted, rel=1e-12)
    wanted = moves * stt_cost(sizes) + (ROWS - sizes[0]) / ROWS
    assert rows[tp.TemperedTransitions] == pytest.approx(wanted, rel=1e-12)


def test_cubes_are_counted_where_terms_look_back():
    problem = make_problem(ROWS, SHARED)
    sizes = np.array([10, 20, 40])
    sampler = tp.ParallelTempering(
        PrefixLadder.of(problem, sizes), tp.hmc(4), Params(jnp.full((3, 1), 0.05), jnp.ones((3, 2)))
    )
    tree = tp.sample(problem, sampler, num_draws=10, num_warmup=0, num_chains=1, progress=False)
    wanted = (4 + 1 / 3) * spt_cost(sizes, 3.0) + 0.5 / 3 * (0.5**3 + 1)
    assert tree.attrs["num_cubes"] / 10 == pytest.approx(wanted, rel=1e-12)


@pytest.mark.slow
def test_sizes_are_chosen_by_a_pilot():
    rows = np.random.default_rng(2).normal(size=(300, 2))
    problem = tp.Problem(log_prior, Terms(0.0), rows, draw_prior)
    options = SHORT | {"num_draws": 200}
    tree = tp.sample(problem, "spt", **options)
    sizes = tree["tempering"]["size"].values
    assert sizes[0] == 0
    assert sizes[-1] == 300
    assert (np.diff(sizes) > 0).all()
    swaps = tree["tempering"]["swap_acceptance"].values
    assert swaps.min() > 0.2
    assert swaps.max() < 0.95
    assert tp.log_evidence(tree)[0] == pytest.approx(log_evidence(rows), abs=0.5)


def test_the_hottest_rung_of_a_transition_is_not_too_far():
    sizes, variance = np.array([0.0, 2, 8, 32, 128]), np.array([9.0, 5.0, 3.0, 2.0])
    kept, left = colder_part(sizes, variance, 6.0)
    assert kept[-1] == 128
    assert 2 < kept[0] < 8
    assert left.sum() == pytest.approx(6.0)
    whole, same = colder_part(sizes, variance, 20.0)
    np.testing.assert_array_equal(whole, sizes)
    np.testing.assert_array_equal(same, variance)


def test_variance_adds_up_along_subsamples():
    """A swap's rejection is that of a normal log ratio, and equal steps are cut evenly."""
    spread = np.array([0.5, 1.0, 2.0])
    rates = 1 - 2 * stats.norm.cdf(-0.5 * spread)
    np.testing.assert_allclose(variances(rates), spread**2, rtol=1e-9)
    sizes = np.array([10.0, 20.0, 40.0, 80.0])
    np.testing.assert_allclose(cut_evenly(sizes, np.ones(3), 4), sizes, rtol=1e-12)
    more = cut_evenly(sizes, np.ones(3), 7)
    np.testing.assert_allclose(more[::2], sizes, rtol=1e-12)


def test_a_time_series_is_heated_by_its_beginnings():
    """Its rows must not change places: the posterior would be another one."""
    rng = np.random.default_rng(0)
    series = np.zeros(60)
    for i in range(1, 60):
        series[i] = 0.8 * series[i - 1] + rng.normal()

    def terms(x, rows):
        before = jnp.concatenate([jnp.zeros(1), rows[:-1]])
        return -0.5 * (rows - x * before) ** 2

    problem = tp.Problem(
        lambda x: -0.5 * x**2, terms, series, lambda k: jax.random.normal(k), independent=False
    )
    precision = 1 + np.sum(series[:-1] ** 2)
    mean = np.sum(series[1:] * series[:-1]) / precision
    for method in ("spt", "stt"):
        tree = tp.sample(problem, method, sizes=(10, 25, 60), num_draws=500, **SHORT)
        x = tree["posterior"]["x"].values
        assert abs(x.mean() - mean) < 4 * standard_error(x)
    with pytest.raises(tp.TemperanceError, match="order of its rows"):
        tp.sample(problem, "spt", refresh=2, progress=False)


@pytest.mark.slow
def test_evidence_of_a_normal_mean_over_many_runs():
    """500 draws a rung of 256 rows: the spread of MBAR, and intervals that cover."""
    rng = np.random.default_rng(1)
    y = rng.normal(0.5, 1.0, 256)
    problem = tp.Problem(
        lambda x: -0.5 * x**2 - 0.5 * np.log(2 * np.pi),
        lambda x, rows: -0.5 * (rows - x) ** 2 - 0.5 * np.log(2 * np.pi),
        y,
        lambda key: jax.random.normal(key),
    )
    exact = stats.multivariate_normal(np.zeros(256), np.eye(256) + 1.0).logpdf(y)
    sizes = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
    found = np.array(
        [
            tp.log_evidence(
                tp.sample(problem, "spt", sizes=sizes, num_draws=500, num_warmup=200, seed=seed,
                          num_chains=1, progress=False)
            )
            for seed in range(60)
        ]
    )  # fmt: skip
    values, errors = found.T
    assert values.std(ddof=1) <= 0.08
    assert abs(values.mean() - exact) < 4 * values.std(ddof=1) / np.sqrt(60)
    covered = np.mean(np.abs(values - exact) < 1.96 * errors)
    assert 0.85 <= covered <= 1.0


# -- sizes on trial --------------------------------------------------------------------------------


def test_sizes_that_are_too_far_apart_are_drawn_together():
    found = shared_of(make_problem(ROWS), "stt")
    betas = (0.1, 0.25, 0.5, 1.0)
    near, far = (0.4, 0.4, 0.4), (0.9, 0.9, 0.9)
    assert variances(np.array(near)).sum() < 12 < variances(np.array(far)).sum()
    assert found.after_trial(Sizes(betas, near)) == betas
    colder = found.after_trial(Sizes(betas, far))
    assert betas[0] < colder[0] < 1
    assert colder[-1] == 1
    assert len(colder) == len(betas)
    # Where nothing lies between, what there is has to do.
    last = (1 - 1 / ROWS, 1.0)
    assert found.after_trial(Sizes(last, (0.95,))) == last


@pytest.mark.parametrize(("method", "hottest", "tried"), [
    ("stt", None, True), ("stt", 0.1, False), ("spt", None, False),
])  # fmt: skip
def test_only_sizes_that_nobody_asked_for_are_tried(
    method: str, hottest: float | None, tried: bool
):
    given = {} if hottest is None else {"min_rows": hottest}
    assert shared_of(make_problem(ROWS), method, **given).tries_sizes is tried


@pytest.mark.slow
@pytest.mark.parametrize("tries", [True, False])
def test_a_pilot_that_was_deceived_is_found_out(tries: bool, monkeypatch: pytest.MonkeyPatch):
    """It has chosen one row in a thousand; without a trial hardly a transition is accepted."""
    far = tuple(float(n) / 4000 for n in (4, 22, 126, 711, 4000))
    monkeypatch.setattr(SubsampleRungs, "colder_look", lambda *_: None)
    monkeypatch.setattr(SubsampleRungs, "chosen", lambda *_: far)
    if not tries:
        monkeypatch.setattr(SubsampleRungs, "tries_sizes", False)
    rows = np.random.default_rng(2).normal(size=(4000, 4))

    def terms(x, rows):
        return -0.5 * jnp.sum((rows - x[None]) ** 2, axis=1)

    problem = tp.Problem(
        lambda x: -0.5 * jnp.sum(x**2), terms, rows, lambda key: jax.random.normal(key, (4,))
    )
    options = SHORT | {"num_draws": 200, "num_warmup": 400, "move": "hmc"}
    tree = tp.sample(problem, "stt", **options)
    rate = float(tree["tempering"]["transition_rate"])
    sizes = tree["tempering"]["size"].values
    if tries:
        assert sizes[0] > 100
        assert rate > 0.1
    else:
        assert sizes[0] == 4
        assert rate < 0.02
