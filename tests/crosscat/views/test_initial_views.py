"""Where a cross-categorization begins: its columns enter, with some rows in."""

import numpy as np
from tests.crosscat.mixed_table import known_prior, mixed

from temperance.crosscat.annealing.run import FIRST_ROWS, Annealing, Settings
from temperance.crosscat.annealing.schedules import Schedule
from temperance.crosscat.views.initial_views import SEARCHES, num_searches
from temperance.crosscat.views.row_gibbs import sweep_steps
from temperance.crosscat.views.state import State

GROUND, _, HYPER = mixed(5, equal=True)
PRIOR = known_prior(GROUND, HYPER, 0.9, 0.25)


def test_every_column_has_a_view_of_the_rows_that_are_in(seed):
    rows = np.array([0, 2, 3])
    state = State.draw(GROUND, PRIOR, np.random.default_rng([seed, 91]), "none")
    assert state.views == []
    state.enter_columns(rows)
    assert sorted(column for view in state.views for column in view.columns) == list(range(6))
    for view in state.views:
        assert (view.labels[rows] >= 0).all()
        assert (np.delete(view.labels, rows) < 0).all()
        assert view.sizes.sum() == len(rows)


def test_columns_enter_when_half_of_few_rows_are_in(seed):
    settings = Settings("crosscat", Schedule(passes=3))
    run = Annealing.start(GROUND, PRIOR, settings, np.random.SeedSequence([seed, 92]))
    assert run.window.num_in == 2 < FIRST_ROWS
    assert run.window.owed[0] == run.churns[1]
    weighed = Annealing.start(GROUND, PRIOR, settings, np.random.SeedSequence(seed), weighed=True)
    assert weighed.window.num_in == 0
    assert weighed.state.views


def test_one_row_is_swept_in_the_end(seed):
    ground, _, hyper = mixed(1, equal=True)
    settings = Settings("crosscat", Schedule(passes=3))
    run = Annealing.start(
        ground, known_prior(ground, hyper, 0.9, 0.25), settings, np.random.SeedSequence(seed)
    )
    assert run.window.owed[0] == 2.0
    run.run()
    assert run.finished
    assert run.rows.tolist() == [0]


def test_columns_of_long_tables_join_before_views_are_made():
    assert num_searches(20_000) == 0
    assert num_searches(20_001) == SEARCHES


def test_each_row_comes_back_before_the_next_leaves():
    assert sweep_steps(np.array([4, 0])).tolist() == [-5, 4, -1, 0]
