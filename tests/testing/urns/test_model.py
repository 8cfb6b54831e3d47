"""Two urns: the posterior, and whole runs of every strategy against enumeration."""

import math

import numpy as np
import pytest
from tests.testing.urns import broken
from tests.testing.urns.laws import FEW, SMALL, exact_law, passes_chi_square

from temperance.errors import ArgumentError, UnknownNameError
from temperance.testing.urns import enumeration as enumerated
from temperance.testing.urns.churns import CHURNS
from temperance.testing.urns.limits import anneal_time, effective_time
from temperance.testing.urns.model import STRATEGIES, TwoUrns, distance, floor


def grid(urns):
    return np.arange(urns.num_red + 1)[:, None], np.arange(urns.num_blue + 1)[None]


def test_posterior_has_the_known_numbers():
    i, j = grid(FEW)
    law = np.exp(FEW.log_posterior(i, j))
    assert FEW.log_evidence == pytest.approx(-7.515848327, abs=1e-9)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert (law * i).sum() == pytest.approx(1.969244188, abs=1e-9)
    assert (law * j).sum() == pytest.approx(2.625515051, abs=1e-9)
    assert law[4, 0] == pytest.approx(0.1286138519, abs=1e-10)
    assert law[0, 6] == pytest.approx(0.0860968761, abs=1e-10)


def test_posterior_is_that_of_labelled_balls():
    law = enumerated.extended_law(FEW, FEW.num_balls)
    states = np.array(enumerated.subsamples(FEW, FEW.num_balls))
    assert np.exp(FEW.log_posterior(*states[:, :2].T)) == pytest.approx(law, abs=1e-12)


@pytest.mark.parametrize("num_bins", [1, 3, 5])
def test_bins_hold_the_whole_posterior(num_bins):
    i, j = grid(FEW)
    law = np.exp(FEW.log_posterior(i, j))
    truth = np.zeros((num_bins, num_bins))
    np.add.at(truth, (i * num_bins // 5, j * num_bins // 7), law)
    assert FEW.binned_posterior(num_bins) == pytest.approx(truth, abs=1e-12)


def test_many_balls_are_summed_without_a_table():
    urns = TwoUrns(800, 1200)
    i, j = grid(urns)
    logs = urns.log_joint(i, j)
    assert urns.log_evidence == pytest.approx(np.logaddexp.reduce(logs, axis=None), abs=1e-8)
    assert urns.binned_posterior(20).sum() == pytest.approx(1.0, abs=1e-9)


def test_draws_have_the_posterior(seed):
    draws = FEW.draw(np.random.default_rng(seed), 60_000)
    law = enumerated.extended_law(FEW, FEW.num_balls)
    assert passes_chi_square(FEW, draws, law)
    assert not passes_chi_square(FEW, draws, enumerated.extended_law(TwoUrns(4, 6, p=0.46), 10))


def test_distance_of_exact_draws_is_the_floor(seed):
    rng = np.random.default_rng(seed)
    truth = FEW.binned_posterior(5)
    found = distance(FEW.binned(FEW.draw(rng, 4000), 5), truth, 4000)
    least = floor(truth, 4000, rng)
    assert abs(found.value - least.value) < 5 * least.error
    assert distance(truth, truth, 10).value == 0.0
    prior = distance(FEW.binned(FEW.run("prior", rng, num_runs=4000), 5), truth, 4000)
    assert prior.value > least.value + 20 * least.error
    assert 0 < prior.error < 0.01


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_runs_have_the_strategys_law(strategy, seed):
    passes = 2
    runs = SMALL.run(strategy, np.random.default_rng(seed), passes, num_runs=200_000)
    assert passes_chi_square(SMALL, runs, exact_law(SMALL, strategy, passes))
    for other in ("sequential", "prior"):
        if strategy != other:
            assert not passes_chi_square(SMALL, runs, exact_law(SMALL, other, passes))


def test_wrong_nesting_is_rejected(seed):
    law = exact_law(SMALL, "anneal-subsample", 3)
    rng = np.random.default_rng(seed)
    assert passes_chi_square(SMALL, SMALL.run("anneal-subsample", rng, 3, 500_000), law)
    runs = broken.runs_with_churns_after_all_growth(SMALL, rng, 3, 500_000)
    assert not passes_chi_square(SMALL, runs, law)


@pytest.mark.parametrize("churn", list(CHURNS))
def test_weighted_runs_have_the_churns_law(churn, seed):
    runs = SMALL.anneal(np.random.default_rng(seed), 3, num_runs=1_000_000, churn=churn)
    assert passes_chi_square(SMALL, runs.counts, enumerated.annealed(SMALL, 2, churn))
    for other in CHURNS:
        if {churn, other} & {"uniform"} and churn != other:
            assert not passes_chi_square(SMALL, runs.counts, enumerated.annealed(SMALL, 2, other))


@pytest.mark.parametrize("churn", list(CHURNS))
def test_weighted_runs_estimate_the_evidence(churn, seed):
    runs = FEW.anneal(np.random.default_rng(seed), 3, num_runs=50_000, churn=churn)
    weights = np.exp(runs.log_weights - FEW.log_evidence)
    error = weights.std() / math.sqrt(weights.size)
    assert abs(weights.mean() - 1) < 5 * error < 0.05
    left = weights * (runs.counts[:, 0] - 1.969244188)
    assert abs(left.mean()) < 5 * left.std() / math.sqrt(left.size)


def test_the_same_seed_gives_the_same_runs(seed):
    one, two = (FEW.run("anneal-energy", np.random.default_rng(seed), 2, 50) for _ in range(2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda _: TwoUrns(0, 3), "at least one of each"),
        (lambda _: TwoUrns(2, 3, p=1.0), "p: got 1.0"),
        (lambda _: TwoUrns(2, 3, alpha=0.0), "alpha: got 0.0"),
        (lambda rng: SMALL.run("anneal-energy", rng, passes=0), "passes: got 0"),
        (lambda rng: SMALL.anneal(rng, num_runs=0), "num_runs: got 0"),
        (lambda _: SMALL.binned_posterior(4), "num_bins: got 4, wanted 1 to 3"),
        (lambda _: effective_time(1.0, 10, 11), "smallest: got 11"),
        (lambda _: anneal_time(10, 10, 0.1), "smallest: got 10"),
    ],
)
def test_wrong_calls_say_what_was_wanted(call, words):
    with pytest.raises(ArgumentError, match=words):
        call(np.random.default_rng(0))


def test_unknown_names_have_a_neighbour():
    rng = np.random.default_rng(0)
    with pytest.raises(UnknownNameError, match="did you mean 'anneal-subsample'"):
        SMALL.run("anneal-subsamples", rng)
    with pytest.raises(UnknownNameError, match="did you mean 'metropolis'"):
        SMALL.anneal(rng, churn="metropoli")
