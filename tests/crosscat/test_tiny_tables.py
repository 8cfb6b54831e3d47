"""The tiny tables' own scores, and the Gibbs step on rows by enumeration of all states."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from tests.crosscat import broken, tiny_tables as tiny

from temperance.testing import enumeration, tables

# (alpha, d), and the number of clusters to be expected of six.
SEATINGS = [
    ((1.3, 0.0), 2.713115),
    ((1.0, 0.5), 3.865234),
    ((-0.2, 0.6), 2.793860),
    ((0.5, 0.9), 5.386375),
]


@pytest.mark.parametrize(("seating", "expected"), SEATINGS)
def test_seatings_are_a_law(seating, expected):
    states = tables.partitions(6)
    law = np.exp([tables.log_seating(labels, tables.Seating(*seating)) for labels in states])
    assert len(states) == 203
    assert law.sum() == pytest.approx(1.0, abs=1e-13)
    mean = sum(p * (max(labels) + 1) for p, labels in zip(law, states, strict=True))
    assert mean == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("column", tiny.ALL)
def test_any_order_of_rows_gives_the_same_cells(column):
    orders = itertools.permutations(range(5))
    scores = [tables.log_cells_in(order, column, (0, 1, 0, 0, 1)) for order in orders]
    assert np.ptp(scores) < 1e-12


def test_predictives_are_laws():
    categories = tables.Categories((), (0.4, 1.5, 0.7, 0.2))
    assert sum(
        math.exp(categories.log_predictive(x, [0, 2, 2])) for x in range(4)
    ) == pytest.approx(1.0, abs=1e-14)
    counts = tables.Counts((), 0.8, 0.25)
    total = sum(math.exp(counts.log_predictive(x, [3, 1])) for x in range(200))
    assert total == pytest.approx(1.0, abs=1e-12)
    reals = tables.Reals((), 0.3, 0.5, 4.0, 0.4)
    density = integrate.quad(lambda x: math.exp(reals.log_predictive(x, [1.0, 2.0])), -60, 60)
    assert density[0] == pytest.approx(1.0, abs=1e-6)


def test_every_state_of_a_cross_categorization_is_listed_once():
    states = tables.crosscat_states(3, 3)
    assert len(states) == len(set(states)) == 205
    assert all(tables.crosscat_in_order(*state) == state for state in states)
    prior = [
        math.exp(tables.log_crosscat(state, _blank(3), tables.Seating(0.7, 0.2), tables.Seating(2)))
        for state in states
    ]
    assert sum(prior) == pytest.approx(1.0, abs=1e-13)


def _blank(num_columns: int) -> list[tables.Column]:
    return [tables.Categories((None, None, None), (1.0, 1.0))] * num_columns


@pytest.mark.parametrize("seating", [seating for seating, _ in SEATINGS])
def test_gibbs_on_rows_leaves_the_posterior(seating):
    seating = tables.Seating(*seating)
    states = tables.partitions(5)
    law = tables.law(states, lambda labels: tables.log_mixture(labels, tiny.ALL, seating))
    weights = tables.mixture_gibbs(tiny.ALL, seating)
    for row in range(5):
        matrix = tables.transitions(states, lambda s, row=row: tables.reseat(s, row, weights))
        assert enumeration.defect(matrix, law) < 1e-14


@pytest.mark.parametrize(
    "slip", [broken.rows_without_discount, broken.rows_with_empty_mass_of_one_table]
)
def test_slips_on_rows_are_found(slip):
    seating = tables.Seating(1.0, 0.5)
    states = tables.partitions(5)
    law = tables.law(states, lambda labels: tables.log_mixture(labels, tiny.ALL, seating))
    weights = slip(tiny.ALL, seating)
    sweep = np.eye(len(states))
    for row in range(5):
        sweep = sweep @ tables.transitions(
            states, lambda s, row=row: tables.reseat(s, row, weights)
        )
    assert enumeration.total_variation(enumeration.stationary(sweep), law) > 0.02


def test_a_step_whose_probabilities_do_not_sum_to_one_is_refused():
    with pytest.raises(ValueError, match="sum to one"):
        tables.transitions([0, 1], lambda state: [(state, 0.5)])
