"""The figures: the paper's three, its tables as ratios, and the tuned samplers."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from printed import OBSERVED_COST, TABLE_1, TABLE_2
from settings import SAMPLERS, theory
from sizes import PANELS
from tables import EXTRA, MOVES, TABLE_ROWS, TITLES, flat
from winners import METHODS, SINGLE_METHODS

Rows = list[dict[str, Any]]
COLOURS = {
    "plain": "0.25", "stt": "#0b6e8a", "tt": "#7fb7c6", "spt": "#c8553d", "pt": "#e3a597",
    "nuts": "#7a9e3b",
}  # fmt: skip
MARKERS = {"plain": "o", "stt": "s", "tt": "D", "spt": "^", "pt": "v"}
PROBLEMS = {"normal": "multivariate normal", "gp": "Gaussian process"}
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9.5,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


def draw_all(results: Rows, folder: Path) -> None:
    """Every figure of which there is something to show."""
    kinds = flat(results)
    curves = [r for r in results if r["kind"] == "draws" and r["problem"] == "gp"]
    with plt.rc_context(STYLE):
        if kinds["cost"]:
            _costs(kinds["cost"], folder / "figure1.png")
        if curves:
            _convergence(curves, folder / "figure2.png")
        if kinds["draws"]:
            _sizes(kinds["draws"], folder / "figure3.png")
            _gains(kinds["draws"], folder / "tables.png")
        if kinds["tuned"]:
            _winners(kinds["tuned"], folder / "winners.png")


def _save(figure: Any, path: Path, axes: Any = None) -> None:
    if axes is not None:
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _log_axes(axes: Any, *names: str) -> None:
    """Logarithmic where there is something to show; a log axis without a number is an error."""
    values = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    values += [np.array([bar.get_height()]) for bar in axes.patches]
    if any(np.any(np.isfinite(v) & (v > 0)) for v in values):
        axes.set(**dict.fromkeys(names, "log"))


def _costs(rows: Rows, path: Path) -> None:
    """Cost by rows: points measured, dashes theory, a cross what the paper observed."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for axes, problem in zip(panels, PROBLEMS, strict=True):
        those = [r for r in rows if r["problem"] == problem and r["move"] == "hmc"]
        many = sorted({r["num_rows"] for r in those})
        for sampler in SAMPLERS[1:]:
            mine = sorted(
                (r for r in those if r["sampler"] == sampler), key=lambda r: r["num_rows"]
            )
            x = [r["num_rows"] for r in mine]
            style = {"color": COLOURS[sampler], "marker": MARKERS[sampler], "ms": 5}
            axes.plot(x, [r["wall_ratio"] for r in mine], label=TITLES[sampler], **style)
            expected = [theory(sampler, n, problem) for n in x]
            axes.plot(x, expected, "--", color=COLOURS[sampler], lw=1)
            if many:
                printed = OBSERVED_COST[problem][sampler]
                axes.plot(1.25 * many[-1], printed, "x", color=COLOURS[sampler], ms=8, mew=2)
        _log_axes(axes, "xscale", "yscale")
        axes.set(xlabel="rows", ylabel="cost relative to HMC alone")
        _plain_ticks(axes, many, (1, 2, 3, 5, 7, 13, 20))
        axes.set_title(f"{PROBLEMS[problem]}: wall time; x is the paper's", loc="left", fontsize=10)
    _save(figure, path, panels[0])


def _plain_ticks(axes: Any, x: list[int], y: tuple[float, ...] = ()) -> None:
    axes.set_xticks(x, [str(int(n)) for n in x])
    if y:
        axes.set_yticks(y, [f"{v:g}" for v in y])
    axes.minorticks_off()


def _convergence(results: Rows, path: Path) -> None:
    """R-hat of figure 2, of the largest Gaussian process with 20 parameters that was run."""
    those = [r for r in results if r["dimension"] == 18 and r["move"] == "hmc" and r["seed"] == 0]
    those = [r for r in those if r["sampler"] in SAMPLERS]
    complete = [
        n
        for n in {r["num_rows"] for r in those}
        if {r["sampler"] for r in those if r["num_rows"] == n} == set(SAMPLERS)
    ]
    num_rows = max(complete or [r["num_rows"] for r in those] or [0])
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
    for result in those:
        if result["num_rows"] != num_rows or not result["curve"]:
            continue
        sweeps, rhat = np.array(result["curve"]).T
        sampler = result["sampler"]
        seconds = result["wall"] * sweeps / sweeps[-1]
        for axes, x in zip(panels, (sweeps, seconds), strict=True):
            axes.plot(x, rhat, color=COLOURS[sampler], lw=1.5, label=TITLES[sampler])
    for axes, label in zip(panels, ("draws a chain", "wall seconds"), strict=True):
        axes.axhline(1.1, color="0.4", ls="--", lw=1)
        _log_axes(axes, "xscale", "yscale")
        axes.set(xlabel=label)
        axes.set_yticks((1, 1.1, 1.5, 2, 3, 5, 10), ("1", "1.1", "1.5", "2", "3", "5", "10"))
        axes.minorticks_off()
    panels[0].set(ylabel="R-hat, median over dimensions")
    panels[0].set_title(f"Gaussian process, N = {num_rows}, 20 parameters", loc="left", fontsize=10)
    _save(figure, path, panels[0])


def _sizes(rows: Rows, path: Path) -> None:
    """Figure 3: lines by ArviZ's estimator, open marks by the paper's."""
    figure, panels = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    for axes, (problem, dimension, move) in zip(panels, PANELS, strict=True):
        those = [
            r for r in rows
            if (r["problem"], r["dimension"], r["move"]) == (problem, dimension, move)
        ]  # fmt: skip
        for sampler in SAMPLERS:
            mine = sorted(
                (r for r in those if r["sampler"] == sampler), key=lambda r: r["num_rows"]
            )
            x = [r["num_rows"] for r in mine]
            style = {"color": COLOURS[sampler], "marker": MARKERS[sampler], "ms": 5}
            axes.plot(x, [r["ess_per_second"] for r in mine], label=TITLES[sampler], **style)
            style |= {"mfc": "white", "ls": "none"}
            axes.plot(x, [r["ess_between_per_second"] for r in mine], **style)
        _log_axes(axes, "xscale", "yscale")
        axes.set(xlabel="rows", ylabel="effective samples a second")
        _plain_ticks(axes, sorted({int(r["num_rows"]) for r in those}))
        title = f"{PROBLEMS[problem]}, {dimension + EXTRA[problem]} parameters, {MOVES[move]}"
        axes.set_title(title, loc="left", fontsize=10)
    _save(figure, path, panels[0])


def _gains(rows: Rows, path: Path) -> None:
    """Tables 1 and 2 as ratios to the inner sampler: bars ours, crosses the paper's."""
    figure, panels = plt.subplots(2, 2, figsize=(11, 7), layout="constrained")
    tables = [("gp", TABLE_1), ("normal", TABLE_2)]
    for line, (problem, printed) in zip(panels, tables, strict=True):
        for axes, (move, by_size) in zip(line, printed.items(), strict=True):
            _gain_panel(axes, rows, problem, move, by_size)
    _save(figure, path, panels[0, 0])


def _gain_panel(axes: Any, rows: Rows, problem: str, move: str, by_size: dict[int, Any]) -> None:
    those = [r for r in rows if r["problem"] == problem and r["move"] == move]
    found = {r["num_rows"] for r in those if r["sampler"] != "plain"}
    num_rows = next((n for n in TABLE_ROWS[problem, move] if n in found), 0)
    for place, (parameters, figures) in enumerate(by_size.items()):
        mine = {
            r["sampler"]: r
            for r in those
            if r["num_rows"] == num_rows and r["dimension"] == parameters - EXTRA[problem]
        }
        base = float(figures["plain"].rstrip("*"))
        for i, sampler in enumerate(SAMPLERS[1:]):
            x = place + 0.2 * (i - 1.5)
            if sampler in mine and "plain" in mine:
                gain = mine[sampler]["ess_per_second"] / mine["plain"]["ess_per_second"]
                axes.plot(x, gain, MARKERS[sampler], color=COLOURS[sampler], ms=6,
                          label=TITLES[sampler] if place == 0 else None)  # fmt: skip
            printed = float(figures[sampler].rstrip("*")) / base
            axes.plot(x, printed, "x", color=COLOURS[sampler], ms=7)
    axes.axhline(1.0, color="0.4", lw=1)
    _log_axes(axes, "yscale")
    axes.set(xlabel="parameters", ylabel="effective samples a second, over inner")
    axes.set_xticks(range(len(by_size)), [str(size) for size in by_size])
    title = f"{PROBLEMS[problem]}, {MOVES[move]} within, ours at N = {int(num_rows)}; x the paper's"
    axes.set_title(title, loc="left", fontsize=10)


def _winners(rows: Rows, path: Path) -> None:
    """Tuned samplers by problem; hatched where all gradients are of single precision."""
    problems = list(dict.fromkeys((r["problem"], int(r["num_rows"])) for r in rows))
    ran = {r["sampler"] for r in rows}
    methods = [name for name in (*METHODS, *SINGLE_METHODS) if name in ran]
    width = 0.85 / len(methods)
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    names = ("ess_per_cpu_second", "ess_per_thousand")
    labels = ("effective samples a CPU second", "effective samples a thousand full evaluations")
    for axes, name, label in zip(panels, names, labels, strict=True):
        for i, method in enumerate(methods):
            mine = {(r["problem"], int(r["num_rows"])): r for r in rows if r["sampler"] == method}
            aside = width * (i - 0.5 * (len(methods) - 1))
            x = [p + aside for p, key in enumerate(problems) if key in mine]
            y = [mine[key][name] for key in problems if key in mine]
            hatch = "////" if method in SINGLE_METHODS else None
            colour = COLOURS[method.split()[0]]
            axes.bar(x, y, width, color=colour, hatch=hatch, edgecolor="white", label=method)
        _log_axes(axes, "yscale")
        axes.set(ylabel=label)
        axes.set_xticks(range(len(problems)), [f"{p}\nN = {n}" for p, n in problems])
    _save(figure, path, panels[0])
