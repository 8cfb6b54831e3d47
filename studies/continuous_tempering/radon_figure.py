"""Figure 3b: estimates of log Z against run time."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from pages import STYLE, Rows, save

COLOURS = {"numpyro": "C2", "pymc": "C3"}
WIDE = 3  # standard errors, as in the paper


def draw(rows: Rows, folder: Path) -> None:
    """Joint CT as it draws, with anneals, bounds and SMC for comparison."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(8.5, 4.6))
        _reference(axis, reference(rows))
        _bounds(axis, rows)
        for front, colour in COLOURS.items():
            own = [row for row in rows if (row["problem"], row["sampler"]) == (front, "joint-ct")]
            if own:
                seconds, value, error = mean_curve(own, first_draw(rows, front))
                low, high = value - WIDE * error, value + WIDE * error
                axis.plot(seconds, value, color=colour, label=f"joint CT, {front}")
                axis.fill_between(seconds, low, high, color=colour, alpha=0.2, lw=0)
            for row in rows:
                if (row["problem"], row["sampler"]) == (front, "joint-ct diagonal"):
                    _point(axis, row, "D", colour, f"the same from a diagonal fit, {front}")
        for row in rows:
            if row["kind"] == "radon-smc":
                _point(axis, row, "s", "C4", "PyMC's SMC")
        axis.set(xlabel="seconds, compiling included", ylabel="log Z", xlim=(0, None))
        axis.legend(fontsize=8)
        save(figure, folder / "radon.png")


def first_draw(rows: Rows, front: str) -> float | None:
    """CPU seconds until there are draws, from a run that makes hardly any."""
    starts = [r for r in rows if (r["problem"], r["sampler"]) == (front, "joint-ct start")]
    return starts[0]["cpu"] if starts else None


def mean_curve(rows: Rows, start: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds, the mean over runs and its standard error by their own: runs are too few for their spread.

    Draws take equal times. They begin after that share of a run which `start` is of its CPU seconds, and where that is not
    known after warm-up's share of sampling.
    """
    seconds = []
    for row in rows:
        wall, draws = row["wall"], row["num_draws"]
        if start is None:
            began = wall - row["phases"]["sampling"] * draws / (row["num_warmup"] + draws)
        else:
            began = wall * min(1.0, start / row["cpu"])
        seconds.append(began + np.array(row["curve"])[:, 0] / draws * (wall - began))
    values = np.array([np.array(row["curve"])[:, 1] for row in rows])
    own = np.nan_to_num([np.array(row["curve"])[:, 2] for row in rows])
    error = np.sqrt(np.sum(own**2, axis=0)) / len(rows)
    return np.mean(seconds, axis=0), values.mean(0), error


def _point(axis: Any, row: dict[str, Any], mark: str, colour: str, label: str) -> None:
    value, error = row["log_evidence"]
    told = {"fmt": mark, "ms": 4, "capsize": 3, "lw": 1, "color": colour, "label": label}
    axis.errorbar([row["wall"]], [value], [WIDE * error], **told)


def reference(rows: Rows) -> dict[str, Any] | None:
    """Those anneals whose weights are worth most."""
    anneals = [row for row in rows if row["kind"] == "radon-ais"]
    return max(anneals, key=lambda row: row["kish"], default=None)


def _reference(axis: Any, row: dict[str, Any] | None) -> None:
    if row is None:
        return
    value, error = row["log_evidence"]
    label = f"{row['num_anneals']} anneals, {row['sampler'].split()[1]} temperatures"
    axis.axhline(value, color="k", ls="--", lw=1, label=label)
    axis.axhspan(value - WIDE * error, value + WIDE * error, color="k", alpha=0.1, lw=0)


def _bounds(axis: Any, rows: Rows) -> None:
    """The final bound of each family."""
    for name, style, label in (("joint-ct", "-.", "dense"), ("joint-ct diagonal", ":", "diagonal")):
        found = [row["bound"][0] for row in rows if row["sampler"] == name]
        if found:
            axis.axhline(
                np.mean(found), color="C0", ls=style, lw=1, label=f"bound of ADVI, {label}"
            )
