"""Pictures of the demo: draws on the exact posterior, how far they are off, and at what price."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from temperance.reports.style import INK, SOFT, drawn, new_figure, quiet

if TYPE_CHECKING:
    from temperance.cli.demo.asking import Exact, Row
    from temperance.cli.demo.few_rows import Known

COLOURS = {
    "NUTS": "#c4572f", "HMC": "#c4572f", "PT": "#2b6a99", "TT": "#3f8f6b", "SPT": "#7b5aa6",
    "STT": "#a3791f",
}  # fmt: skip
# Contours that hold these shares of the exact posterior.
LEVELS = (0.99, 0.9, 0.5)
REACH = 3.4
WARM_BETA = 0.01
SHOWN_DRAWS = 800
WEIGHTS_WIDTH = 0.8  # of a panel with draws


@drawn
def main_picture(answer: "Known", rows: "list[Row]") -> Figure:
    """Each sampler's draws on the exact contours, and the weight each gives to the right mode."""
    figure = new_figure(11.5, 3.2)
    panels = figure.subplots(1, len(rows) + 1, width_ratios=(*[1.0] * len(rows), WEIGHTS_WIDTH))
    for axes, row in zip(panels, rows, strict=False):
        _draws(axes, answer, row)
    panels[0].set_ylabel("centre of the larger group")
    _weights(panels[-1], answer, rows)
    return figure


def _draws(axes: Axes, answer: "Known", row: "Row") -> None:
    grid = answer.grid
    if row.name != "NUTS":
        warm = answer.log_prior + WARM_BETA * answer.log_likelihood
        levels = np.linspace(0.08, 1, 7)
        axes.contourf(grid, grid, np.exp(warm - warm.max()).T, levels, cmap="Greys", alpha=0.22)
    joint = np.exp(answer.log_prior + answer.log_likelihood - answer.log_z)
    axes.contour(grid, grid, joint.T, _thresholds(joint), colors=SOFT, linewidths=0.8)
    posterior = row.tree["posterior"]
    minority, majority = posterior["minority"].values.ravel(), posterior["majority"].values.ravel()
    stride = max(1, len(minority) // SHOWN_DRAWS)
    axes.scatter(
        minority[::stride], majority[::stride], s=5, color=COLOURS[row.name], alpha=0.45, lw=0
    )
    axes.plot([-REACH, REACH], [-REACH, REACH], color=SOFT, lw=0.6, ls=(0, (2, 3)))
    share = float(row.on_right.mean())
    for place, part in ((-2.0, share), (2.0, 1 - share)):
        axes.text(place, -place + 0.95 * np.sign(-place), f"{part:.0%}", ha="center", va="center",
                  color=COLOURS[row.name], weight="bold")  # fmt: skip
    axes.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), aspect="equal")
    axes.set_xticks([-2, 0, 2])
    axes.set_yticks([-2, 0, 2])
    axes.set_xlabel("centre of the smaller group")
    axes.set_title(row.name, color=COLOURS[row.name])


def _thresholds(density: np.ndarray) -> list[float]:
    """Densities above which a given share of the probability lies, increasing."""
    ordered = np.sort(density.ravel())[::-1]
    mass = np.cumsum(ordered) / ordered.sum()
    return [float(ordered[np.searchsorted(mass, level)]) for level in LEVELS]


def _weights(axes: Axes, answer: "Known", rows: "list[Row]") -> None:
    axes.axhline(answer.weight, color=INK, lw=1.0, ls=(0, (4, 3)), zorder=1)
    axes.text(
        1.03, answer.weight, f"exact\n{answer.weight:.3f}", fontsize=8.5, va="center",
        transform=axes.get_yaxis_transform(),
    )  # fmt: skip
    for place, row in enumerate(rows):
        colour = COLOURS[row.name]
        axes.scatter(
            np.full(len(row.on_right), place), row.on_right.mean(axis=1),
            s=16, color=colour, alpha=0.45, lw=0, zorder=2,
        )  # fmt: skip
        error = 1.96 * row.weight_error if row.ess else 0.0
        below, above = min(error, row.weight), min(error, 1 - row.weight)
        axes.errorbar(
            place, row.weight, [[below], [above]], fmt="o", color=colour, ms=7, capsize=4, zorder=3
        )
    axes.set_ylim(-0.04, 1.04)
    axes.set_xlim(-0.55, len(rows) - 0.45)
    axes.set_xticks(range(len(rows)), [row.name for row in rows])
    axes.set_title("Larger group on the right")
    axes.set_ylabel("posterior probability")
    axes.set_box_aspect(1 / WEIGHTS_WIDTH)
    quiet(axes)


@drawn
def mode_strips(rows: "list[Row]") -> Figure:
    """Which mode each chain is in at each draw: a chain that never changes colour is stuck."""
    figure = new_figure(10.0, 0.7 + 0.85 * len(rows))
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    for axes, row in zip(panels, rows, strict=True):
        colours = ListedColormap(["#e6e9ed", COLOURS[row.name]])
        num_chains, num_draws = row.on_right.shape
        axes.imshow(
            row.on_right, aspect="auto", interpolation="nearest", cmap=colours, vmin=0, vmax=1,
            extent=(0, num_draws, num_chains + 0.5, 0.5),
        )  # fmt: skip
        for edge in range(1, len(row.on_right)):
            axes.axhline(edge + 0.5, color="white", lw=2)
        axes.set_yticks([])
        axes.set_ylabel(row.name, rotation=0, ha="right", va="center", weight="bold")
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        axes.tick_params(length=0)
    panels[-1].set_xlabel("draw, one band for each chain")
    return figure


@drawn
def weight_by_work(answer: "Exact", rows: "list[Row]") -> Figure:
    """The weight each sampler gives, against the rows that it evaluated."""
    figure = new_figure(10.0, 2.8)
    axes = figure.subplots()
    axes.axhline(answer.weight, color=INK, lw=1.0, ls=(0, (4, 3)), zorder=1)
    axes.text(
        1.01, answer.weight, f"exact\n{answer.weight:.3f}", fontsize=8.5, va="center",
        transform=axes.get_yaxis_transform(),
    )  # fmt: skip
    for row in rows:
        error = 1.96 * row.weight_error if row.ess else 0.0
        place, colour = row.num_rows / 1e9, COLOURS[row.name]
        below, above = min(error, row.weight), min(error, 1 - row.weight)
        axes.errorbar(place, row.weight, [[below], [above]], fmt="o", color=colour, ms=7, capsize=4)
        axes.annotate(row.name, (place, row.weight), xytext=(8, 0), textcoords="offset points",
                      va="center", color=colour, weight="bold")  # fmt: skip
    axes.set_ylim(-0.04, 1.04)
    axes.set_xlim(left=0.0, right=1.12 * max(row.num_rows for row in rows) / 1e9)
    axes.set_xlabel("10⁹ rows evaluated")
    axes.set_ylabel("P(effect > 0)")
    quiet(axes)
    return figure


@drawn
def evidence_bars(answer: "Known", tree: Any) -> Figure:
    """Log Z by each estimator with its 95 % interval, against the exact value."""
    found = tree["evidence"].dataset
    names = [str(name).replace("_", " ") for name in found["estimator"].values]
    figure = new_figure(10.0, 1.7)
    axes = figure.subplots()
    axes.errorbar(
        found["log_evidence"].values, np.arange(len(names)), xerr=1.96 * found["error"].values,
        fmt="o", color=COLOURS["PT"], capsize=4, ms=7,
    )  # fmt: skip
    axes.axvline(answer.log_z, color=INK, lw=1.0, ls=(0, (4, 3)))
    axes.annotate(
        f"exact {answer.log_z:.3f}", (answer.log_z, len(names) - 0.45), xytext=(5, 0),
        textcoords="offset points", va="center", fontsize=8.5,
    )  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.5, len(names) - 0.1)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_xlabel("log Z")
    quiet(axes, "x")
    return figure
