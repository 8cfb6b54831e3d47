"""Mini-batch tempered Metropolis on finite spaces, summed over all batches.

Exact kernels leave their law to 1e-15; for the others the error is a number that is known.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.moves.minibatch import broken_mint_enumeration as twins

from temperance.errors import ArgumentError
from temperance.moves.minibatch.batch_law import (
    BatchLaw,
    flattening,
    implied_beta,
    mean_acceptance,
    penalty,
)
from temperance.rows.batches import Batches
from temperance.testing import minibatches, subsamples
from temperance.testing.enumeration import (
    Matrix,
    cycle_metropolis,
    defect,
    imbalance,
    metropolis,
    normalised,
    stationary,
    total_variation,
)

STATES, ROWS = 5, 6
TERMS = subsamples.sine_terms(ROWS, STATES, 1.0)
PRIOR = np.log([0.1, 0.3, 0.2, 0.25, 0.15])
EXACT = 1e-15
TEMPERED = {0.5: (0.25988604, 0.15892861, 0.19024054, 0.24479938, 0.14614543)}
OWN = {
    0.5: (0.25279163, 0.16098956, 0.19810357, 0.24395028, 0.14416496),
    0.9: (0.26626984, 0.14968281, 0.19887607, 0.25669024, 0.12848103),
}
COMMON = {
    0.5: (0.23769776, 0.17124405, 0.19448988, 0.23102833, 0.16553998),
    0.9: (0.24336561, 0.1658377, 0.19319208, 0.23667158, 0.16093302),
}


def cycle(n: int = STATES) -> Matrix:
    return 0.5 * (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))


def law_of(
    alpha: float = 0.5, size: int = 2, *, replace: bool = False, temper_prior: bool = True
) -> BatchLaw:
    return BatchLaw(Batches(ROWS, replace), size, alpha, temper_prior)


def same_digits(law: np.ndarray, printed: tuple[float, ...]) -> bool:
    return bool(np.abs(law - np.array(printed)).max() < 5.1e-9)


# T3: the numbers of record


def test_what_is_meant_on_t3():
    law = minibatches.tempered(law_of(), TERMS)
    assert same_digits(law, TEMPERED[0.5])
    posterior_to_the_power = normalised(implied_beta(ROWS, 2, 0.5) * TERMS.sum(axis=0))
    np.testing.assert_allclose(law, posterior_to_the_power, rtol=1e-14)


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_own_batches_on_t3(alpha: float):
    law = law_of(alpha)
    weights = minibatches.log_weights(law, TERMS)
    extended = minibatches.extended(weights)
    matrix = minibatches.own_batch(weights, cycle())
    assert defect(matrix, extended) < EXACT
    assert imbalance(matrix, extended) < EXACT
    marginal = minibatches.state_marginal(stationary(matrix), STATES)
    assert same_digits(marginal, OWN[alpha])
    # x alone has the mean over batches of exp(m^alpha mu_S(x)).
    batches = np.array(minibatches.all_batches(law))
    mean = np.exp(2**alpha * TERMS[batches].mean(axis=1)).mean(axis=0)
    np.testing.assert_allclose(marginal, mean / mean.sum(), atol=2e-15)


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_the_printed_algorithm_on_t3(alpha: float):
    law = law_of(alpha)
    matrix = minibatches.common(law, TERMS, cycle())
    found = stationary(matrix)
    assert same_digits(found, COMMON[alpha])
    assert imbalance(matrix, found) > 1e-4
    own = minibatches.state_marginal(
        minibatches.extended(minibatches.log_weights(law, TERMS)), STATES
    )
    meant = minibatches.tempered(law, TERMS)
    assert total_variation(found, own) > 0.02
    assert total_variation(found, meant) > 0.02
    # It is what one gets of a kernel for each batch, of which none is the chain's.
    kernels = [
        cycle_metropolis(2**alpha * TERMS[list(batch)].mean(axis=0))
        for batch in minibatches.all_batches(law)
    ]
    np.testing.assert_allclose(matrix, np.mean(kernels, axis=0), atol=1e-15)


@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_a_batch_for_each_end_is_rejected(alpha: float):
    law = law_of(alpha)
    found = stationary(twins.a_batch_for_each_end(law, TERMS, cycle()))
    weights = minibatches.log_weights(law, TERMS)
    own = minibatches.state_marginal(minibatches.extended(weights), STATES)
    meant = minibatches.tempered(law, TERMS)
    assert total_variation(found, own) > 0.02
    assert total_variation(found, meant) > 0.02
    assert found.std() < meant.std()


# A batch of its own for each state


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("temper_prior", [False, True])
def test_every_way_to_move_a_state_with_its_batch_is_exact(
    replace: bool, corrected: bool, temper_prior: bool
):
    law = law_of(0.9, replace=replace, temper_prior=temper_prior)
    weights = minibatches.log_weights(law, TERMS, PRIOR, corrected=corrected)
    extended = minibatches.extended(weights)
    fresh = minibatches.own_batch(weights, cycle())
    moved = minibatches.moved_on_batch(weights, cycle())
    exchanged = minibatches.exchanged(law, weights)
    for matrix in (fresh, moved, exchanged):
        assert defect(matrix, extended) < EXACT
        assert imbalance(matrix, extended) < EXACT
    both = moved @ exchanged
    assert defect(both, extended) < EXACT
    assert imbalance(both, extended) > 1e-5
    assert total_variation(stationary(both), extended) < 1e-13
    assert 0.2 < 1 - extended @ np.diag(exchanged) < 0.9


def test_the_law_of_a_pair_is_what_it_says():
    """By a loop in plain arithmetic."""
    law = law_of(0.9, 3, temper_prior=False)
    batches = minibatches.all_batches(law)
    assert len(batches) == 20
    plain = minibatches.log_weights(law, TERMS, PRIOR)
    corrected = minibatches.log_weights(law, TERMS, PRIOR, corrected=True)
    for at, batch in enumerate(batches):
        rows = TERMS[list(batch)]
        value = 3**0.9 * rows.sum(axis=0) / 3 + PRIOR
        np.testing.assert_allclose(plain[:, at], value, rtol=1e-13)
        spread = ((rows - rows.mean(axis=0)) ** 2).sum(axis=0) / 2
        value = value - 0.5 * 3**1.8 * spread / 3 * (1 - 3 / 6)
        np.testing.assert_allclose(corrected[:, at], value, rtol=1e-12)
    powered = minibatches.log_weights(law_of(0.9, 3), TERMS, PRIOR)
    wanted = (3**0.9 / ROWS - 1) * PRIOR
    np.testing.assert_allclose(powered - plain, np.tile(wanted[:, None], 20), atol=1e-14)


def test_the_tilt_is_half_a_variance_and_correction_takes_most_of_it():
    """Of small terms, where a mean over a batch is nearly normal."""
    law = law_of(0.9, 3)
    terms = 0.1 * TERMS
    meant = minibatches.tempered(law, terms)
    spread = 3**1.8 * terms.var(axis=0, ddof=1) / 3 * (1 - 3 / 6)
    tilted = normalised(np.log(meant) + 0.5 * spread)

    def found(corrected: bool) -> np.ndarray:
        weights = minibatches.log_weights(law, terms, corrected=corrected)
        return minibatches.state_marginal(minibatches.extended(weights), STATES)

    # The exact finite-population variance is in it, with 1 - m/n and n - 1.
    off = total_variation(found(False), meant)
    assert off > 1e-4
    assert total_variation(found(False), tilted) < 0.05 * off
    assert total_variation(found(True), meant) < 0.15 * off


def test_the_variance_of_a_batchs_mean_is_exact():
    for replace in (False, True):
        law = law_of(0.7, 3, replace=replace)
        means = TERMS[np.array(minibatches.all_batches(law))].mean(axis=1)
        spread = TERMS.var(axis=0, ddof=0 if replace else 1)
        found = law.variance(jnp.asarray(spread), 3)
        np.testing.assert_allclose(found, 3**1.4 * means.var(axis=0), rtol=1e-13)


def test_a_redrawn_batch_is_rejected():
    law = law_of(0.9)
    weights = minibatches.log_weights(law, TERMS)
    extended = minibatches.extended(weights)
    matrix = minibatches.moved_on_batch(weights, cycle()) @ twins.a_redraw_of_the_batch(weights)
    assert defect(matrix, extended) > 1e-3
    found = minibatches.state_marginal(stationary(matrix), STATES)
    own = minibatches.state_marginal(extended, STATES)
    # With the batch redrawn before each move this is the printed algorithm again.
    assert same_digits(found, COMMON[0.9])
    assert total_variation(found, own) > 0.03


def drifting(weights: np.ndarray) -> list[Matrix]:
    """For each batch a proposal that drifts towards what the batch likes."""
    found = []
    for at in range(weights.shape[1]):
        pull = np.exp(0.5 * (weights[None, :, at] - weights[:, None, at]))
        away = np.abs(np.subtract.outer(np.arange(STATES), np.arange(STATES)))
        steps = pull * np.exp(-np.minimum(away, STATES - away))
        found.append(steps / steps.sum(axis=1, keepdims=True))
    return found


def test_langevin_like_proposals_come_back_by_the_other_batch():
    weights = minibatches.log_weights(law_of(0.9), TERMS)
    extended = minibatches.extended(weights)
    proposals = drifting(weights)
    matrix = minibatches.own_batch(weights, proposals)
    assert defect(matrix, extended) < EXACT
    wrong = twins.one_batch_both_ways(weights, proposals)
    assert defect(wrong, extended) > 1e-3
    own = minibatches.state_marginal(extended, STATES)
    assert total_variation(minibatches.state_marginal(stationary(wrong), STATES), own) > 0.01
    # The same slip is none where proposals do not look at the batch.
    blind = [cycle()] * weights.shape[1]
    right = minibatches.own_batch(weights, blind)
    np.testing.assert_allclose(twins.one_batch_both_ways(weights, blind), right, atol=1e-15)


@pytest.mark.parametrize(
    ("size", "spread", "before", "after"), [(50, 5.0, 2.5, 0.1195), (200, 20.0, 10.0, 0.4712)]
)
def test_what_correction_leaves_of_normal_terms(
    size: int, spread: float, before: float, after: float
):
    assert minibatches.normal_tilt(spread, size, corrected=False) == before
    left = minibatches.normal_tilt(spread, size, corrected=True)
    assert abs(left - after) < 5e-5
    assert abs(left - spread**2 / (4 * (size - 1))) < 0.1 * left
    # By the law of a sample variance: log E exp(V/2 - V chi^2 / (2 (m-1))).
    chi = stats.chi2(size - 1)
    nodes = np.linspace(chi.ppf(1e-14), chi.isf(1e-14), 20001)
    density = chi.pdf(nodes)
    mean = (np.exp(-0.5 * spread * nodes / (size - 1)) * density).sum() / density.sum()
    assert abs(0.5 * spread + np.log(mean) - left) < 1e-6


# Noise and its penalty


def test_flattening():
    kappa = [float(flattening(v)) for v in (0.01, 0.1, 1.0, 4.0, 16.0)]
    np.testing.assert_allclose(kappa, [0.961, 0.883, 0.687, 0.503, 0.318], atol=5.1e-4)
    for variance in (0.01, 1.0, 16.0):
        step = 1e-4
        there, back = (
            float(mean_acceptance(jnp.asarray(d), jnp.asarray(variance))) for d in (step, -step)
        )
        assert abs(np.log(there / back) / step - float(flattening(variance))) < 1e-6
    assert abs(float(flattening(1e-4)) - (1 - np.sqrt(1e-4 / (2 * np.pi)))) < 1e-4
    assert abs(float(flattening(400.0)) * np.sqrt(800 * np.pi) / 4 - 1) < 0.15


@pytest.mark.parametrize("log_ratio", [-2.0, 0.3, 5.0])
@pytest.mark.parametrize("variance", [0.2, 3.0])
def test_mean_acceptance_is_an_integral(log_ratio: float, variance: float):
    z = np.linspace(-10, 10, 400001)
    chance = np.minimum(1.0, np.exp(log_ratio + np.sqrt(variance) * z))
    wanted = (chance * stats.norm.pdf(z)).sum() * (z[1] - z[0])
    found = mean_acceptance(jnp.asarray(log_ratio), jnp.asarray(variance))
    assert abs(float(found) - wanted) < 1e-9


@pytest.mark.parametrize(
    ("variance", "count", "printed"),
    [
        (1.0, 20, (-0.0077, -0.0009, -0.0005)),
        (16.0, 100, (-0.053, -0.013, -0.006)),
        (16.0, 1000, (-0.006, -0.0001, 0.0)),
    ],
)
def test_what_the_penaltys_series_leaves(variance: float, count: int, printed: tuple[float, ...]):
    series = (twins.first_term_alone, twins.two_terms, penalty)
    found = [minibatches.penalty_residual(1.0, variance, count, one) for one in series]
    np.testing.assert_allclose(found, printed, atol=5.1e-4 if variance > 1 else 5.1e-5)
    assert np.all(np.diff(np.abs(found)) < 0)


def test_the_penalty_is_good_to_a_thousandth_for_a_twentieth_of_the_rows():
    for count in (20, 40, 80, 400):
        for log_ratio in (0.3, 1.0, 3.0):
            variance = min(count / 20, 4.0)
            left = minibatches.penalty_residual(log_ratio, variance, count)
            assert abs(left) < 1e-3 * log_ratio


# A grid of normal location, m = 1000: l_i(x) = -(y_i - x)^2 / 2 with normal y_i

GRID = np.linspace(-6.0, 6.0, 241)  # in standard deviations of the tempered law
TABLE = {
    0.5: (1.002, 1.009, 1.018, 1.035),
    0.75: (1.010, 1.049, 1.094, 1.189),
    0.9: (1.026, 1.124, 1.239, 1.496),
    0.995: (1.044, 1.212, 1.411, 1.876),
}


def on_grid(alpha: float, step: float, *, penalised: bool) -> np.ndarray:
    """The stationary law in units of the tempered standard deviation, for normal proposals."""
    apart = GRID[None, :] - GRID[:, None]
    steps = stats.norm.pdf(apart / step)
    proposal = steps / steps.sum(axis=1).max()
    np.fill_diagonal(proposal, 0.0)
    proposal += np.diag(1.0 - proposal.sum(axis=1))
    matrix = minibatches.noisy(
        proposal, -0.5 * GRID**2, 1000 ** (alpha - 1) * apart**2, penalised=penalised
    )
    return stationary(matrix)


@pytest.mark.parametrize("alpha", [0.5, 0.75, 0.9, 0.995])
@pytest.mark.parametrize("step", [0.5, 2.4])
def test_a_penalty_for_a_known_variance_is_exact_on_a_grid(alpha: float, step: float):
    meant = normalised(-0.5 * GRID**2)
    assert total_variation(on_grid(alpha, step, penalised=True), meant) < 1e-12


@pytest.mark.parametrize("alpha", [0.5, 0.75])
def test_without_it_variances_are_too_large_by_what_is_known(alpha: float):
    for step, wanted in zip((0.5, 1.0, 2.4), TABLE[alpha][1:], strict=True):
        found = on_grid(alpha, step, penalised=False)
        assert abs(found @ GRID**2 - wanted) < 1.5e-3
        assert total_variation(found, normalised(-0.5 * GRID**2)) > 1e-3


def test_penalised_batches_are_nearer_than_bare_ones():
    """Three of eight rows are far from normal: what is left is a bound and no theorem."""
    terms = subsamples.sine_terms(8, STATES, 0.5)
    for alpha in (0.5, 0.9):
        law = BatchLaw(Batches(8), 3, alpha)
        meant = minibatches.tempered(law, terms)
        bare, paid = (
            total_variation(stationary(build(law, terms, cycle())), meant)
            for build in (minibatches.common, minibatches.penalised)
        )
        assert paid < 0.003
        assert bare > 2.5 * paid


def test_a_proposal_with_a_drift_is_taken_into_account():
    drift = drifting(np.array([[0.0], [0.5], [-0.3], [0.8], [0.1]]))[0]
    whole = BatchLaw(Batches(ROWS), ROWS, 1.0)
    meant = minibatches.tempered(whole, TERMS, PRIOR)
    for build in (minibatches.common, minibatches.penalised):
        matrix = build(whole, TERMS, drift, PRIOR)
        # A batch of all rows has no noise, and is Metropolis.
        assert defect(matrix, meant) < EXACT
        np.testing.assert_allclose(matrix, metropolis(drift, np.log(meant)), atol=1e-14)


# What a batch stands for


def test_implied_beta():
    assert implied_beta(10_000, 100) == pytest.approx(1e-3)
    # Paper 2, table 2: n = 100 000 and alpha = 0.995 give its temperatures.
    assert 1 / implied_beta(100_000, 5378, 0.995) == pytest.approx(19.41, abs=5e-3)
    for size in (0, 7):
        with pytest.raises(ArgumentError, match="1 to 6"):
            implied_beta(6, size)
    # Beyond alpha = 1 a row counts more than once, as far as T = 1.
    assert implied_beta(8, 2, 1.5) == pytest.approx(2**1.5 / 8)
    assert implied_beta(8, 2, 3.0) == implied_beta(13007, 100, np.log(13007) / np.log(100)) == 1
    assert implied_beta(6, 1, 9.0) == pytest.approx(1 / 6)
    for alpha in (0.0, 2.6, float("nan")):
        with pytest.raises(ArgumentError, match=r"alpha.*at most 2\.585"):
            implied_beta(6, 2, alpha)
