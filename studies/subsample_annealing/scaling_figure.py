"""Distances and relaxation against N, and durations over a barrier."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from urn_runs import CHURNS, Rows

mpl.use("agg")
import matplotlib.pyplot as plt

STYLE = {
    "axes.grid": True, "axes.spines.right": False, "axes.spines.top": False, "font.size": 9.5,
    "grid.alpha": 0.3, "legend.frameon": False,
}  # fmt: skip


def draw(rows: Rows, folder: Path) -> None:
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(13, 4))
        _budgets([r for r in rows if r["kind"] == "urn-scaling"], axes[0])
        _relaxations([r for r in rows if r["kind"] == "urn-relaxation"], axes[1])
        _modes([r for r in rows if r["kind"] == "two-modes"], axes[2])
        figure.tight_layout()
        figure.savefig(folder / "scaling.png", dpi=110)
        plt.close(figure)


def _budgets(rows: Rows, axis: plt.Axes) -> None:
    for name in dict.fromkeys(r["sampler"] for r in rows if r["sampler"] not in CHURNS):
        mine = sorted((r for r in rows if r["sampler"] == name), key=lambda r: r["num_rows"])
        values = np.array([r["distances"]["x"] for r in mine])
        axis.errorbar(
            [r["num_rows"] for r in mine],
            values[:, 0],
            1.96 * values[:, 1],
            fmt="o-",
            ms=4,
            label=name,
        )
    axis.set(
        xscale="log", ylim=(0, None), xlabel="balls", title="distance of x after 10 N assignments"
    )
    axis.legend()


def _relaxations(rows: Rows, axis: plt.Axes) -> None:
    mine = sorted(rows, key=lambda r: r["num_rows"])
    sizes = np.array([r["num_rows"] for r in mine])
    axis.plot(sizes, [r["relaxation"] for r in mine] / sizes**2, "o-")
    axis.set(xscale="log", ylim=(0, 1), xlabel="balls", title="relaxation of Gibbs, over N^2")


def _modes(rows: Rows, axis: plt.Axes) -> None:
    for k, barrier in enumerate(sorted({r["barrier"] for r in rows})):
        mine = sorted((r for r in rows if r["barrier"] == barrier), key=lambda r: r["num_rows"])
        sizes = [r["num_rows"] for r in mine]
        for what, style in (("needed", "o-"), ("promised", "--"), ("cold", ":")):
            label = f"barrier {barrier}" if what == "needed" else None
            axis.plot(sizes, [r[what] for r in mine], style, color=f"C{k}", ms=4, label=label)
    axis.set(
        yscale="log",
        xlabel="rows",
        title="duration: needed (-), promised (--), cold (..)",
        ylim=(1, 1e12),
    )
    axis.legend()
