"""Figures 2 to 5, and what the paper has not: visits to modes and effective sizes, over several seeds.

An experiment is one chain of one sampler (neal_samplers.py), from a draw of the prior, for 300,000 slow evaluations at
scale 1. Every 300th point or so is kept.
"""

from pathlib import Path

import neal_chains
import numpy as np
from demonstration_figure import draw
from demonstration_tables import write
from experiment import Experiment, Result
from modes import facts
from neal_problem import NUM_INPUTS, NUM_ROWS
from neal_samplers import names, setting

from temperance.programs.scope import scope

NUM_SLOW, NUM_SEEDS = 300_000, 10
# CPU seconds at scale 1, for the time left.
SECONDS = {"spectral": 85.0, "extra": 100.0}
USUAL = 38.0
COMPILATION = {"neal": 10.0}
# At least so many slow evaluations; of a smoke test few.
LEAST, FEW = 2000, 240
PLOTTED = 1000


def experiments() -> list[Experiment]:
    return [
        Experiment(
            "neal", "synthetic", NUM_ROWS, NUM_INPUTS, "metropolis", name, seconds(name), seed
        )
        for seed in range(NUM_SEEDS)
        for name in names()
    ]


def smoke() -> list[Experiment]:
    share = FEW / NUM_SLOW
    return [
        Experiment("neal", "synthetic", NUM_ROWS, NUM_INPUTS, "metropolis", n, share * seconds(n))
        for n in (
            "metropolis 0.25",
            "one at a time",
            "extra",
            "spectral grid",
            "cholesky exchangeable",
        )
    ]


def needs_data(row: Experiment) -> bool:  # noqa: ARG001
    return False


def seconds(name: str) -> float:
    return SECONDS.get(name.split()[0], USUAL)


def run_neal(row: Experiment, data: Path | None) -> Result:  # noqa: ARG001
    """One chain."""
    num_slow = round(NUM_SLOW * row.seconds / seconds(row.sampler))
    with scope("double"):
        found = neal_chains.run(setting(row.sampler), num_slow, row.seed)
    points = found.pop("points")
    thin = max(1, len(points) // PLOTTED)
    return found | facts(points) | {"points": np.round(points[::thin], 3).tolist()}


RUNNERS = {"neal": run_neal}
__all__ = ["COMPILATION", "RUNNERS", "draw", "experiments", "needs_data", "smoke", "write"]
