"""Pictures of cross-categorization: what is drawn is what was given, in an order that shows it."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from temperance.errors import ArgumentError
from temperance.reports import crosscat_figures as figures


def blocks(num: int, num_blocks: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """A dependence of blocks with some noise, in a random order of columns."""
    label = rng.permutation(np.arange(num) % num_blocks)
    values = np.where(label[:, None] == label, 0.9, 0.1) + 0.05 * rng.random((num, num))
    values = (values + values.T) / 2
    np.fill_diagonal(values, 1.0)
    return values, label


def test_columns_that_depend_come_to_lie_together(seed):
    values, label = blocks(24, 4, np.random.default_rng(seed))
    ordered = label[figures.dependence_order(values)]
    assert np.count_nonzero(np.diff(ordered)) == 3
    assert sorted(figures.dependence_order(values)) == list(range(24))
    assert list(figures.dependence_order(values[:2, :2])) == [0, 1]


def test_dependence_shows_each_pair_under_its_names(seed):
    values, _ = blocks(9, 3, np.random.default_rng(seed))
    names = [f"column {i}" for i in range(9)]
    before = dict(mpl.rcParams)
    figure = figures.dependence(pd.DataFrame(values, names, names))
    assert dict(mpl.rcParams) == before
    axes = figure.axes[0]
    shown = [int(text.get_text().split()[1]) for text in axes.get_xticklabels()]
    np.testing.assert_allclose(axes.images[0].get_array(), values[np.ix_(shown, shown)])
    with pytest.raises(ArgumentError, match="square"):
        figures.dependence(pd.DataFrame(values[:3]))


def test_views_sort_rows_by_cluster(seed):
    rng = np.random.default_rng(seed)
    labels = [rng.permutation(np.repeat([0, 1, 2], (10, 30, 20))), rng.integers(0, 2, 60)]
    cells = np.column_stack([labels[0], labels[1], labels[0], rng.normal(size=60)]).astype(float)
    cells[0, 3] = np.nan
    figure = figures.views(cells, [(0, 2, 3), (1,)], labels, ["a", "b", "c", "d"])
    first, second = figure.axes
    assert [text.get_text() for text in first.get_xticklabels()] == ["a", "c", "d"]
    assert first.get_title("left") == "3 clusters"
    # The largest cluster first; its value 1 is the middle one of three.
    image = np.asarray(first.images[0].get_array())
    np.testing.assert_array_equal(image[:, 0], np.repeat([0.5, 1.0, 0.0], (30, 20, 10)))
    assert np.isnan(image[:, 2]).sum() == 1
    assert len(first.collections[0].get_segments()) == 2
    assert np.count_nonzero(np.diff(np.asarray(second.images[0].get_array())[:, 0])) == 1


def test_views_of_many_rows_and_views_are_cut_down(seed):
    rng = np.random.default_rng(seed)
    num = figures.MOST_VIEWS + 3
    cells = rng.integers(0, 3, (2000, num))
    labels = [rng.integers(0, 4, 2000)] * num
    names = [str(c) for c in range(num)]
    figure = figures.views(cells, [(c,) for c in range(num)], labels, names)
    assert len(figure.axes) == figures.MOST_VIEWS
    assert figure.axes[0].images[0].get_array().shape == (figures.MOST_ROWS, 1)


def test_trace_draws_each_state_where_it_is_known():
    frame = pd.DataFrame(
        {
            "state": [0, 0, 0, 1, 1, 1],
            "seconds": [0.1, 0.5, 1.0, 0.1, 0.6, 1.1],
            "rows": [10, 50, 100, 10, 50, 100],
            "score": [np.nan, -4.0, -3.5, -5.0, -4.1, -3.6],
            "clusters": [1, 4, 5, 2, 4, 6],
        }
    )
    figure = figures.trace(frame)
    assert isinstance(figure, Figure)
    score, clusters, window = figure.axes
    np.testing.assert_array_equal(score.lines[0].get_xdata(), [0.5, 1.0])
    np.testing.assert_allclose(score.lines[0].get_ydata(), [-4.0 / 50, -3.5 / 100])
    np.testing.assert_array_equal(clusters.lines[1].get_ydata(), [2, 4, 6])
    assert window.get_ylim()[0] == 0
    with pytest.raises(ArgumentError, match="wanted columns"):
        figures.trace(frame.drop(columns="seconds"))
