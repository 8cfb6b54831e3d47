"""Figures 2 to 5 as trace plots, and effective sizes and switches of every sampler."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from demonstration_tables import rates
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
    shown = [n for n in names() if any(r["sampler"] == n for r in rows)]
    figure, axes = plt.subplots(1, 2, figsize=(10, 0.35 * len(shown) + 1.4), sharey=True)
    titles = {"ess": "effective draws of log sigma", "switches": "switches of mode"}
    for axis, (what, title) in zip(axes, titles.items(), strict=True):
        for place, name in enumerate(shown):
            values = rates([r for r in rows if r["sampler"] == name], what)
            axis.plot(values, np.full(len(values), place), "o", ms=4, color="C0", alpha=0.35)
            axis.plot(np.mean(values), place, "|", ms=16, mew=2, color="C3")
        axis.set(title=title, xlabel="per 100,000 slow evaluations")
    axes[0].set_yticks(range(len(shown)), shown)
    axes[0].invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
