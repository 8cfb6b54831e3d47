"""Run a sampler with the paper's settings for some seconds, and say what it is worth.

Chains start at draws from the prior: the paper starts at the prior's mean, at half and at twice it, which for the
normal are one and the same point, and says nothing of over-dispersion for the others.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from drawing import drawn_for
from experiment import Experiment, Result
from mixing import curve, worth
from problems import problem_named
from settings import NUM_CHAINS, sampler_named

import temperance as tp
from temperance.estimates.diagnostics import effective_size, ess_between
from temperance.programs.scope import scope

# Sweeps a kept draw: those of the normal are so cheap that keeping them would be most of the work.
THIN = {"normal": 8, "gp": 1}
SPREAD_CHAINS = 60


def run_draws(row: Experiment) -> Result:
    """A sampler with the paper's settings, three chains."""
    thin = THIN[row.problem]
    timed = drawn_for(row.seconds, _call(row, NUM_CHAINS, thin))
    draws = timed.pop("draws")
    return timed | worth(draws[:, draws.shape[1] // 2 :]) | {"curve": curve(draws, thin)}


def run_spread(row: Experiment) -> Result:
    """The paper's effective size in many runs of three chains, beside ArviZ's.

    Sixty chains are twenty runs; each gives one effective size of either kind.
    """
    timed = drawn_for(row.seconds, _call(row, SPREAD_CHAINS, THIN[row.problem]))
    draws = timed.pop("draws")
    half = draws[:, draws.shape[1] // 2 :]
    runs = half.reshape(-1, NUM_CHAINS, *half.shape[1:])
    found = {
        name: [float(np.median(size(run))) for run in runs]
        for name, size in (("ess_between", ess_between), ("ess", effective_size))
    }
    return timed | found


def _call(row: Experiment, num_chains: int, thin: int) -> Callable[..., Any]:
    problem = problem_named(row.problem, row.num_rows, row.dimension, None)
    with scope("double"):
        sampler = sampler_named(row.sampler, problem, row.problem, row.move)

    def call(num_draws: int, checkpoint: Path) -> Any:
        return tp.sample(
            problem,
            sampler,
            num_draws=num_draws,
            num_warmup=0,
            num_chains=num_chains,
            seed=row.seed,
            sweeps_per_draw=thin,
            checkpoint=checkpoint,
            progress=False,
        )

    return call
