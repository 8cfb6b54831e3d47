"""Run a sampler with the paper's settings for some seconds, and say what it is worth.

The run goes through `sample` with a checkpoint: a first call compiles and makes the first draws, and
further calls append as many as there is time for. Seconds are those of drawing alone. Chains start at
draws from the prior: the paper starts at the prior's mean, at half and at twice it, which for the
normal are one and the same point, and says nothing of over-dispersion for the others.
"""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from experiment import Experiment, Result
from mixing import curve, worth
from problems import problem_named
from settings import NUM_CHAINS, sampler_named

import temperance as tp
from temperance.diagnostics import effective_size, ess_between
from temperance.runtime import scope

# Sweeps a kept draw: those of the normal are so cheap that keeping them would be most of the work.
THIN = {"normal": 8, "gp": 1}
MOST_DRAWS = 40_000
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


def drawn_for(seconds: float, call: Callable[[int, Path], Any]) -> Result:
    """Draws made in about `seconds`, with the wall and CPU time of drawing them.

    The first call, of one draw, is not counted: it compiles and, with a method by name, warms up.
    """
    with TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "run.zarr"
        began = time.perf_counter()
        tree = call(1, checkpoint)
        first = time.perf_counter() - began
        wall = cpu = 0.0
        done, more = 1, 7
        while wall < seconds and done < MOST_DRAWS:
            before = time.process_time()
            target = min(done + more, MOST_DRAWS)
            tree = call(target, checkpoint)
            wall += tree.attrs["seconds"]
            cpu += time.process_time() - before
            # Four times as many again at most: the first calls are too short to know the pace.
            more = int(np.clip((seconds - wall) * (target - 1) / wall, 1, 4 * target))
            done = target
    leaves = [np.asarray(tree["posterior"][name]) for name in tree["posterior"].data_vars]
    draws = np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=-1)
    share = (done - 1) / done
    result = {
        "draws": draws,
        "num_draws": done,
        "wall": wall,
        "cpu": cpu,
        "first_call": first,
        "rows": float(tree.attrs["num_row_evaluations"]) * share,
        "acceptance": float(np.mean(tree["sample_stats"]["acceptance_rate"])),
    }
    if "num_cubes" in tree.attrs:
        result["cubes"] = float(tree.attrs["num_cubes"]) * share
    tempering = tree["tempering"] if "tempering" in tree.children else {}
    for name in ("transition_rate", "swap_acceptance"):
        if name in tempering:
            result[name] = np.asarray(tempering[name]).tolist()
    return result
