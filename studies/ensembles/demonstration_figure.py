"""Figures 2 to 5 as trace plots, and effective sizes and switches of every sampler."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from demonstration_tables import RATES, rate
from neal_samplers import BASES, JOINT, names

mpl.use("agg")
import matplotlib.pyplot as plt

Rows = list[dict[str, Any]]
STYLE = {
    "axes.grid": True, "axes.spines.right": False, "axes.spines.top": False, "font.size": 9.5,
    "grid.alpha": 0.3, "legend.frameon": False,
}  # fmt: skip
FIGURES = {
    "figure2": [f"metropolis {s}" for s in JOINT],
    "figure3": ["one at a time", "extra"],
    "figure4": [f"spectral {base}" for base in BASES],
    "figure5": [f"cholesky {base}" for base in BASES],
}
COLOURS = (("mean relevance", "C3"), ("eta", "C2"), ("sigma", "C0"))


def draw(rows: Rows, folder: Path) -> None:
    """Every figure whose samplers have run."""
    with plt.rc_context(STYLE):
        for name, samplers in FIGURES.items():
            first = {s: next((r for r in rows if r["sampler"] == s), None) for s in samplers}
            kept = {s: r for s, r in first.items() if r is not None}
            if kept:
                _traces(kept, folder / f"{name}.png")
        _comparison(rows, folder / "comparison.png")


def _traces(kept: dict[str, Any], path: Path) -> None:
    figure, axes = plt.subplots(len(kept), 1, figsize=(10, 2.6 * len(kept)), squeeze=False)
    for axis, (name, row) in zip(axes[:, 0], kept.items(), strict=True):
        points = np.asarray(row["points"])
        where = np.linspace(0, row["num_slow"], len(points))
        for k, (label, colour) in enumerate(COLOURS):
            axis.plot(where, np.exp(points[:, k]), ".", ms=2, color=colour, label=label)
        axis.set(title=name, yscale="log", ylim=(3e-3, 30))
    axes[-1, 0].set_xlabel("slow evaluations")
    axes[0, 0].legend(ncol=3, markerscale=5)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _comparison(rows: Rows, path: Path) -> None:
    """All chains of a sampler together, with 95 % intervals over chains."""
    by_name = {n: [r for r in rows if r["sampler"] == n] for n in names()}
    by_name = {name: found for name, found in by_name.items() if found}
    figure, axes = plt.subplots(1, 3, figsize=(13, 0.35 * len(by_name) + 1.4), sharey=True)
    slow = "per 100,000 slow evaluations"
    told = {
        "ess": ("effective draws of log sigma", slow),
        "switches": ("switches of mode", slow),
        "seconds": ("effective draws of log sigma", "per CPU second"),
    }
    for axis, what in zip(axes, RATES, strict=True):
        for place, found in enumerate(by_name.values()):
            one = rate(found, what)
            axis.plot(one.value, place, "o", color="C0")
            if np.isfinite(one.log_error):
                reach = one.value * np.exp(1.96 * one.log_error * np.array([-1, 1]))
                axis.plot(reach, [place, place], color="C0")
        axis.set(title=told[what][0], xlabel=told[what][1], xscale="log")
    axes[0].set_yticks(range(len(by_name)), list(by_name))
    axes[0].invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
