"""Figure 4: tables and figure of the autoencoders' images, from what was kept of a run on an accelerator.

`iwae.py` makes the real run, which no processor does in reasonable time, and `results/iwae/` keeps it. The experiments
here are ten images of each model in single precision, which show that the same code runs anywhere.
"""

import contextlib
import io
from pathlib import Path
from typing import Any

import jax
import numpy as np
from experiment import Experiment, Result
from iwae import CHAINS, small, study
from iwae_figure import draw_kept
from iwae_model import DIMENSION, NAMES, load, made
from iwae_results import read_models, read_speed
from pages import Rows
from sections import table

METHODS = {"ais": "AIS", "gibbs": "Gibbs CT", "joint": "joint CT", "st": "ST"}
LOOPS = {
    "matmul": "six products alone", "bare": "bare loop", "values": "bare loop with values",
    "gibbs": "Gibbs CT", "ais": "AIS",
}  # fmt: skip
# Moves of a chain at which an anneal has a point; both ends of an anneal are no moves.
TRANSITIONS = (100, 200, 500, 1000, 2000)
COMPILATION = {"iwae": 40.0}


def experiments() -> list[Experiment]:
    few = small().num_images
    return [Experiment("iwae", name, few, DIMENSION, "hmc", "all", 0.0) for name in NAMES]


def smoke() -> list[Experiment]:
    """Networks that nobody trained, which need no data."""
    return [Experiment("iwae", "made", small().num_images, 5, "hmc", "all", 0.1)]


def needs_data(row: Experiment) -> bool:
    return row.problem != "made"


def run_images(row: Experiment, data: Path | None) -> Result:
    """Everything about a few images."""
    if needs_data(row):
        assert data is not None
        networks = load(data / "iwae" / row.problem)
    else:
        networks = made(jax.random.key(row.seed))
    with contextlib.redirect_stdout(io.StringIO()):
        found = study(networks, small(), row.problem if row.problem in NAMES else NAMES[0])
    return {key: found[key] for key in ("device", "bounds", "rows")}


def course(found: dict[str, Any], method: str) -> np.ndarray:
    """Moves, seconds, and the mean over runs of estimate minus lower bound with its standard error.

    Seconds are medians: the first run of a program may be slow.
    """
    own = [row for row in found["rows"] if row["method"] == method]
    points = []
    for transitions in sorted({row["transitions"] for row in own}):
        here = [row for row in own if row["transitions"] == transitions]
        away = np.array([row["total"] for row in here]) - found["bounds"]["lower"]
        error = away.std(ddof=1) / np.sqrt(away.size)
        seconds = np.median([row["seconds"] for row in here])
        points.append((transitions, seconds, away.mean(), error))
    return np.array(points)


def draw(rows: Rows, folder: Path) -> None:  # noqa: ARG001
    """Of the accelerator's runs alone."""
    found = read_models(NAMES)
    if found:
        panels = [
            (one["model"], one["bounds"], {m: course(one, m) for m in METHODS}) for one in found
        ]
        draw_kept(panels, METHODS, folder / "iwae.png")


def write(rows: Rows, folder: Path) -> list[str]:  # noqa: ARG001
    """Estimates at comparable run times, throughput, and the few images of this machine."""
    text = []
    for found in read_models(NAMES):
        text += _estimates(found)
    return [*text, *_throughput(), *_here(rows)]


def _estimates(found: dict[str, Any]) -> list[str]:
    bounds = found["bounds"]
    words = (
        f"{found['device']}. Sums over {bounds['num_images']} images, minus the lower bound of bidirectional Monte Carlo, "
        f"{bounds['lower']:.2f} (upper {bounds['upper']:.2f}); importance weights of the base are at "
        f"{bounds['log_zeta'] - bounds['lower']:.0f}. Mean over ten runs and its standard error, after seconds in brackets."
    )
    lines = [
        (METHODS[m], *(_cell(course(found, m), n - 2 if m == "ais" else n) for n in TRANSITIONS))
        for m in METHODS
    ]
    head = ("method", *(f"{n} moves" for n in TRANSITIONS))
    return table(f"Images of {found['model']}", words, head, lines)


def _cell(points: np.ndarray, transitions: int) -> str:
    for moves, seconds, away, error in points:
        if moves == transitions:
            return f"{away:.1f} ± {error:.1f} ({seconds:.2f})"
    return ""


def _throughput() -> list[str]:
    rows = read_speed()
    counts = sorted({row["chains"] for row in rows})
    rates = {(row["loop"], row["chains"]): row for row in rows}
    lines = [
        (
            words,
            *(
                f"{rates[loop, n]['steps_per_second']:.0f} ({rates[loop, n]['tflops']:.0f})"
                if (loop, n) in rates
                else ""
                for n in counts
            ),
        )
        for loop, words in LOOPS.items()
    ]
    if not rows:
        return []
    words = f"{rows[0]['device']}, {rows[0]['model']}. Leapfrog steps a second of all chains together (TFLOP/s)."
    return table("Images: throughput", words, ("loop", *(f"{n} chains" for n in counts)), lines)


def _here(rows: Rows) -> list[str]:
    lines = []
    for row in rows:
        bounds = row["bounds"]
        ends = [f"{course(row, m)[-1, 2]:+.1f}" for m in ("ais", *CHAINS)]
        numbers = (f"{bounds[name]:.1f}" for name in ("lower", "upper"))
        lines.append((row["problem"], row["device"], row["num_rows"], *numbers, *ends))
    head = ("model", "device", "images", "lower", "upper", *(METHODS[m] for m in ("ais", *CHAINS)))
    text = "Estimates minus the lower bound, with 50 betas or 30 moves: too few for more than to see that it runs."
    return table("Images: a few of them here", text, head, lines)


RUNNERS = {"iwae": run_images}
__all__ = ["COMPILATION", "RUNNERS", "draw", "experiments", "needs_data", "smoke", "write"]
