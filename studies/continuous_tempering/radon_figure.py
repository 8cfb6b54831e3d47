"""Figure 3b: estimates of log Z against run time."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from pages import STYLE, Rows, save

COLOURS = {
    ("numpyro", "joint-ct"): "C2", ("pymc", "joint-ct"): "C3",
    ("numpyro", "joint-ct diagonal"): "C8", ("pymc", "joint-ct diagonal"): "C1",
}  # fmt: skip
WIDE = 3  # standard errors, as in the paper


def draw(rows: Rows, folder: Path) -> None:
    """Joint CT as it draws, with anneals, bounds and SMC for comparison."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(8.5, 4.6))
        for row in rows:
            if row["kind"] == "radon-smc":
                _point(axis, row)
        _reference(axis, [row for row in rows if row["kind"] == "radon-ais"])
        _bounds(axis, rows)
        for (front, name), colour in COLOURS.items():
            own = [row for row in rows if (row["problem"], row["sampler"]) == (front, name)]
            if own:
                seconds, value, error = mean_curve(own, first_draw(rows, front))
                axis.plot(seconds, value, color=colour, label=f"{name}, {front}")
                wide = WIDE * error
                axis.fill_between(
                    seconds, value - wide, value + wide, color=colour, alpha=0.2, lw=0
                )
        axis.set(xlabel="seconds, compiling included", ylabel="log Z")
        axis.legend(fontsize=8)
        save(figure, folder / "radon.png")


def first_draw(rows: Rows, front: str) -> float | None:
    """Seconds of compiling and warming up, from a run that does little else."""
    starts = [r for r in rows if (r["problem"], r["sampler"]) == (front, "joint-ct start")]
    return starts[0]["phases"]["sampling"] if starts else None


def mean_curve(rows: Rows, start: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds, the mean over runs and its standard error: that of one run where there is one.

    Draws take equal times, after a start that is measured apart or, where it is not, takes warm-up's share.
    """
    seconds = []
    for row in rows:
        sampling, draws = row["phases"]["sampling"], row["num_draws"]
        share = row["num_warmup"] / (row["num_warmup"] + draws)
        began = share * sampling if start is None else min(start, sampling)
        part = np.array(row["curve"])[:, 0] / draws
        seconds.append(row["wall"] - sampling + began + part * (sampling - began))
    values = np.array([np.array(row["curve"])[:, 1] for row in rows])
    if len(rows) > 1:
        error = values.std(0, ddof=1) / np.sqrt(len(rows))
    else:
        error = np.nan_to_num(np.array(rows[0]["curve"])[:, 2])
    return np.mean(seconds, axis=0), values.mean(0), error


def _point(axis: Any, row: dict[str, Any]) -> None:
    value, error = row["log_evidence"]
    told = {"fmt": "s", "ms": 4, "capsize": 3, "color": "C4", "label": "PyMC's SMC"}
    axis.errorbar([row["wall"]], [value], [WIDE * error], **told)


def _reference(axis: Any, rows: Rows) -> None:
    if not rows:
        return
    row = max(rows, key=lambda row: int(row["sampler"].split()[1]))
    value, error = row["log_evidence"]
    axis.axhline(value, color="k", ls="--", lw=1, label=f"100 x {row['sampler']}")
    axis.axhspan(value - WIDE * error, value + WIDE * error, color="k", alpha=0.1, lw=0)


def _bounds(axis: Any, rows: Rows) -> None:
    """The final bound of each family."""
    for name, style, label in (("joint-ct", "-.", "dense"), ("joint-ct diagonal", ":", "diagonal")):
        found = [row["bound"][0] for row in rows if row["sampler"] == name]
        if found:
            axis.axhline(
                np.mean(found), color="C0", ls=style, lw=1, label=f"bound of ADVI, {label}"
            )
