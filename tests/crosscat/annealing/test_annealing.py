"""Whole anneals: their law on tiny tables, their weights, their schedules, and going on."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
from tests.crosscat.annealing import broken
from tests.crosscat.mixed_table import known_prior, mixed, three_columns

from temperance.crosscat.annealing.evidence import weigh_states
from temperance.crosscat.annealing.exact_churn import churn
from temperance.crosscat.annealing.run import Annealing, Settings
from temperance.crosscat.annealing.schedules import Schedule, fill, new_window, next_steps, rows_in
from temperance.crosscat.partitions import column_marginals
from temperance.crosscat.views.state import State
from temperance.errors import ArgumentError
from temperance.testing import tables

ALPHA, D = 0.9, 0.25
SEATING = tables.Seating(ALPHA, D)
LEVEL = 1e-4


GROUND, COLUMNS, HYPER = mixed(4, equal=True)
PRIOR = known_prior(GROUND, HYPER, ALPHA, D)


def mixture_run(seed: Any, schedule: Schedule) -> Annealing:
    return Annealing.start(GROUND, PRIOR, Settings("pitman-yor", schedule), seed)


def labels_of(state: State) -> tables.Labels:
    return tables.in_order(state.views[0].labels.tolist())


def mixture_law(num_rows: int) -> tuple[list[tables.Labels], np.ndarray, float]:
    """All partitions, their posterior, and the log evidence."""
    _, columns, _ = mixed(num_rows, equal=True)
    states = tables.partitions(num_rows)
    logs = [tables.log_mixture(labels, columns, SEATING) for labels in states]
    total = float(scipy.special.logsumexp(logs))
    return states, np.exp(np.array(logs) - total), total


def p_value(found: list[Any], states: list[Any], law: np.ndarray) -> float:
    """Chi-square of states against their law, rare states together."""
    counts = Counter(found)
    seen = np.array([counts[state] for state in states], float)
    expected = law * len(found)
    rare = expected < 5
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    return float(scipy.stats.chisquare(seen[keep], expected[keep]).pvalue)


def anneals(finish: Callable[[Annealing], Any], seed: int, num: int, **options: Any) -> float:
    schedule = Schedule(**options)
    seeds = np.random.SeedSequence(seed).spawn(num)
    states, law, _ = mixture_law(4)
    found = []
    for one in seeds:
        run = mixture_run(one, schedule)
        finish(run)
        found.append(labels_of(run.state))
    return p_value(found, states, law)


STRATEGIES: tuple[tuple[dict[str, Any], bool], ...] = (
    ({"passes": 3, "schedule": "linear", "churn": "window"}, False),
    ({"passes": 3, "schedule": "linear", "churn": "random"}, True),
    ({"passes": 1, "schedule": "accelerating", "churn": "window"}, True),
    ({"passes": 20}, True),
    ({"passes": 3, "strategy": "sequential"}, True),
    ({"passes": 4, "strategy": "prior"}, False),
    ({"passes": 3, "schedule": "linear", "churn": "metropolis"}, True),
    ({"passes": 3, "schedule": "linear", "churn": "weighted"}, True),
)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            options, marks=[pytest.mark.slow] * slow, id="-".join(map(str, options.values()))
        )
        for options, slow in STRATEGIES
    ],
)
def test_whole_anneals_follow_the_posterior(options: dict[str, Any], seed: int):
    assert anneals(Annealing.run, seed, 1200, **options) > LEVEL


@pytest.mark.slow
def test_one_last_sweep_is_not_enough(seed: int):
    assert anneals(Annealing.run, seed, 3000, passes=20, final_sweeps=1) < LEVEL


def test_anneals_without_a_last_sweep_do_not(seed: int):
    options = {"passes": 1, "schedule": "linear"}
    assert anneals(broken.stop_when_the_last_row_enters, seed, 1200, **options) < LEVEL


FEW_GROUND, FEW_COLUMNS, FEW_HYPER = three_columns(3, equal=True)
FEW_PRIOR = known_prior(FEW_GROUND, FEW_HYPER, ALPHA, D)


def crosscat_run(seed: Any) -> tables.CrossState:
    """Three columns on three rows, annealed with all that moves columns."""
    settings = Settings("crosscat", Schedule(passes=2, schedule="linear", final_sweeps=8))
    run = Annealing.start(FEW_GROUND, FEW_PRIOR, settings, seed).run()
    rows = [view.labels.tolist() for view in run.state.views]
    return tables.crosscat_in_order(run.state.view_of_column.tolist(), rows)


def crosscat_p_values(seed: int, num: int) -> tuple[float, float]:
    """Of whole states, and of which columns share a view."""
    states = tables.crosscat_states(3, 3)
    law = tables.law(states, lambda s: tables.log_crosscat(s, FEW_COLUMNS, SEATING, SEATING))
    found = [crosscat_run(one) for one in np.random.SeedSequence(seed).spawn(num)]
    views = tables.partitions(3)
    of_views = np.array([sum(law[i] for i, s in enumerate(states) if s[0] == v) for v in views])
    return p_value(found, states, law), p_value([state[0] for state in found], views, of_views)


def test_whole_anneals_of_a_cross_categorization_follow_the_posterior(seed: int):
    assert min(crosscat_p_values(seed, 400)) > LEVEL


def test_anneals_that_leave_out_factorials_of_counts_do_not(
    seed: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(column_marginals, "log_bases", broken.no_bases)
    assert min(crosscat_p_values(seed, 400)) < LEVEL


@pytest.mark.parametrize("churn", ["window", "random"])
def test_mean_weights_are_the_evidence(churn: str, seed: int):
    *_, log_evidence = mixture_law(4)
    schedule = Schedule(passes=3, schedule="linear", churn=churn)
    seeds = np.random.SeedSequence(seed).spawn(500)

    def z_value(*advance: Any) -> float:
        runs = [mixture_run(one, schedule) for one in seeds]
        weights = np.exp([broken.weigh(run, *advance) - log_evidence for run in runs])
        return float((weights.mean() - 1.0) / weights.std() * len(weights) ** 0.5)

    assert abs(z_value()) < 4.5
    assert abs(z_value(broken.forget_removals)) > 8


@pytest.mark.slow
@pytest.mark.parametrize("weighed", [True, False])
def test_weighed_columns_begin_as_a_draw_of_the_prior(weighed: bool, seed: int):
    """Those that begin apart, as unweighed ones do, are the broken twin."""
    states = tables.crosscat_states(3, 3)
    logs = [tables.log_crosscat(s, FEW_COLUMNS, SEATING, SEATING) for s in states]
    settings = Settings("crosscat", Schedule(passes=1, schedule="linear"))
    seeds = np.random.SeedSequence(seed).spawn(6000)
    runs = (Annealing.start(FEW_GROUND, FEW_PRIOR, settings, one, weighed) for one in seeds)
    weights = np.exp([broken.weigh(run) - scipy.special.logsumexp(logs) for run in runs])
    z_value = (weights.mean() - 1.0) / weights.std() * len(weights) ** 0.5
    assert (abs(z_value) < 4.5) == weighed


def test_resampled_states_estimate_the_evidence(seed: int):
    _, _, log_evidence = mixture_law(5)
    ground, _, hyper = mixed(5, equal=True)
    prior = known_prior(ground, hyper, ALPHA, D)
    settings = Settings("pitman-yor", Schedule(passes=2, schedule="linear"))
    ratios = []
    for one in np.random.SeedSequence(seed).spawn(30):
        *seeds, draws = one.spawn(17)
        found = weigh_states(ground.table, prior, settings, seeds, np.random.default_rng(draws))
        ratios.append(np.exp(found.log_evidence - log_evidence))
    assert abs(np.mean(ratios) - 1.0) < 4.5 * np.std(ratios) / 30**0.5


@pytest.mark.parametrize("kind", ["metropolis", "weighted", "random"])
def test_exact_churns_leave_the_law_of_subsamples_as_it_is(kind: str, seed: int):
    """f(S, pi) ~ p(pi, X_S) on two of four rows; a churn at random is the broken twin."""
    ground, columns, hyper = mixed(4, equal=True)
    prior = known_prior(ground, hyper, ALPHA, D)
    pairs = [(i, j) for i in range(4) for j in range(i)]
    states = [(pair, same) for pair in pairs for same in (0, 1)]
    logs = []
    for (i, j), same in states:
        parts = [_of_rows(column, (i, j)) for column in columns]
        logs.append(tables.log_mixture((0, 0) if same else (0, 1), parts, SEATING))
    law = np.exp(np.array(logs) - scipy.special.logsumexp(logs))
    rng = np.random.default_rng(seed)
    state = State.draw(ground, prior, rng, "one")
    found = []
    for start in rng.choice(len(states), 2000, p=law):
        (i, j), same = states[start]
        window = new_window(4, rng)
        others = [r for r in range(4) if r not in (i, j)]
        window.order[:] = [i, j, *others]
        window.inside[0] = 2
        state.views[0].seat_rows(np.array([0, 1 - same]), np.array([i, j]), state.hyper)
        for _ in range(3):
            if kind == "random":
                window.owed[0] = 1.0
                state.run(next_steps(window, np.zeros(4), True, 2, rng)[0])
            else:
                churn(state, window, kind)
        a, b = rows_in(window)
        seats = state.views[0].labels
        found.append(((int(b), int(a)), int(seats[a] == seats[b])))
    assert (p_value(found, states, law) > LEVEL) == (kind != "random")


def _of_rows(column: Any, rows: tuple[int, ...]) -> Any:
    if isinstance(column, tables.Joined):
        return tables.Joined(tuple(_of_rows(part, rows) for part in column.parts))
    fields = vars(column) | {"values": tuple(column.values[r] for r in rows)}
    return type(column)(**fields)


@pytest.mark.parametrize("churn", ["window", "random"])
@pytest.mark.parametrize("strata", [None, np.array([0] * 30 + [1] * 8 + [2] * 2)])
def test_steps_follow_the_schedule(churn: str, strata: np.ndarray | None, seed: int):
    rng = np.random.default_rng(seed)
    schedule = Schedule(passes=4, schedule="linear", churn=churn)
    churns, window = schedule.churns(40), new_window(40, rng, strata)
    inside: set[int] = set()
    entries, sizes, finished, swept = 0, [], False, set()
    while not finished:
        steps, _, finished = next_steps(window, churns, churn == "random", 7, rng)
        for step in steps.tolist():
            if step >= 0:
                assert step not in inside
                inside.add(step)
                entries += 1
            else:
                inside.remove(-1 - step)
                if len(inside) == 39:
                    swept.add(-1 - step)
            sizes.append(len(inside))
        assert set(rows_in(window).tolist()) == inside
        if strata is not None and len(inside) > 12:
            assert {38, 39} <= inside | {-1 - s for s in steps.tolist()}
    # T for every row but the last, and two sweeps of all rows.
    assert entries == 39 * 4 + 1 + 2 * 40
    assert set(np.abs(np.diff(sizes))) == {1}
    if churn == "window":
        assert len(swept) == (40 if strata is None else len(swept))


def test_the_accelerating_schedule_costs_the_square_root():
    costs = [Schedule(passes=20).churns(n)[:-1].sum() for n in (10_000, 40_000, 160_000)]
    assert np.allclose(np.diff(np.log2(costs)), 1.0, atol=0.1)


@pytest.mark.parametrize(
    "options", [{"churn": "window"}, {"churn": "random"}, {"churn": "metropolis"}]
)
def test_a_stopped_run_goes_on_with_the_same_draws(options: dict[str, Any], seed: int):
    schedule = Schedule(passes=3, schedule="linear", **options)
    ground, _, hyper = mixed(5, equal=True)
    prior = known_prior(ground, hyper, ALPHA, D)
    settings = Settings("crosscat", schedule)
    whole = Annealing.start(ground, prior, settings, np.random.SeedSequence(seed)).run()
    other = Annealing.start(ground, prior, settings, np.random.SeedSequence(seed))
    while not other.finished:
        other.advance()
        kept = {name: x.copy() for name, x in other.arrays().items()}
        other = Annealing.from_arrays(ground, prior, settings, kept)
    for name, x in whole.arrays().items():
        if name not in ("counters", "trace/seconds"):
            assert np.array_equal(x, other.arrays()[name]), name


def test_wrong_settings_are_named():
    for wrong, word in (
        ({"strategy": "slow"}, "strategy"), ({"passes": 0.0}, "passes"),
        ({"schedule": "cubic"}, "schedule"), ({"churn": "none"}, "churn"),
        ({"final_sweeps": 0.0}, "final_sweeps"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=word):
            Schedule(**wrong).check()


def test_the_prior_strategy_begins_with_all_rows():
    window = new_window(5, np.random.default_rng(0))
    fill(window, 7.0)
    assert rows_in(window).tolist() == [0, 1, 2, 3, 4]
