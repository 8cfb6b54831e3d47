"""The figures: the tempered law, the ratio of its modes, accuracies, quantiles and counts of modes."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from tables import Rows, by_kind
from tied_problem import BOX

STYLE = {
    "axes.grid": True, "axes.spines.right": False, "axes.spines.top": False, "font.size": 9.5,
    "grid.alpha": 0.3, "legend.frameon": False,
}  # fmt: skip


def draw_all(results: Rows, folder: Path) -> None:
    """Every figure of which there is something to show."""
    kinds = by_kind(results)
    with plt.rc_context(STYLE):
        if kinds["law"]:
            _contours(kinds["law"][-1], kinds["tied"], folder / "tied_means.png")
        if kinds["tied"]:
            _ratios(kinds["tied"], folder / "mode_ratio.png")
        if kinds["accuracy"]:
            _accuracy(kinds["accuracy"], folder / "accuracy.png")
        if kinds["normality"]:
            _quantiles(kinds["normality"][-1]["points"], folder / "normality.png")
        if kinds["modes"]:
            _counts(kinds["modes"], folder / "modes.png")


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panels(count: int, width: float = 3.1) -> tuple[Any, list[Any]]:
    figure, axes = plt.subplots(1, count, figsize=(width * count, 3.1), squeeze=False)
    return figure, list(axes[0])


def _contours(law: dict[str, Any], rows: Rows, path: Path) -> None:
    shown = [("exact, tempered", np.array(law["density"]))]
    shown += [(row["sampler"], np.array(row["histogram"])) for row in rows]
    figure, axes = _panels(len(shown), 2.6)
    for axis, (title, masses) in zip(axes, shown, strict=True):
        sides = [
            low + (high - low) * (np.arange(n) + 0.5) / n
            for (low, high), n in zip(BOX, masses.shape, strict=True)
        ]
        # Of equal area, so that grids of two sizes have equal contours.
        density = masses * masses.size
        axis.contour(*sides, density.T, levels=np.geomspace(0.5, 30, 7), linewidths=0.9)
        axis.plot(*np.transpose(law["modes"]["prior tempered"]), "k+")
        axis.set(title=title, xlabel="theta_1", xlim=(-2, 3), ylim=(-4, 4))
    axes[0].set_ylabel("theta_2")
    _save(figure, path)


def _ratios(rows: Rows, path: Path) -> None:
    figure, axes = _panels(2, 4.0)
    for axis, column, title in ((axes[0], 4, "halves"), (axes[1], 1, "balls of radius 0.01")):
        for row in (one for one in rows if one["num_both"] > 0):
            curve = np.array(row["curve"], float)
            axis.errorbar(
                curve[:, 0], curve[:, column], curve[:, column + 1], label=row["sampler"], lw=1
            )
        axis.axhline(1.0, color="k", ls="--", lw=0.8)
        axis.set(title=title, xlabel="steps a run", xscale="log", ylim=(0, 2.5))
    axes[0].set_ylabel("ratio of the modes")
    axes[0].legend()
    _save(figure, path)


def _accuracy(rows: Rows, path: Path) -> None:
    figure, axes = _panels(2, 4.2)
    names = list(dict.fromkeys(row["sampler"] for row in rows))
    for number, name in enumerate(names):
        colour = f"C{number}"
        curves = [np.array(row["curve"]) for row in rows if row["sampler"] == name]
        for axis, column in zip(axes, (0, 1), strict=True):
            ends = np.geomspace(
                max(1e-3, min(c[1, column] for c in curves)), min(c[-1, column] for c in curves), 60
            )
            many = np.array([np.interp(ends, c[:, column], c[:, 2]) for c in curves])
            mean, error = many.mean(0), many.std(0) / np.sqrt(len(many))
            axis.plot(ends, mean, color=colour, label=name)
            axis.fill_between(ends, mean - error, mean + error, color=colour, alpha=0.25)
    for axis, title in zip(axes, ("passes over the data", "CPU seconds"), strict=True):
        axis.axhline(0.99, color="k", ls="--", lw=0.8)
        axis.set(xlabel=title, xscale="log", ylim=(0.3, 1.01))
    axes[0].set_ylabel("accuracy on test images")
    axes[0].legend()
    _save(figure, path)


def _quantiles(points: dict[str, Any], path: Path) -> None:
    figure, axes = _panels(len(points))
    for axis, (name, one) in zip(axes, points.items(), strict=True):
        sorted_values = np.array(one["quantiles"]) / one["sd"]
        normal = norm.ppf((np.arange(sorted_values.size) + 0.5) / sorted_values.size)
        axis.plot(normal, sorted_values, ".", ms=4)
        axis.plot(normal, normal, "k--", lw=0.8)
        axis.set(title=f"{name}: KS {one['ks']:.3f}", xlabel="normal quantile")
    axes[0].set_ylabel("quantile of t, in sd")
    _save(figure, path)


def _counts(rows: Rows, path: Path) -> None:
    figure, axes = _panels(len(rows))
    for axis, row in zip(axes, rows, strict=True):
        axis.bar(np.arange(len(row["counts"])), row["counts"])
        axis.set(title=f"{row['sampler']}: {row['num_modes']} of 50", xlabel="mode")
    axes[0].set_ylabel("draws")
    _save(figure, path)
