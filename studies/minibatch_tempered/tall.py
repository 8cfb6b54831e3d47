"""Tall data side by side: worst effective samples a CPU second, and whether the moments are right.

NUTS, HMCECS, SGLD with control variates, and this library's exact mini-batch kernels on the same 100,000 rows. A
sampler is worth what it says of its worst coordinate; and a standard deviation that is wrong is told as its
ratio to the truth, the least and the largest over coordinates, beside the ratio's standard error of
1 / sqrt(2 ESS) in the worst coordinate.
"""

import jax
import numpy as np
from experiment import Experiment, Result
from kernels import exact_walker, walker
from tall_peers import BATCH, hmcecs, nuts, sgld
from tall_problem import DIMENSION, NUM_ROWS, mode_and_root, moments, tall
from walks import blocks, tuned_step

from temperance.diagnostics import effective_size
from temperance.runtime import scope

PEERS = {"nuts": nuts, "hmcecs": hmcecs, "sgld": sgld}
OURS = ("mcmc", "tuna", "delayed")
SECONDS = 600.0
NUM_TUNING = 300
COUNT, THIN = 50, {"mcmc": 1, "tuna": 20, "delayed": 5}


def experiments() -> list[Experiment]:
    """One row a sampler."""
    return [
        Experiment("tall", "tall", NUM_ROWS, DIMENSION, "own", name, SECONDS)
        for name in (*PEERS, *OURS)
    ]


def run_tall(row: Experiment) -> Result:
    """One sampler, one chain."""
    truth = moments(row.num_rows)
    with scope("double"):
        if row.sampler in PEERS:
            draws, timed = PEERS[row.sampler](row.num_rows, row.seed, row.seconds)
        else:
            draws, timed = _walked(row)
    sizes = effective_size(draws[None])
    ratio = draws.std(0, ddof=1) / truth["sd"]
    least = float(np.min(sizes))
    return timed | {
        "ess": float(np.median(sizes)),
        "least_ess": least,
        "least_ess_per_cpu_second": least / timed["cpu"],
        "least_ratio": float(ratio.min()),
        "largest_ratio": float(ratio.max()),
        "ratio_error": float(1 / np.sqrt(2 * least)),
        "mean_error": float(np.max(np.abs(draws.mean(0) - truth["mean"]) / truth["sd"])),
        "reference_share": truth["share"],
    }


def _walked(row: Experiment) -> tuple[np.ndarray, Result]:
    """A random walk along the inverse Hessian's root, its step tuned."""
    problem = tall(row.num_rows)
    mode, root = mode_and_root(row.num_rows)
    if row.sampler == "mcmc":
        sampler = walker("mcmc", problem, BATCH, 1.0, root)
    else:
        sampler = exact_walker(row.sampler, problem, BATCH, mode, root)
    start = jax.numpy.asarray(mode)
    step, start = tuned_step(sampler, jax.random.key(row.seed), start, 0.5, NUM_TUNING)
    found, block = [], {}
    for block in blocks(
        sampler, step, start[None], row.seed, row.seconds, COUNT, THIN[row.sampler], 10**6
    ):
        found.append(block["positions"][0])
    draws = np.concatenate(found)
    return draws, {name: block[name] for name in ("wall", "cpu", "acceptance")} | {
        "num_draws": len(draws),
        "warmup_cpu": float("nan"),
        "step_size": float(step),
    }
