"""Figure 3: one panel for each table, a point for each run, a line through the means of each strategy."""

from collections.abc import Sequence

import numpy as np
from experiment import Result
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from temperance.reports.style import SOFT, chain_colour, drawn, new_figure, quiet

ACROSS = 3
MARKS = ("o", "D", "s", "^")


@drawn
def picture(rows: list[Result], strategies: Sequence[str]) -> Figure:
    tables = sorted(
        {(row["problem"], row["num_rows"]) for row in rows}, key=lambda t: (t[0] != "hospital", t)
    )
    down = -(-len(tables) // ACROSS)
    figure = new_figure(11.0, 0.4 + 2.9 * down)
    panels = figure.subplots(down, ACROSS, squeeze=False).ravel()
    for axes, (problem, num_rows) in zip(panels, tables, strict=False):
        here = [row for row in rows if (row["problem"], row["num_rows"]) == (problem, num_rows)]
        for number, strategy in enumerate(strategies):
            some = [row for row in here if row["sampler"] == strategy]
            if not some:
                continue
            colour, mark = chain_colour(number), MARKS[number % len(MARKS)]
            axes.plot(
                [r["cpu"] for r in some],
                [r["score"] for r in some],
                mark,
                color=colour,
                ms=3,
                alpha=0.45,
                mew=0,
            )
            levels = sorted({row["passes"] for row in some})
            means = [
                np.mean(
                    [[np.log(r["cpu"]), r["score"]] for r in some if r["passes"] == level], axis=0
                )
                for level in levels
            ]
            axes.plot(
                *np.transpose([(np.exp(t), s) for t, s in means]),
                color=colour,
                marker=mark,
                ms=5,
                label=strategy,
            )
        known = [row["oracle"] for row in here if "oracle" in row]
        if known:
            axes.axhline(np.mean(known), color=SOFT, lw=0.9, ls=(0, (4, 3)), label="oracle")
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_title(f"{problem}, {num_rows:,} rows")
        axes.set_xlabel("CPU seconds")
        quiet(axes)
        _clip(axes, [row["score"] for row in here])
    panels[0].set_ylabel("held-out log score of a row")
    panels[0].legend()
    for axes in panels[len(tables) :]:
        axes.set_visible(False)
    return figure


def _clip(axes, scores):
    """A few hopeless runs do not flatten the rest; they are counted at the edge."""
    low, middle, high = np.quantile(scores, [0.1, 0.5, 1.0])
    edge = middle - 3 * max(high - middle, middle - low)
    if min(scores) < edge:
        axes.set_ylim(bottom=edge)
        below = sum(score < edge for score in scores)
        axes.text(
            0.98,
            0.02,
            f"{below} lower",
            transform=axes.transAxes,
            ha="right",
            va="bottom",
            fontsize=7.5,
        )
