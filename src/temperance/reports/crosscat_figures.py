"""Pictures of a cross-categorization: what depends, how views cut the table, how a fit went.

Functions take plain frames and arrays, so that they draw what a model says and what a study kept.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from temperance.errors import ArgumentError
from temperance.reports.style import HOT, chain_colour, drawn, new_figure, quiet

# Names are written as long as they can be read.
MOST_NAMES = 80
MOST_ROWS, MOST_VIEWS, MOST_LABELS = 600, 12, 8
# What a trace may know, and how it is called.
SERIES = {
    "score": "log joint density, of the rows that are in, for each of them",
    "clusters": "clusters, in all views",
    "views": "views",
}


def dependence_order(dependence: np.ndarray) -> np.ndarray:
    """An order of columns in which those that depend lie together: the leaves of a clustering."""
    num = len(dependence)
    if num < 3:
        return np.arange(num)
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    distances = 1.0 - 0.5 * (dependence + dependence.T)
    np.fill_diagonal(distances, 0.0)
    apart = squareform(np.clip(distances, 0.0, None), checks=False)
    return leaves_list(optimal_leaf_ordering(linkage(apart, "average"), apart))


@drawn
def dependence(frame: Any) -> Figure:
    """The probability that two columns share a view: a square frame with their names both ways."""
    values = np.asarray(frame, float)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ArgumentError(
            f"frame: wanted a square table, as `dependence()` gives, got shape {values.shape}"
        )
    order = dependence_order(values)
    names = [str(frame.columns[i]) for i in order]
    side = float(np.clip(1.6 + 0.16 * len(names), 3.6, 13.0))
    figure = new_figure(side + 1.0, side)
    axes = figure.subplots()
    image = axes.imshow(
        values[np.ix_(order, order)], cmap=HOT, vmin=0.0, vmax=1.0, interpolation="nearest"
    )
    _name(axes, names)
    axes.set_title("Probability that two columns share a view")
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02)
    bar.outline.set_visible(False)
    return figure


@drawn
def views(
    cells: np.ndarray, columns: Sequence[Sequence[int]], assignments: Sequence[np.ndarray],
    names: Iterable[str],
) -> Figure:  # fmt: skip
    """Each view as the table cut down to its columns, with rows sorted by their cluster there.

    `cells` is (rows, columns): codes or values, of which each column is shown by rank, from 0 to
    1, and NaN is left white. `columns` and `assignments` have one entry for each view, and `names`
    may be a frame's columns.
    """
    told = [str(name) for name in names]
    shown = sorted(range(len(columns)), key=lambda v: -len(columns[v]))[:MOST_VIEWS]
    ranks = _ranks(np.asarray(cells, float))
    width = 1.0 + 0.6 * len(shown) + 0.17 * sum(len(columns[v]) for v in shown)
    figure = new_figure(float(np.clip(width, 4.0, 16.0)), 6.0)
    parts = figure.subplots(
        1, len(shown), squeeze=False, width_ratios=[max(4, len(columns[v])) for v in shown]
    )[0]
    for axes, v in zip(parts, shown, strict=True):
        labels = np.asarray(assignments[v])
        sizes = np.bincount(labels)
        place = np.argsort(np.argsort(-sizes, kind="stable"))
        order = np.argsort(place[labels], kind="stable")
        kept = order[np.linspace(0, len(order) - 1, min(len(order), MOST_ROWS)).astype(int)]
        axes.imshow(
            ranks[kept][:, list(columns[v])], aspect="auto", cmap="viridis", vmin=0.0, vmax=1.0,
            interpolation="nearest",
        )  # fmt: skip
        edges = np.flatnonzero(np.diff(place[labels][kept])) + 0.5
        axes.hlines(edges, -0.5, len(columns[v]) - 0.5, color="white", lw=0.8)
        axes.set_xticks(range(len(columns[v])), [told[c] for c in columns[v]], rotation=90)
        axes.tick_params(length=0, labelsize=7)
        axes.set_yticks([])
        axes.set_title(f"{np.count_nonzero(sizes)} clusters", fontsize=8.5)
        for spine in axes.spines.values():
            spine.set_visible(False)
    rest = f", the widest {len(shown)}" if len(shown) < len(columns) else ""
    figure.suptitle(
        f"{len(columns)} views of {len(cells):,} rows{rest}", x=0.01, ha="left",
        fontsize=10.5, fontweight="bold",
    )  # fmt: skip
    return figure


@drawn
def trace(frame: Any) -> Figure:
    """How each state was fitted: score, rows in the window, clusters and views against seconds.

    `frame` is a model's `trace_`: columns `state`, `seconds`, `rows` and one or more of SERIES.
    """
    missing = [name for name in ("state", "seconds", "rows") if name not in frame.columns]
    series = {name: words for name, words in SERIES.items() if name in frame.columns}
    if missing or not series:
        raise ArgumentError(
            f"frame: wanted columns state, seconds, rows and one of {', '.join(SERIES)}, as "
            f"`trace_` has; got {', '.join(map(str, frame.columns))}"
        )
    figure = new_figure(10.0, 1.0 + 1.6 * (1 + len(series)))
    parts = figure.subplots(1 + len(series), 1, sharex=True)
    words = series | {"rows": "rows in the window"}
    for number, (state, found) in enumerate(frame.groupby("state", sort=True)):
        for axes, name in zip(parts, words, strict=True):
            values = found[name].to_numpy(float)
            if name == "score":
                values = values / np.maximum(found["rows"].to_numpy(float), 1.0)
            known = np.isfinite(values)
            axes.plot(
                found["seconds"].to_numpy(float)[known], values[known], color=chain_colour(number),
                lw=1.0, alpha=0.85, label=f"state {state}",
            )  # fmt: skip
    for axes, title in zip(parts, words.values(), strict=True):
        axes.set_title(title)
        axes.set_xlim(left=0)
        quiet(axes)
    parts[-1].set_ylim(bottom=0)
    parts[-1].set_xlabel("seconds")
    if frame["state"].nunique() <= MOST_LABELS:
        parts[0].legend(ncols=4)
    return figure


def _ranks(cells: np.ndarray) -> np.ndarray:
    """Each column by the rank of its distinct values, from 0 to 1."""
    found = np.full(cells.shape, np.nan)
    for column, values in enumerate(cells.T):
        known = np.isfinite(values)
        distinct, place = np.unique(values[known], return_inverse=True)
        found[known, column] = place / max(1, len(distinct) - 1)
    return found


def _name(axes: Axes, names: list[str]) -> None:
    if len(names) <= MOST_NAMES:
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0, labelsize=7)
    else:
        axes.set_xticks([])
        axes.set_yticks([])
