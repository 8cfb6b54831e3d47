"""Local fits become one base: the mixture's moments and mass, with copies dropped."""

from functools import partial

import numpy as np
import pytest
from tests.bases.broken import moments_of_the_best, with_copies, within_modes_only

from temperance.bases.fit import LocalFit, distinct, match_moments
from temperance.errors import ArgumentError

ONE = LocalFit(np.array([-5.0, 1.0]), np.array([[1.0, 0.3], [0.3, 2.0]]), np.log(0.3) + 7)
TWO = LocalFit(np.array([4.0, 0.0]), np.array([0.5, 1.5]), np.log(0.7) + 7)
LOST = LocalFit(np.array([0.0, 50.0]), np.array([1.0, 1.0]), -np.inf)


def gap(match):
    """By how much the base of a mixture differs from the moments, written out, of its parts."""
    away = ONE.mean - TWO.mean
    mean = 0.3 * ONE.mean + 0.7 * TWO.mean
    covariance = (
        0.3 * ONE.covariance + 0.7 * np.diag(TWO.covariance) + 0.3 * 0.7 * np.outer(away, away)
    )
    # The copy is moved by a little, as fits from two starts are.
    copy = LocalFit(TWO.mean + 1e-3, TWO.covariance, TWO.bound - 1e-5)
    fit = match([ONE, TWO, copy, LOST])
    factor = np.asarray(fit.base.factor)
    return max(
        abs(fit.log_zeta - 7.0),
        np.abs(np.asarray(fit.base.mean) - mean).max(),
        np.abs(factor @ factor.T - covariance).max(),
    )


def test_moments_and_mass_of_a_mixture():
    assert gap(match_moments) < 1e-12


@pytest.mark.parametrize("broken", [with_copies, within_modes_only, moments_of_the_best])
def test_a_slip_is_seen(broken):
    assert gap(broken) > 0.1


def test_two_copies_add_log_two():
    assert with_copies([TWO, TWO]).log_zeta - match_moments([TWO, TWO]).log_zeta == pytest.approx(
        np.log(2)
    )


def test_the_best_copy_is_kept():
    worse = LocalFit(TWO.mean + 0.1, TWO.covariance, TWO.bound - 1.0)
    kept = match_moments([worse, TWO]).local
    assert len(kept) == 1
    assert kept[0] is TWO


def test_a_single_diagonal_fit_stays_diagonal():
    base = match_moments([TWO]).base
    np.testing.assert_allclose(np.asarray(base.factor) ** 2, TWO.covariance)


@pytest.mark.parametrize("dimension", [1, 10, 1000])
@pytest.mark.parametrize("dense", [False, True])
def test_modes_four_deviations_apart_are_two_in_any_dimension(dimension, dense):
    covariance = np.eye(dimension) if dense else np.ones(dimension)
    here = np.zeros(dimension)
    along, spread = here.copy(), np.full(dimension, 4 / np.sqrt(dimension))
    along[0] = 4.0
    for there in (along, spread):
        fits = [LocalFit(here, covariance, 0.0), LocalFit(there, covariance, 0.0)]
        assert len(distinct(fits)) == 2
        near = [fits[0], LocalFit(0.4 * there, covariance, 0.0)]
        assert len(distinct(near)) == 1


def test_distance_knows_correlation():
    """Far apart along a narrow direction, near along a wide one, at the same distance in all."""
    covariance = np.array([[1.0, 0.99], [0.99, 1.0]])
    narrow, wide = np.array([0.5, -0.5]), np.array([0.5, 0.5])
    here = LocalFit(np.zeros(2), covariance, 0.0)
    assert len(distinct([here, LocalFit(narrow, covariance, 0.0)])) == 2
    assert len(distinct([here, LocalFit(wide, covariance, 0.0)])) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (partial(match_moments, []), "at least one"),
        (partial(match_moments, [LOST]), "finite bound"),
        (partial(match_moments, [TWO], same=-1.0), "same: wanted"),
        (partial(match_moments, [TWO], same=float("nan")), "same: wanted"),
        (
            partial(match_moments, [TWO, LocalFit(np.zeros(3), np.ones(3), 0.0)]),
            "means of one length",
        ),
    ],
)
def test_bad_calls(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
