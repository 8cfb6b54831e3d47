"""Questions to a fitted table against enumeration and numerical integration, with broken twins."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tests.crosscat.questions import broken
from tests.crosscat.questions.made_posteriors import (
    NUM_ROWS,
    SCHEMA,
    cells_of,
    made_posterior,
    plain_mean,
    probability,
    rows_of,
    state_probability,
    view_joint,
)

from temperance.crosscat.questions import posterior as posterior_module
from temperance.crosscat.questions.conditioning import components, mixture_weights, weigh
from temperance.crosscat.questions.imputation import guess, impute
from temperance.crosscat.questions.log_probability import log_conditional, log_score, surprisal
from temperance.crosscat.questions.mutual_information import mutual_information
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.questions.prediction import predict_proba
from temperance.crosscat.questions.predictive_sampling import draw_rows
from temperance.crosscat.questions.quantiles import count_quantiles, real_quantiles, spike_quantiles
from temperance.crosscat.questions.similarity import dependence, similarity
from temperance.crosscat.views.predictive import RealPredictive
from temperance.errors import ArgumentError

COLOURS = ("red", "green", "blue")
ROWS = [
    {"colour": "red", "flag": True, "height": 181.0, "visits": 3, "income": 2.2},
    {"colour": "new", "flag": False, "height": 160.0, "visits": 0, "income": 0.0},
    {"height": 171.5, "income": -4.0},
    {"colour": "blue", "visits": 12},
    {"flag": True, "income": 0.0},
    {},
]
GIVEN = {"height": 183.0, "income": 0.0}
SIGNIFICANCE = 1e-4


def mask(*names):
    return np.array([name in names for name in SCHEMA.names])


def area(posterior, name, given, high=np.inf, centre=170.0, scale=8.0):
    """The probability that a number lies below `high`, by Gauss's rule in the angle."""
    points, weights = np.polynomial.legendre.leggauss(40)
    edges = np.linspace(-0.5 * np.pi, np.arctan((high - centre) / scale), 41)
    half = 0.5 * (edges[1] - edges[0])
    angles = np.ravel(edges[:-1, None] + half * (points + 1.0))
    weights = np.tile(weights, 40)
    rows = [{name: centre + scale * np.tan(angle)} | given for angle in angles]
    density = np.exp(log_score(posterior, cells_of(rows))) / probability(posterior, given)
    return float(np.sum(half * weights * density * scale / np.cos(angles) ** 2))


ALL = mask(*SCHEMA.names)
NOTHING = mask()


# --- Scores --------------------------------------------------------------------------------------


def assert_scores(score, seed):
    posterior = made_posterior(seed)
    wanted = [np.log(probability(posterior, row)) for row in ROWS]
    assert_allclose(score(posterior, cells_of(ROWS)), wanted, rtol=1e-12, atol=1e-12)


def test_scores_against_a_plain_scorer(seed):
    assert_scores(log_score, seed)


@pytest.mark.parametrize(
    "score", [broken.score_that_averages_logs, broken.score_without_new_cluster]
)
def test_a_broken_score_is_seen(score, seed):
    with pytest.raises(AssertionError):
        assert_scores(score, seed)


def test_probabilities_sum_to_one(seed):
    posterior = made_posterior(seed)

    def p(rows):
        return np.exp(log_score(posterior, cells_of(rows)))

    pairs = [{"colour": c, "flag": f} for c, f in product((*COLOURS, "new"), (False, True))]
    assert_allclose(p(pairs).sum(), 1.0, rtol=1e-13)
    assert_allclose(p([{"visits": x} for x in range(600)]).sum(), 1.0, rtol=1e-9)
    assert_allclose(area(posterior, "height", {}), 1.0, rtol=1e-6)
    away = area(posterior, "income", {}, centre=3.0, scale=2.0)
    assert_allclose(away + p([{"income": 0.0}])[0], 1.0, rtol=1e-6)


def test_blocks_of_rows_change_nothing(seed, monkeypatch):
    posterior, cells = made_posterior(seed), cells_of(ROWS * 3)
    whole = log_score(posterior, cells), surprisal(posterior, cells)
    monkeypatch.setattr(posterior_module, "BLOCK", 1)
    assert len(posterior.blocks(cells)) == cells.num_rows
    assert_array_equal(log_score(posterior, cells), whole[0])
    assert_array_equal(surprisal(posterior, cells), whole[1])


def test_no_rows(seed):
    posterior, cells = made_posterior(seed), cells_of([])
    assert log_score(posterior, cells).shape == (0,)
    assert surprisal(posterior, cells).shape == (0, 5)
    assert predict_proba(posterior, cells, 0).shape == (0, 3)
    assert impute(posterior, cells, [0, 1, 2, 3, 4]) == {}


# --- Conditioning --------------------------------------------------------------------------------


def assert_conditionals(conditional, seed):
    posterior, row = made_posterior(seed), ROWS[0]
    cells = cells_of([row])
    for asked, given in [(("colour",), ("height",)), (("flag", "visits"), ("colour", "income"))]:
        found = conditional(posterior, cells, mask(*asked), mask(*given))
        wanted = probability(posterior, {n: row[n] for n in asked}, {n: row[n] for n in given})
        assert_allclose(found, np.log(wanted), rtol=1e-12)
        joint = log_score(posterior, cells, mask(*asked, *given))
        assert_allclose(found, joint - log_score(posterior, cells, mask(*given)), rtol=1e-12)


def test_conditionals_are_ratios(seed):
    assert_conditionals(log_conditional, seed)


def test_states_that_are_not_reweighted_are_seen(seed):
    with pytest.raises(AssertionError):
        assert_conditionals(broken.conditional_that_trusts_states_alike, seed)


def test_predicted_probabilities(seed):
    posterior, rows = made_posterior(seed), [ROWS[0], ROWS[2], ROWS[5]]
    found = predict_proba(posterior, cells_of(rows), 0)
    for row, probabilities in zip(rows, found, strict=True):
        given = {name: value for name, value in row.items() if name != "colour"}
        wanted = np.array([probability(posterior, {"colour": c}, given) for c in COLOURS])
        assert_allclose(probabilities, wanted / wanted.sum(), rtol=1e-12)
    with pytest.raises(ArgumentError, match="'height' is real"):
        predict_proba(posterior, cells_of(rows), 2)


def test_impossible_evidence_is_said(seed):
    posterior = made_posterior(seed)
    cells = cells_of([{"flag": True}])
    cells.narrow[0, 1] = 2  # a boolean that is neither
    with pytest.raises(ArgumentError, match="row 0 have probability 0"):
        predict_proba(posterior, cells, 0)


# --- Guesses -------------------------------------------------------------------------------------


def weights_given(posterior, row, column):
    return mixture_weights(posterior, weigh(posterior, cells_of([row]), ALL), column)


@pytest.mark.parametrize("level", [0.02, 0.5, 0.9])
def test_real_quantiles_by_integration(level, seed):
    posterior, given = made_posterior(seed), {"colour": "red", "visits": 2}
    weights = weights_given(posterior, given, 2)
    found = 170.0 + 8.0 * real_quantiles(components(posterior, 2), weights, level)[0]
    assert_allclose(area(posterior, "height", given, found), level, atol=1e-6)


@pytest.mark.parametrize("level", [0.01, 0.3, 0.5, 0.95])
def test_count_quantiles_by_summation(level, seed):
    posterior, given = made_posterior(seed), {"colour": "red", "height": 172.0}
    found = count_quantiles(components(posterior, 3), weights_given(posterior, given, 3), level)
    each = [probability(posterior, {"visits": x}, given) for x in range(found[0] + 1)]
    assert sum(each) >= level
    assert sum(each[:-1]) < level


def test_spike_quantiles_by_integration(seed):
    posterior, given = made_posterior(seed), {"flag": True}
    weights = weights_given(posterior, given, 4)
    law = components(posterior, 4)
    mass = probability(posterior, {"income": 0.0}, given)
    before = area(posterior, "income", given, 0.0, centre=3.0, scale=2.0)
    inside = before + 0.5 * mass
    assert spike_quantiles(law, weights, inside, -1.5)[1].all()
    for level in (0.5 * before, 0.5 * (1.0 + before + mass)):
        found, on_spike = spike_quantiles(law, weights, level, -1.5)
        assert not on_spike.any()
        x = 3.0 + 2.0 * found[0]
        below = area(posterior, "income", given, x, centre=3.0, scale=2.0)
        assert_allclose(below + mass * (x > 0.0), level, atol=1e-6)


def test_mean_of_each_numeric_kind(seed):
    posterior, given = made_posterior(seed), {"colour": "blue"}

    def mean(column):
        weights = weights_given(posterior, given, column)
        return guess(posterior, column, weights, "mean").cells

    total = sum(x * probability(posterior, {"visits": x}, given) for x in range(200))
    assert_allclose(mean(3).numbers, total, rtol=1e-8)
    middle = plain_mean(posterior, "height", given, lambda law, k: law.loc[k])
    assert_allclose(mean(2).numbers, middle, rtol=1e-12)

    def with_spike(law, k):
        off, on = np.exp(law.log_probs[k])
        return off * law.real.loc[k] - 1.5 * on

    assert_allclose(mean(4).numbers, plain_mean(posterior, "income", given, with_spike))
    assert (mean(4).codes == 0).all()


@pytest.mark.parametrize("level", [1e-9, 0.05, 0.5, 0.95])
def test_quantiles_of_tails_heavier_than_cauchys(level):
    law = RealPredictive(np.array([0.0, 3.0]), np.array([1.0, 1e-3]), np.array([0.25, 40.0]))
    weights = np.array([[1.0, 0.3, 1e-5], [0.0, 0.7, 1.0 - 1e-5]])
    found = real_quantiles(law, weights, level)
    each = stats.t.cdf(found, law.df[:, None], law.loc[:, None], law.scale[:, None])
    assert_allclose((weights * each).sum(axis=0), level, rtol=1e-6)


def test_every_missing_cell_is_guessed_from_its_row(seed):
    posterior = made_posterior(seed)
    found = impute(posterior, cells_of(ROWS), [0, 1, 2, 3, 4], level=0.9)
    for column, guesses in found.items():
        name = SCHEMA.columns[column].name
        assert guesses.rows.tolist() == [i for i, row in enumerate(ROWS) if name not in row]
    rows, colours = found[0]
    for i, code, top, entropy in zip(
        rows, colours.cells.codes, colours.probability, colours.entropy, strict=True
    ):
        p = np.array([probability(posterior, {"colour": c}, ROWS[i]) for c in COLOURS])
        p /= p.sum()
        assert code == p.argmax()
        assert_allclose([top, entropy], [p.max(), -(p * np.log(p)).sum()], rtol=1e-12)
    heights = found[2].guess
    ends = np.stack([heights.low.numbers, heights.cells.numbers, heights.high.numbers])
    assert (np.diff(ends, axis=0) > 0).all()


# --- Draws ---------------------------------------------------------------------------------------


def draw_p_values(draw, seed, num=4000):
    """Chi-squares of colours with flags, and of visits, given an income and a height."""
    posterior = made_posterior(seed)
    rng = np.random.default_rng(seed)
    given = cells_of([GIVEN])
    drawn = draw(posterior, num, [0, 1, 3], given, mask(*GIVEN), rng)
    rows = rows_of(drawn, num)
    pairs = list(product(COLOURS, (False, True)))
    wanted = np.array([probability(posterior, {"colour": c, "flag": f}, GIVEN) for c, f in pairs])
    found = np.array([sum((r["colour"], r["flag"]) == pair for r in rows) for pair in pairs])
    visits = np.minimum([r["visits"] for r in rows], 8)
    known = [{"colour": c} for c in COLOURS]
    each = np.array(
        [sum(probability(posterior, {"visits": x} | c, GIVEN) for c in known) for x in range(8)]
    )
    total = sum(probability(posterior, c, GIVEN) for c in known)
    each = np.append(each, total - each.sum())
    return [
        stats.chisquare(found, num * wanted / wanted.sum()).pvalue,
        stats.chisquare(np.bincount(visits, minlength=9), num * each / each.sum()).pvalue,
    ]


def test_draws_have_the_conditional_law(seed):
    assert min(draw_p_values(draw_rows, seed)) > SIGNIFICANCE


@pytest.mark.parametrize(
    "draw", [broken.draw_that_chooses_states_evenly, broken.draw_that_forgets_what_is_given]
)
def test_a_broken_draw_is_seen(draw, seed):
    assert min(draw_p_values(draw, seed)) < SIGNIFICANCE


def test_drawn_reals_have_the_conditional_law(seed):
    posterior, num = made_posterior(seed), 3000
    rng = np.random.default_rng(seed)
    given = {"visits": 6}
    drawn = draw_rows(posterior, num, [2, 4], cells_of([given]), mask("visits"), rng)
    rows = rows_of(drawn, num)
    edges = [165.0, 172.0, 180.0]
    below = [area(posterior, "height", given, edge) for edge in edges]
    shares = np.diff([0.0, *below, 1.0])
    found = np.bincount(np.searchsorted(edges, [r["height"] for r in rows]), minlength=4)
    assert stats.chisquare(found, num * shares).pvalue > SIGNIFICANCE
    on_spike = sum(r["income"] == 0.0 for r in rows)
    wanted = probability(posterior, {"income": 0.0}, given)
    assert stats.binomtest(on_spike, num, wanted).pvalue > SIGNIFICANCE


# --- Surprise ------------------------------------------------------------------------------------


def assert_surprisal(surprise, seed):
    posterior = made_posterior(seed)
    found = surprise(posterior, cells_of(ROWS))
    for i, row in enumerate(ROWS):
        for column, name in enumerate(SCHEMA.names):
            if name in row:
                others = {n: value for n, value in row.items() if n != name}
                wanted = -np.log(probability(posterior, {name: row[name]}, others))
                assert_allclose(found[i, column], wanted, rtol=1e-10, atol=1e-12)


def test_surprisal_against_a_plain_scorer(seed):
    assert_surprisal(surprisal, seed)
    found = surprisal(made_posterior(seed), cells_of(ROWS))
    missing = [[name not in row for name in SCHEMA.names] for row in ROWS]
    assert_array_equal(np.isnan(found), missing)


def test_surprise_that_ignores_the_row_is_seen(seed):
    with pytest.raises(AssertionError):
        assert_surprisal(broken.surprisal_of_cells_alone, seed)


# --- Likeness ------------------------------------------------------------------------------------


def test_dependence_is_the_share_of_states(seed):
    found = dependence(made_posterior(seed))
    third = 1.0 / 3.0
    assert_allclose(found[0], [1.0, third, 2 * third, 2 * third, 2 * third])
    assert_array_equal(found, found.T)


def test_similarity_of_training_rows(seed):
    posterior = made_posterior(seed)
    everyone = np.arange(NUM_ROWS)
    found = similarity(posterior, everyone, everyone)
    for i, j in product(everyone, everyone):
        shares = [
            np.mean([view.assignments[i] == view.assignments[j] for view in state.views])
            for state in posterior.states
        ]
        assert_allclose(found[i, j], np.mean(shares))
    in_one = similarity(posterior, np.array([1]), everyone, columns=[3])
    views = [posterior.view(state, 3).assignments for state in range(3)]
    assert_allclose(in_one[0], np.mean([labels == labels[1] for labels in views], axis=0))


def test_similarity_of_new_rows(seed):
    posterior, rows = made_posterior(seed), ROWS[:3]
    everyone = np.arange(NUM_ROWS)
    found = similarity(posterior, cells_of(rows), everyone)
    assert_allclose(similarity(posterior, everyone, cells_of(rows)), found.T)
    shares = np.array([[state_probability(s, row) for s in posterior.states] for row in rows])
    for i, row in enumerate(rows):
        wanted = np.zeros(NUM_ROWS)
        for state, weight in zip(posterior.states, shares[i] / shares[i].sum(), strict=True):
            for view in state.views:
                clusters = view_joint(view, row)
                clusters /= clusters.sum()
                wanted += weight * clusters[view.assignments] / len(state.views)
        assert_allclose(found[i], wanted)
    both = similarity(posterior, cells_of(rows), cells_of(rows))
    weights = shares[0] * shares[1]
    wanted = 0.0
    for state, weight in zip(posterior.states, weights / weights.sum(), strict=True):
        for view in state.views:
            one, two = (view_joint(view, row) / view_joint(view, row).sum() for row in rows[:2])
            wanted += weight * (one * two)[:-1].sum() / len(state.views)
    assert_allclose(both[0, 1], wanted)


def test_similarity_of_a_row_that_is_not_there(seed):
    with pytest.raises(ArgumentError, match="0 to 6, and 7"):
        similarity(made_posterior(seed), np.array([7]), np.array([0]))


# --- Information ---------------------------------------------------------------------------------


def information(posterior, a, b, given=None, num_samples=20_000, seed=0, ask=mutual_information):
    given = given or {}
    rng = np.random.default_rng(seed)
    return ask(posterior, a, b, cells_of([given]), mask(*given), num_samples, rng)


def plain_information(posterior, a, b, values, given):
    """The posterior mean of the states' mutual information, by enumeration of two columns."""
    weights = np.array([state_probability(state, given) for state in posterior.states])
    total = 0.0
    for state, weight in zip(posterior.states, weights / weights.sum(), strict=True):
        scale = state_probability(state, given)
        joint = np.array(
            [[state_probability(state, {a: x, b: y} | given) / scale for y in values[b]]
             for x in values[a]]
        )  # fmt: skip
        apart = joint.sum(axis=1)[:, None] * joint.sum(axis=0)
        total += weight * np.sum(joint * np.log(joint / apart))
    return total


VALUES = {"colour": (*COLOURS, "new"), "flag": (False, True), "visits": range(60)}


@pytest.mark.parametrize("given", [{}, {"height": 178.0, "income": 0.0}])
def test_information_of_two_discrete_columns_is_a_sum(given, seed):
    posterior = made_posterior(seed)
    found = information(posterior, 0, 1, given)
    assert found.standard_error == 0.0
    assert_allclose(found.value, plain_information(posterior, "colour", "flag", VALUES, given))
    if given:
        wrong = information(posterior, 0, 1, given, ask=broken.information_in_one_cluster)
        assert abs(wrong.value - found.value) > 1e-4


def test_information_by_draws_has_its_standard_error(seed):
    posterior = made_posterior(seed)
    found = information(posterior, 0, 3, seed=seed)
    wanted = plain_information(posterior, "colour", "visits", VALUES, {})
    assert 0.0 < found.standard_error < 0.01
    assert abs(found.value - wanted) < 4.0 * found.standard_error


def test_columns_that_never_meet_have_no_information(seed):
    apart = tuple(((((0, 2), 2), ((1, 4), 3), ((3,), 2))) for _ in range(3))
    posterior = made_posterior(seed, apart)
    assert information(posterior, 0, 1) == (0.0, 0.0)
    assert information(posterior, 2, 3) == (0.0, 0.0)


def test_a_state_of_another_table_is_refused(seed):
    posterior = made_posterior(seed)
    views = posterior.states[0].views[:1]
    with pytest.raises(ArgumentError, match="another table"):
        Posterior(SCHEMA, posterior.features, (posterior.states[0]._replace(views=views),))
    with pytest.raises(ArgumentError, match="at least one state"):
        Posterior(SCHEMA, posterior.features, ())
