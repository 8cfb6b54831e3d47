"""Fifty modes: how many of them a sampler finds, and whether it visits them equally often.

`modes.py` says what a mode is and how visits are counted.

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
from modes import visits

import temperance as tp

NUM_ROWS = 100_000
SECONDS = 3600.0
SAMPLERS = ("plain", "pt", "spt", "ee", "mintee")
NUM_WARMUP, NUM_CHAINS = 100, 4
HOTTEST, HOTTEST_ROWS = 0.004, 500
NUM_RUNGS, NUM_SIZES = 14, 21


def experiments() -> list[Experiment]:
    """One row a sampler, and one of what the paper's settings imply."""
    return [
        Experiment("reasons", "fifty", NUM_ROWS, NUM_COMPONENTS, "none", "none", 0.0),
        # On two cores hours go by before any of them has been everywhere; `accelerator.py` is for that.
        *(Experiment("modes", "fifty", NUM_ROWS, NUM_COMPONENTS, "hmc", name, SECONDS, least=0.1) for name in SAMPLERS),
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
    return energy_options(name) if name in ("ee", "mintee") else {}


def run_reasons(row: Experiment) -> Result:
    """Why Table 2 is no reference."""
    return reasons(row.num_rows)


def run_modes(row: Experiment) -> Result:
    """One sampler, four chains."""
    problem = fifty_modes(row.num_rows)

    def call(num_draws: int, checkpoint: Path) -> Any:
        return tp.sample(
            problem,
            row.sampler,
            tp.hmc(),
            num_draws=num_draws,
            num_warmup=NUM_WARMUP,
            num_chains=NUM_CHAINS,
            seed=row.seed,
            checkpoint=checkpoint,
            progress=False,
            **options_of(row.sampler, row.num_rows),
        )

    timed = drawn_for(row.seconds, call)
    return timed | visits(timed.pop("draws"))
