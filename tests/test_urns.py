"""Two urns: the posterior, strategies and churns against enumeration, limits of many balls."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2
from tests import broken_urns as broken

from temperance.crosscat import urns as module
from temperance.crosscat.urn_limits import anneal_time, diffusion, drift, effective_time
from temperance.crosscat.urn_strategies import CHURNS
from temperance.crosscat.urns import STRATEGIES, TwoUrns, distance, floor
from temperance.errors import ArgumentError, UnknownNameError
from temperance.testing import urns as enumerated
from temperance.testing.enumeration import defect, imbalance, stationary, total_variation

SMALL = TwoUrns(2, 3, p=0.45, alpha=0.5)
FEW = TwoUrns(4, 6, p=0.45, alpha=0.5)
ALL = 5
LEVEL = 1e-4


def grid(urns):
    return np.arange(urns.num_red + 1)[:, None], np.arange(urns.num_blue + 1)[None]


def passes_chi_square(urns, counts, law):
    """Whether runs have a law over the states of all balls: a chi-square test at LEVEL."""
    states = np.array(enumerated.subsamples(urns, urns.num_balls))
    width = urns.num_blue + 1
    seen = np.bincount(counts @ [width, 1], minlength=width * (urns.num_red + 1))
    seen, expected = seen[states[:, :2] @ [width, 1]], law * len(counts)
    # Rare states are one.
    rare = expected < 20
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
    return chi2.sf(statistic, kept.sum() - 1) > LEVEL


# ------------------------------------------------------------------------------------ posterior


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


# --------------------------------------------------------------------------------------- churns


def test_printed_churn_has_another_law():
    found = []
    for size in range(1, ALL + 1):
        law = stationary(enumerated.churn(SMALL, size))
        found.append(total_variation(law, enumerated.uniform_law(SMALL, size)))
    assert found == pytest.approx([0, 0.0076, 0.0169, 0.0215, 0], abs=5e-5)


@pytest.mark.parametrize("kind", ["metropolis", "weighted"])
@pytest.mark.parametrize("size", range(1, ALL + 1))
def test_exact_churns_leave_the_joint_law(kind, size):
    kernel = enumerated.churn(SMALL, size, kind)
    assert kernel.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
    law = enumerated.extended_law(SMALL, size)
    assert defect(kernel, law) < 1e-15
    assert imbalance(kernel, law) < 1e-15


@pytest.mark.parametrize(
    "kernel", [broken.churn_without_acceptance, broken.churn_accepting_by_the_old_predictive]
)
@pytest.mark.parametrize("size", range(2, ALL))
def test_broken_churns_do_not(kernel, size):
    assert defect(kernel(SMALL, size), enumerated.extended_law(SMALL, size)) > 1e-3


@pytest.mark.parametrize("kind", list(CHURNS))
def test_all_churns_are_gibbs_on_all_balls(kind):
    gibbs = enumerated.gibbs(SMALL).toarray()
    assert enumerated.churn(SMALL, ALL, kind) == pytest.approx(gibbs, abs=1e-14)


@pytest.mark.parametrize("kind", list(CHURNS))
@pytest.mark.parametrize("num_churns", [0, 1, 3])
def test_weights_make_every_anneal_exact(kind, num_churns):
    found = enumerated.annealed(SMALL, num_churns, kind, weigh=True)
    posterior = enumerated.extended_law(SMALL, ALL)
    assert found.sum() == pytest.approx(0.0198930176, abs=1e-10)
    assert found.sum() == pytest.approx(math.exp(SMALL.log_evidence), abs=1e-15)
    assert np.abs(found - posterior * found.sum()).max() < 1e-16


def test_weights_without_removals_are_rejected():
    found = broken.weights_without_removals(SMALL, 1)
    assert abs(found.sum() - 0.0198930176) > 0.01
    posterior = enumerated.extended_law(SMALL, ALL)
    assert total_variation(found / found.sum(), posterior) > 1e-3


def test_unweighted_anneals_come_nearer_with_churns():
    """To six digits these agree with a sum over labelled balls."""
    posterior = enumerated.extended_law(SMALL, ALL)
    found = [
        total_variation(enumerated.annealed(SMALL, num), posterior) for num in (0, 1, 2, 5, 10, 20)
    ]
    known = [0.049751, 0.029147, 0.020032, 0.008648, 0.003626, 0.001314]
    assert found == pytest.approx(known, abs=1e-6)
    side_by_side = [
        total_variation(broken.churns_after_all_growth(SMALL, num), posterior) for num in (1, 2, 5)
    ]
    assert np.all(np.subtract(side_by_side, found[1:4]) > 0.005)


# ------------------------------------------------------------------------------- other kernels


@pytest.mark.parametrize("size", [1, 2, 3])
def test_handfuls_leave_the_posterior(size):
    posterior = enumerated.extended_law(SMALL, ALL)
    assert imbalance(enumerated.handful(SMALL, size), posterior) < 1e-15
    if size < 3:
        assert defect(broken.handful_by_the_posterior_alone(SMALL, size), posterior) > 1e-3


def test_a_handful_of_one_is_a_gibbs_step():
    gibbs = enumerated.gibbs(SMALL).toarray()
    assert enumerated.handful(SMALL, 1) == pytest.approx(gibbs, abs=1e-14)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_hot_steps_leave_the_hot_law(beta):
    prior, posterior = laws(SMALL)
    heated = prior ** (1 - beta) * posterior**beta
    assert defect(enumerated.gibbs(SMALL, beta).toarray(), heated / heated.sum()) < 1e-15


# ------------------------------------------------------------------------------ whole strategies


def laws(urns):
    """The laws of the prior and of the posterior over the states of all balls."""
    states = enumerated.subsamples(urns, urns.num_balls)
    prior = [
        math.comb(urns.num_red, a) * math.comb(urns.num_blue, b)
        * urns.p ** (a + b) * (1 - urns.p) ** (c + d)
        for a, b, c, d in states
    ]  # fmt: skip
    return np.array(prior), enumerated.extended_law(urns, urns.num_balls)


def exact_law(urns, strategy, passes):
    """The law at a strategy's end, by products of matrices."""
    num = urns.num_balls
    prior, _ = laws(urns)
    gibbs = enumerated.gibbs(urns).toarray()
    law = enumerated.annealed(urns, passes - 1 if strategy == "anneal-subsample" else 0)
    if strategy == "sequential+gibbs":
        law = law @ np.linalg.matrix_power(gibbs, (passes - 1) * num)
    elif strategy == "prior+gibbs":
        law = prior @ np.linalg.matrix_power(gibbs, passes * num)
    elif strategy in ("prior", "anneal-energy", "anneal-stepsize"):
        law = prior
    for t in range(1, passes * num + 1):
        beta = t / (passes * num)
        if strategy == "anneal-energy":
            law = law @ enumerated.gibbs(urns, beta).toarray()
        elif strategy == "anneal-stepsize":
            size, share = int(1 / beta), 1 / beta % 1
            law = (1 - share) * law @ enumerated.handful(
                urns, size
            ) + share * law @ enumerated.handful(urns, size + 1)
    return law


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


# ----------------------------------------------------------------------------- many balls, limits


@pytest.mark.parametrize(("x", "y"), [(0.3, 0.6), (0.7, 0.2)])
def test_drift_and_diffusion_are_those_of_gibbs(x, y):
    """One exact step with a million balls, from its four chances."""
    num, red, p, alpha = 10**6, 0.4, 0.45, 0.5
    held = [int(num * red * x), int(num * (1 - red) * y)]
    held += [int(num * red) - held[0], int(num * (1 - red)) - held[1]]
    step = 1 / (num * red)
    mean = square = 0.0
    for place, sign in ((0, -1), (2, 1)):
        others = list(held)
        others[place] -= 1
        weights = [
            share * (alpha + others[k]) / (2 * alpha + others[k] + others[k + 1])
            for share, k in ((p, 0), (1 - p, 2))
        ]
        across = weights[1 if place == 0 else 0] / sum(weights)
        chance = held[place] / num * across
        mean += sign * chance * step
        square += chance * step**2
    assert drift(x, y, red=red, p=p) == pytest.approx(num * mean, abs=1e-5)
    assert diffusion(x, y, red=red, p=p) == pytest.approx(num**2 * square, rel=1e-4)
    assert abs(broken.printed_drift(x, y, red=red, p=p) - num * mean) > 0.01


def test_drift_has_the_known_number_and_vanishes_on_the_line():
    assert drift(0.3, 0.6, red=0.4, p=0.45) == pytest.approx(-0.0247, abs=5e-5)
    assert broken.printed_drift(0.3, 0.6, red=0.4, p=0.45) == pytest.approx(0.0171, abs=5e-5)
    assert drift(0.3, (0.45 - 0.4 * 0.3) / 0.6, red=0.4, p=0.45) == pytest.approx(0.0, abs=1e-15)
    half = {"red": 0.4, "p": 0.5}
    assert drift(0.3, 0.6, **half) == pytest.approx(broken.printed_drift(0.3, 0.6, **half))


def test_effective_time_is_the_integral():
    duration, num, smallest = 1e5, 10_000, 100
    found = effective_time(duration, num, smallest)
    start = smallest / num * duration
    assert found == pytest.approx(quad(lambda t: (duration / t) ** 2, start, duration)[0])
    assert found == pytest.approx(9_900_000)
    assert broken.printed_effective_time(duration, num, smallest) < 1e-6
    enough = anneal_time(num, smallest, 0.01)
    assert effective_time(enough, num, smallest) == pytest.approx(num**2 * math.log(100))
    assert anneal_time(2 * num, smallest, 0.01) / enough == pytest.approx(2, rel=0.01)


def test_relaxation_of_gibbs_grows_with_the_square(seed):
    found = {}
    for num in (10, 20, 40):
        urns = TwoUrns(2 * num // 5, 3 * num // 5)
        root = np.sqrt(enumerated.extended_law(urns, num))
        kernel = root[:, None] * enumerated.gibbs(urns).toarray() / root[None]
        found[num] = 1 / (1 - np.linalg.eigvalsh(0.5 * (kernel + kernel.T))[-2]) / num**2
    assert list(found.values()) == pytest.approx([0.72, 0.77, 0.796], abs=0.005)


# --------------------------------------------------------------------------------- wrong calls


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
    assert set(module.STRATEGIES) == set(STRATEGIES)
