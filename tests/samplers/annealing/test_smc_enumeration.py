"""Sequential Monte Carlo is unbiased for Z: sums over every outcome of few particles in few states.

The weights, the places and the ancestors are those of the sampler's own functions.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
from tests.samplers.annealing import broken_smc as broken

from temperance.samplers.annealing.particles import effective_share
from temperance.samplers.annealing.resampling import SCHEMES
from temperance.testing import enumeration, particles, subsamples
from temperance.testing.enumeration import Matrix, Table

STATES = np.arange(3)
PRIOR = enumeration.normalised(np.cos(0.9 * STATES))
LIKELIHOOD = 2.5 * np.sin(1.3 * STATES + 0.2)
BETAS = np.array([0.0, 0.25, 0.6, 1.0])
POWERS = np.log(PRIOR) + BETAS[:, None] * LIKELIHOOD
TERMS = subsamples.sine_terms(4, 3, 1.5)
ORDER, SIZES = (2, 0, 3, 1), (0, 1, 2, 4)
ROWS = subsamples.ladder_table(subsamples.independent(TERMS), ORDER, SIZES, np.log(PRIOR))
EXACT = 1e-11


def cycles(table: Table) -> list[Matrix]:
    """The moves at every rung but the hottest."""
    return [enumeration.cycle_metropolis(row) for row in table[1:]]


def relative_bias(found: particles.Moments, table: Table) -> float:
    """Of the estimated target, at the state where it is largest."""
    wanted = np.exp(table[-1]) / np.exp(table[0]).sum()
    assert found.mean == pytest.approx(found.target.sum(), rel=1e-9)
    return float(np.abs(found.target / wanted - 1).max())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("table", [POWERS, ROWS], ids=["powers", "rows"])
def test_the_target_is_estimated_without_bias(scheme: str, table: Table):
    found = particles.moments(table, cycles(table), 3, particles.resampled(scheme, 3))
    assert relative_bias(found, table) < EXACT
    # And not because Z-hat hardly varies.
    assert found.square / found.mean**2 > 1.05


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("table", [POWERS, ROWS], ids=["powers", "rows"])
def test_waste_free_too(scheme: str, table: Table):
    found = particles.moments(table, cycles(table), 4, particles.resampled(scheme, 2), length=2)
    assert relative_bias(found, table) < EXACT
    assert found.square / found.mean**2 > 1.05


def test_one_ancestor_with_a_longer_chain():
    resample = particles.resampled("systematic", 1)
    found = particles.moments(POWERS, cycles(POWERS), 4, resample, length=4)
    assert relative_bias(found, POWERS) < EXACT


@pytest.mark.parametrize("scheme", SCHEMES)
def test_whether_to_resample_may_depend_on_the_weights(scheme: str):
    """Weights that are kept are part of what is followed."""
    table = POWERS[[0, 1, 3]]
    drawn = particles.resampled(scheme, 2)
    decisions = []

    def below(weights: particles.Weights) -> list[particles.Outcome]:
        due = float(effective_share(jnp.log(jnp.asarray(weights)))) < 0.97
        decisions.append(due)
        return drawn(weights) if due else [(1.0, (0, 1), weights)]

    found = particles.moments(table, cycles(table), 2, below)
    assert set(decisions) == {True, False}
    assert relative_bias(found, table) < EXACT


# What every scheme must do, and slips that are rejected


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("num", [1, 3, 4])
def test_everyone_is_expected_by_their_weight(scheme: str, num: int):
    weights = (0.05, 0.5, 0.15, 0.3)
    counts = np.zeros(4)
    for chance, ancestors, begun in particles.resampled(scheme, num)(weights):
        each = np.bincount(ancestors, minlength=4)
        counts += chance * each
        assert begun == (1 / num,) * num
        if scheme == "systematic":
            assert (np.abs(each - num * np.asarray(weights)) < 1).all()
    np.testing.assert_allclose(counts, num * np.asarray(weights), atol=1e-12)
    fixed = broken.fixed_offset(num)(weights)[0][1]
    assert np.abs(np.bincount(fixed, minlength=4) - num * np.asarray(weights)).max() > 0.1


@pytest.mark.parametrize(
    ("resample", "weigh"),
    [
        (broken.weights_not_reset("multinomial", 2), particles.weigh),
        (broken.weights_not_reset("systematic", 2), particles.weigh),
        (particles.resampled("systematic", 2), broken.mean_of_logs),
        (broken.fixed_offset(2), particles.weigh),
    ],
    ids=["weights not reset", "weights not reset, systematic", "mean of logs", "fixed offset"],
)
def test_slips_of_weights_are_rejected(resample: particles.Resample, weigh: particles.Weigh):
    found = particles.moments(POWERS, cycles(POWERS), 2, resample, weigh=weigh)
    assert relative_bias(found, POWERS) > 0.01


@pytest.mark.parametrize("gather", [broken.last_states, broken.no_first_states])
def test_states_of_a_chain_that_are_counted_must_be_there(gather: Callable):
    resample = particles.resampled("systematic", 2)
    kernels = cycles(POWERS)
    wrong = particles.moments(
        POWERS, kernels, 4, resample, length=2, gather=gather, weigh=broken.weighed_by_all(4)
    )
    assert relative_bias(wrong, POWERS) > 0.5
    # To leave states out is a waste and no bias, if they are not counted.
    right = particles.moments(POWERS, kernels, 4, resample, length=2, gather=gather)
    assert relative_bias(right, POWERS) < EXACT


@pytest.mark.parametrize("table", [POWERS, ROWS], ids=["powers", "rows"])
def test_weights_after_the_moves_are_rejected(table: Table):
    shifted, kernels = broken.moved_first(table, cycles(table))
    found = particles.moments(shifted, kernels, 3, particles.resampled("systematic", 3))
    assert relative_bias(found, table) > 0.02


def test_increments_of_the_wrong_rows_are_rejected():
    late = broken.one_row_late(TERMS, ORDER, SIZES) + np.log(PRIOR)
    found = particles.moments(late, cycles(ROWS), 3, particles.resampled("systematic", 3))
    assert relative_bias(found, ROWS) > 0.1
