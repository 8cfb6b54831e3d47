"""Priors on log coordinates: normalised, drawn exactly, and with their Jacobian."""

import jax
import numpy as np
import pytest
from scipy import integrate, stats
from tests.models.gaussian_process.broken_priors import (
    GammaWithAScale,
    GammaWithoutJacobian,
    HalfNormalOnBothSides,
    InverseGammaOfTheRate,
    LogNormalAsPrinted,
    LogNormalByVariance,
)

from temperance.models.gaussian_process.priors import (
    AbstractPrior,
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
)

ALPHA = 1e-5
DRAWS = 20_000
KNOWN = [
    (LogNormal(0.5, 1.0), stats.lognorm(s=1.0, scale=np.exp(0.5))),
    (LogNormal(-1.0, 0.4), stats.lognorm(s=0.4, scale=np.exp(-1.0))),
    (Gamma(4.0, 1.0), stats.gamma(4.0)),
    (Gamma(2.0, 2.0), stats.gamma(2.0, scale=0.5)),
    (Gamma(0.3, 5.0), stats.gamma(0.3, scale=0.2)),
    (InverseGamma(3.0, 2.0), stats.invgamma(3.0, scale=2.0)),
    (HalfNormal(0.7), stats.halfnorm(scale=0.7)),
]


def mass(prior: AbstractPrior) -> float:
    """The integral of the density of the logarithm."""
    grid = np.linspace(-60.0, 20.0, 80_001)
    return float(integrate.simpson(np.exp(prior.log_density(jax.numpy.asarray(grid))), x=grid))


def p_value(prior: AbstractPrior, law: stats.rv_continuous, seed: int) -> float:
    draws = np.exp(np.asarray(prior.draw(jax.random.key(seed), (DRAWS,))))
    return stats.kstest(draws, law.cdf).pvalue


@pytest.mark.parametrize(("prior", "law"), KNOWN, ids=lambda x: repr(x)[:24])
def test_priors_are_normalised_and_drawn_from(
    prior: AbstractPrior, law: stats.rv_continuous, seed: int
):
    np.testing.assert_allclose(mass(prior), 1.0, rtol=1e-7)
    u = np.linspace(-2.0, 1.5, 9)
    wanted = law.logpdf(np.exp(u)) + u
    np.testing.assert_allclose(
        prior.log_density(jax.numpy.asarray(u)), wanted, rtol=1e-10, atol=1e-10
    )
    assert p_value(prior, law, seed) > ALPHA


@pytest.mark.parametrize(
    "prior",
    [LogNormalAsPrinted(0.5, 0.5), LogNormalAsPrinted(0.5, 2.0), HalfNormalOnBothSides(1.0)],
    ids=["as printed, 0.5", "as printed, 2", "both sides"],
)
def test_densities_that_are_not_normalised_are_noticed(prior: AbstractPrior):
    assert abs(mass(prior) - 1.0) > 0.2


def test_what_the_printed_log_normal_integrates_to():
    """Equation (26) is right at the value the paper uses, and at no other."""
    found = [mass(LogNormalAsPrinted(0.5, sigma)) for sigma in (0.5, 1.0, 2.0)]
    np.testing.assert_allclose(found, np.sqrt([0.5, 1.0, 2.0]), rtol=1e-6)


def test_a_missing_jacobian_is_noticed():
    # E[1 / theta] under Gamma(2, 2), which is not one.
    np.testing.assert_allclose(mass(GammaWithoutJacobian(2.0, 2.0)), 2.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("prior", "law"),
    [
        (GammaWithAScale(4.0, 2.0), stats.gamma(4.0, scale=0.5)),
        (InverseGammaOfTheRate(3.0, 2.0), stats.invgamma(3.0, scale=2.0)),
        (LogNormalByVariance(0.5, 0.5), stats.lognorm(s=0.5, scale=np.exp(0.5))),
    ],
    ids=["a scale", "the rate turned over", "a variance"],
)
def test_draws_from_another_law_are_noticed(
    prior: AbstractPrior, law: stats.rv_continuous, seed: int
):
    assert p_value(prior, law, seed) < ALPHA
