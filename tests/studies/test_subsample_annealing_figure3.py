"""Figure 3 of studies/subsample_annealing: its rows, and what is made of finished ones."""

import itertools
from dataclasses import asdict

import numpy as np
import pytest
from tests.studies.study_parts import STUDIES, part_of

STUDY = STUDIES / "subsample_annealing"
part = part_of(STUDY)


@pytest.fixture
def finished(part):
    """Made-up results: each strategy is worse than the last by one, and seeds differ a little."""
    figure3 = part("figure3")
    rows = []
    for row in figure3.experiments():
        if row.seed < 3 and row.num_rows <= 10_000:
            score = -10.0 - figure3.STRATEGIES.index(row.sampler) + 0.1 * row.seed
            known = {} if row.problem != "census" else {"oracle": -9.0}
            found = {
                "passes": figure3.passes_of(row),
                "cpu": figure3.passes_of(row),
                "score": score,
            }
            rows.append(asdict(row) | found | known)
    return rows


def test_rows_have_names_of_their_own_and_come_with_the_scale(part):
    figure3, experiment = part("figure3"), part("experiment")
    rows = figure3.experiments()
    assert len({row.name for row in rows}) == len(rows)
    assert {row.kind for row in rows} <= set(figure3.RUNNERS)
    few, all_ = (experiment.chosen(rows, scale, 1.0) for scale in (0.05, 1.0))
    assert len(all_) == len(rows)
    assert {row.seed for row in few} == {0, 1, 2}
    assert max(row.num_rows for row in few) == 10_000
    # A larger scale makes nothing again.
    kept = {row.name: row.seconds for row in all_}
    assert all(kept[row.name] == row.seconds for row in few)
    for strategy, problem in itertools.product(figure3.STRATEGIES, ("hospital", "kdd", "census")):
        assert any(row.sampler == strategy and row.problem == problem for row in few)


def test_the_table_and_the_picture_say_what_runs_found(part, finished, tmp_path):
    figure3 = part("figure3")
    text = "\n".join(figure3.write(finished, tmp_path))
    lines = (tmp_path / "figure3.csv").read_text().splitlines()
    assert lines[0].startswith("table,rows,strategy,passes,runs,cpu_seconds,score")
    (line,) = [one for one in lines if one.startswith("census,10000,anneal,16,")]
    runs, cpu, score, spread, worst, below = map(float, line.split(",")[4:])
    assert (runs, cpu, score, worst, below) == pytest.approx((3, 16, -9.9, -10, 0.9))
    assert spread == pytest.approx(np.std([0, 0.1, 0.2]), rel=1e-3)
    assert "hospital" in text
    figure = part("figure3_picture").picture(finished, figure3.STRATEGIES)
    titles = [axes.get_title("left") for axes in figure.axes if axes.get_visible()]
    assert titles == ["hospital, 307 rows", "census, 10,000 rows", "kdd, 10,000 rows"]
    census = figure.axes[1]
    mean_lines = [line for line in census.lines if line.get_label() in figure3.STRATEGIES]
    np.testing.assert_allclose(
        [line.get_ydata()[0] for line in mean_lines], [-9.9, -10.9, -11.9, -12.9]
    )
    figure3.draw(finished, tmp_path)
    assert (tmp_path / "figure3.png").stat().st_size > 10_000


def test_hopeless_runs_are_counted_at_the_edge(part, finished):
    lost = [dict(finished[0], score=-1e4)]
    figure = part("figure3_picture").picture(finished + lost, part("figure3").STRATEGIES)
    axes = next(one for one in figure.axes if "hospital" in one.get_title("left"))
    assert axes.get_ylim()[0] > -100
    assert axes.texts[0].get_text() == "1 lower"
