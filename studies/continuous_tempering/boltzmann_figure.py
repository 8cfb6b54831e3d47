"""Figure 2: three panels of errors relative to the base's against run time."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from boltzmann_curves import curves
from boltzmann_problem import MOMENTS
from pages import STYLE, Rows, save

TITLES = {"log_z": "log Z", "mean": "mean", "covariance": "covariance"}
COLOURS = {"ais": "C0", "st": "C1", "gibbs-ct": "C2", "joint-ct": "C3", "gibbs-profile": "C4"}
WIDE = 3  # standard errors, as in the paper


def draw(rows: Rows, folder: Path) -> None:
    """Means over runs with a band of three standard errors; AIS as points, one for each number of temperatures."""
    lines = curves(rows)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(12.0, 3.8))
        for axis, moment in zip(axes, MOMENTS, strict=True):
            for kind, colour in COLOURS.items():
                own = [line for line in lines if line["method"].split()[0] == kind]
                for long in (False, True):
                    some = [line for line in own if line["method"].endswith("long") == long]
                    if some:
                        _curve(axis, kind, colour, moment, some, long)
            axis.axhline(1.0, color="k", ls="--", lw=0.8)
            axis.set(title=TITLES[moment], xlabel="CPU seconds", xscale="log", yscale="log")
        axes[0].set_ylabel("error / that of the base")
        axes[0].legend()
        save(figure, folder / "boltzmann.png")


def _curve(axis: Any, kind: str, colour: str, moment: str, lines: Rows, long: bool) -> None:
    seconds, mean, error = (
        np.array([line[name] for line in lines]) for name in ("seconds", moment, f"{moment}_error")
    )
    wide = np.nan_to_num(WIDE * error)
    # A logarithmic axis has no place for what is below zero.
    low = np.maximum(mean - wide, 0.1 * mean)
    if kind == "ais":
        bars = np.stack([mean - low, wide])
        axis.errorbar(
            seconds, mean, bars, color=colour, marker="o", ms=4, lw=1, capsize=3, label=kind
        )
    elif long:
        axis.plot(seconds, mean, color=colour, ls=":", label=f"{kind}, long runs")
    else:
        axis.plot(seconds, mean, color=colour, label=kind)
        axis.fill_between(seconds, low, mean + wide, color=colour, alpha=0.2, lw=0)
