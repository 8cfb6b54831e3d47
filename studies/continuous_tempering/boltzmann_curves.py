"""Errors relative to the base's against run time, averaged over systems and repetitions, as CSV and as a table."""

from pathlib import Path
from typing import Any

import numpy as np
from boltzmann_problem import MOMENTS
from experiment import write_csv
from pages import Rows
from sections import table

ORDER = ("exact", "ais", "st", "gibbs-ct", "gibbs-profile", "joint-ct")
# Run times of the table, as shares of the longest; a method's value is its last one up to there.
SHARES = (0.1, 0.5, 1.0)


def methods(rows: Rows) -> list[str]:
    """Methods in the order of the legend."""

    def place(name: str) -> tuple[int, int, str]:
        kind, *more = name.split()
        return ORDER.index(kind), int(more[0]) if more and more[0].isdigit() else 0, name

    return sorted({row["sampler"] for row in rows}, key=place)


def curves(rows: Rows) -> list[dict[str, Any]]:
    """For each method and run time the means over all runs, and their standard errors."""
    found = []
    for name in methods(rows):
        runs = np.array(
            [curve for row in rows if row["sampler"] == name for curve in row["curves"]]
        )
        # (run, point, [seconds, ratios]): points are at equal shares of a run, and nearly at equal times.
        error = (
            runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
            if len(runs) > 1
            else np.full(runs.shape[1:], np.nan)
        )
        for mean, spread in zip(runs.mean(axis=0), error, strict=True):
            line: dict[str, Any] = {"method": name, "runs": len(runs), "seconds": float(mean[0])}
            for i, moment in enumerate(MOMENTS, 1):
                line |= {moment: float(mean[i]), f"{moment}_error": float(spread[i])}
            found.append(line)
    return found


def write(rows: Rows, folder: Path) -> list[str]:
    """boltzmann.csv, the table of ratios at three run times, and what became of the moves."""
    lines = curves(rows)
    write_csv(folder / "boltzmann.csv", lines)
    longest = np.nanmax([li["seconds"] for li in lines if not li["method"].endswith("long")])
    shown = []
    for name in methods(rows):
        own = [line for line in lines if line["method"] == name]
        picked = (
            own[-1:] if len(name.split()) > 1 else [_at(own, share * longest) for share in SHARES]
        )
        for line in picked:
            values = (_number(line[m], line[f"{m}_error"]) for m in MOMENTS)
            shown.append((name, line["runs"], _number(line["seconds"]), *values))
    head = ("method", "runs", "CPU seconds", "log Z", "mean", "covariance")
    text = "Errors divided by those of the base, means over runs with their standard errors."
    return table("Boltzmann machine relaxations", text, head, shown) + _moves(rows)


def _number(value: float, error: float | None = None) -> str:
    """Two decimals; nothing for what has no value, or no error."""
    if np.isnan(value):
        return ""
    return f"{value:.2f}" if error is None or np.isnan(error) else f"{value:.2f} ± {error:.2f}"


def _at(lines: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    before = [line for line in lines if line["seconds"] <= 1.05 * seconds]
    return before[-1] if before else lines[0]


def _moves(rows: Rows) -> list[str]:
    shown = []
    for name in methods([row for row in rows if "steps" in row]):
        own = [row for row in rows if row["sampler"] == name]

        def mean(key: str, own: Rows = own) -> Any:
            values = [row[key] for row in own if key in row]
            return float(np.mean(values)) if values else ""

        shown.append((
            name, mean("steps"), mean("microseconds"), mean("acceptance"), mean("trips"),
            mean("kish"), mean("sd_log_weight"),
        ))  # fmt: skip
    head = ("method", "moves a run", "microseconds a move", "accepted", "round trips a run",
            "Kish's size of 100 anneals", "sd of log weights")  # fmt: skip
    return table("Boltzmann machine relaxations: moves", "Means over runs.", head, shown)
