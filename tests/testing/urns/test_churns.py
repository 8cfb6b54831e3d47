"""Churns, weights and other kernels of two urns, by matrices over every state."""

import math

import numpy as np
import pytest
from tests.testing.urns import broken
from tests.testing.urns.laws import SMALL, laws

from temperance.testing.enumeration import defect, imbalance, stationary, total_variation
from temperance.testing.urns import enumeration as enumerated
from temperance.testing.urns.churns import CHURNS

ALL = 5


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


@pytest.mark.parametrize("size", [1, 2, 3])
def test_handfuls_leave_the_posterior(size):
    posterior = enumerated.extended_law(SMALL, ALL)
    for beta in (0.3, 1.0):
        heated = posterior**beta / (posterior**beta).sum()
        assert imbalance(enumerated.handful(SMALL, size, beta), heated) < 1e-15
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
