"""Fifty modes: how many of them a sampler finds, and whether it visits them equally often.

The mode of a draw is its largest coordinate, if that is more than 1 above the next. Counts of modes are compared
with equal ones by chi-square. Draws of one chain are not independent: with N draws of which the indicators of
modes are worth n_eff, the median of the effective sizes over modes that were seen, counts are multiplied by
n_eff / N first. Labels are exchangeable, so equal counts are exact, whatever the rows.

    plain    HMC alone
    pt       powers from 0.004, where the modes have grown together, to 1
    spt      subsamples from 500 rows to all
    ee       the equi-energy sampler on all rows
    mintee   with batches on all chains but the coldest
"""

from pathlib import Path
from typing import Any

import numpy as np
from drawing import drawn_for
from energy_noise import reasons
from experiment import Experiment, Result
from fifty_problem import NUM_COMPONENTS, fifty_modes
from kernels import energy_options
from scipy.stats import chi2

import temperance as tp
from temperance.diagnostics import effective_size

NUM_ROWS = 100_000
CLEAR = 1.0
SECONDS = 3600.0
SAMPLERS = ("plain", "pt", "spt", "ee", "mintee")
NUM_WARMUP = 100
HOTTEST, HOTTEST_ROWS = 0.004, 500
NUM_RUNGS, NUM_SIZES = 14, 21


def experiments() -> list[Experiment]:
    """One row a sampler, and one of what the paper's settings imply."""
    return [
        Experiment("reasons", "fifty", NUM_ROWS, NUM_COMPONENTS, "none", "none", 0.0),
        *(Experiment("modes", "fifty", NUM_ROWS, NUM_COMPONENTS, "hmc", name, SECONDS) for name in SAMPLERS),
    ]  # fmt: skip


def options_of(name: str, num_rows: int) -> dict[str, Any]:
    """What `sample` is told beside the method's name."""
    if name == "pt":
        steps = np.arange(NUM_RUNGS) / (NUM_RUNGS - 1)
        return {"betas": (HOTTEST ** (1 - steps)).tolist(), "sweeps_per_draw": 1}
    if name == "spt":
        steps = np.arange(NUM_SIZES) / (NUM_SIZES - 1)
        shares = (HOTTEST_ROWS / num_rows) ** (1 - steps)
        return {"sizes": np.round(num_rows * shares).astype(int).tolist(), "sweeps_per_draw": 1}
    return energy_options(name, num_rows) if name in ("ee", "mintee") else {}


def run_reasons(row: Experiment) -> Result:
    """Why Table 2 is no reference."""
    return reasons(row.num_rows)


def run_modes(row: Experiment) -> Result:
    """One sampler, one chain."""
    problem = fifty_modes(row.num_rows)

    def call(num_draws: int, checkpoint: Path) -> Any:
        return tp.sample(
            problem,
            row.sampler,
            tp.hmc(),
            num_draws=num_draws,
            num_warmup=NUM_WARMUP,
            num_chains=1,
            seed=row.seed,
            checkpoint=checkpoint,
            progress=False,
            **options_of(row.sampler, row.num_rows),
        )

    timed = drawn_for(row.seconds, call)
    return timed | visits(timed.pop("draws")[0])


def visits(draws: np.ndarray) -> Result:
    """Modes of draws (draw, 50): how many, how evenly, how often they change."""
    ordered = np.sort(draws, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > CLEAR
    labels = np.argmax(draws, axis=1)
    counts = np.bincount(labels[clear], minlength=draws.shape[1])
    seen = np.flatnonzero(counts)
    found: Result = {
        "num_modes": int(seen.size),
        "share_clear": float(clear.mean()),
        "num_changes": int(np.sum(labels[1:] != labels[:-1])),
        "counts": counts.tolist(),
        "largest": float(np.median(ordered[:, -1])),
        "label_ess": float("nan"),
        "chi_square": float("nan"),
        "p_value": float("nan"),
    }
    if seen.size > 1 and len(draws) >= 8:
        indicators = (labels[:, None] == seen)[None].astype(float)
        size = float(np.nanmedian(effective_size(indicators)))
        scaled = counts * size / counts.sum()
        mean = size / counts.size
        statistic = float(np.sum((scaled - mean) ** 2) / mean)
        found |= {
            "label_ess": size,
            "chi_square": statistic,
            "p_value": float(chi2.sf(statistic, counts.size - 1)),
        }
    return found
