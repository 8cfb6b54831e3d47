"""What the runs amount to: a CSV with one row a run, a Markdown table and a picture with one entry a sampler."""

import math
import statistics
from typing import NamedTuple

import problem
from processes import read_rows, write_rows
from roster import ROSTER, settings

COLUMNS = [
    "sampler",
    "seed",
    "weight",
    "log_z",
    "weight_error",
    "log_z_error",
    "num_evaluations",
    "cpu_s",
    "wall_s",
    "first_cpu_s",
    "versions",
    "machine",
    "failure",
]
NUMBERS = COLUMNS[1:10]


class Result(NamedTuple):
    name: str
    num_seeds: int
    weight_error: float
    log_z_error: float
    cpu_s: float
    wall_s: float
    first_cpu_s: float
    num_evaluations: float
    versions: str
    failure: str


def read(path):
    return read_rows(path, NUMBERS)


def write(path, rows):
    order = list(ROSTER)
    rows = sorted(rows, key=lambda row: (order.index(row["sampler"]), row.get("seed", 0)))
    write_rows(path, COLUMNS, rows)


def errors(weight, log_z):
    return {"weight_error": abs(weight - problem.WEIGHT), "log_z_error": abs(log_z - problem.LOG_Z)}


def summarise(rows):
    results = []
    for name in ROSTER:
        mine = [row for row in rows if row["sampler"] == name]
        if not mine:
            continue
        results.append(
            Result(
                name,
                sum(not row["failure"] for row in mine),
                _rms([row["weight_error"] for row in mine]),
                _rms([row["log_z_error"] for row in mine]),
                *(
                    statistics.median([row[column] for row in mine])
                    for column in ("cpu_s", "wall_s", "first_cpu_s", "num_evaluations")
                ),
                mine[0]["versions"],
                mine[0]["failure"],
            )
        )
    return results


def _rms(values):
    return math.sqrt(statistics.fmean(value**2 for value in values))


def markdown(rows):
    lines = [
        f"# Samplers side by side: {problem.NUM_DIMS} dimensions, two modes ten standard deviations apart",
        "",
        f"Weights {problem.WEIGHT} and {1 - problem.WEIGHT}, log Z = {problem.LOG_Z}. "
        "Errors are root mean squares over the seeds. CPU seconds count all threads and are the median of runs after "
        "the first, which also imports and compiles and has a column of its own. Evaluations are of the density or its "
        "gradient, where known.",
        "",
        "| sampler | weight error | log Z error | CPU s | wall s | first run, CPU s | evaluations | seeds | versions |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    results = summarise(rows)
    for result in results:
        label = ROSTER[result.name].label
        if result.failure:
            message = result.failure.replace("|", "\\|")
            lines.append(f"| {label} | failed: {message} | | | | | | | |")
        else:
            lines.append(
                f"| {label} | {result.weight_error:.3f} | {_number(result.log_z_error, '.3f')} | {result.cpu_s:.2f} "
                f"| {result.wall_s:.2f} | {result.first_cpu_s:.1f} | {_number(result.num_evaluations, ',.0f')} "
                f"| {result.num_seeds} | {result.versions} |"
            )
    machines = sorted({row["machine"] for row in rows if not row["failure"]})
    lines += ["", f"Measured on: {'; '.join(machines)}.", "", "What each one was given:", ""]
    lines += [f"- {settings(result.name)}" for result in results]
    return "\n".join(lines) + "\n"


def _number(value, form):
    return "none" if math.isnan(value) else format(value, form)


def draw(rows, path):
    import matplotlib.pyplot as plt

    results = [result for result in summarise(rows) if not result.failure]
    if not results:
        return
    figure, panels = plt.subplots(
        1, 2, figsize=(11, 4.5), sharex=True, sharey=True, layout="constrained"
    )
    for axes, column, title in zip(
        panels, ("weight_error", "log_z_error"), ("the mode weight", "log Z"), strict=True
    ):
        for result, marker in zip(results, "DosvP^<X>*h", strict=False):
            # A sampler without log Z is a NaN here, which draws nothing but keeps its colour.
            axes.plot(
                result.cpu_s,
                getattr(result, column),
                marker,
                markersize=8,
                label=ROSTER[result.name].label,
            )
        axes.set(xscale="log", yscale="log", ylim=(1e-3, 1))
        axes.set(xlabel="CPU seconds, after compilation", ylabel=f"error of {title} (rms)")
        axes.grid(which="both", alpha=0.2)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)
