"""Tall data side by side: worst effective samples a CPU second, and whether the moments are right.

NUTS, HMCECS, SGLD with control variates, and this library's exact mini-batch kernels on the same 100,000 rows. A
sampler is worth what it says of its worst coordinate; and a standard deviation that is wrong is told as its
ratio to the truth, the least and the largest over coordinates, beside the ratio's standard error of
1 / sqrt(2 ESS) in the worst coordinate.
"""

import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from drawing import drawn_for
from experiment import Experiment, Result
from kernels import exact_move, walker
from tall_peers import BATCH, hmcecs, nuts, sgld
from tall_problem import DIMENSION, NUM_ROWS, data, mode_and_root, moments, tall
from walks import blocks, tuned_step

import temperance as tp
from temperance.estimates.diagnostics import effective_size
from temperance.programs.scope import scope

PEERS = {"nuts": nuts, "hmcecs": hmcecs, "sgld": sgld}
OURS = ("mcmc", "tuna", "delayed")
SECONDS = 600.0
NUM_TUNING = 300
COUNT, NUM_WARMUP = 50, 300


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
        elif row.sampler == "mcmc":
            draws, timed = _walked(row)
        else:
            draws, timed = _sampled(row)
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
    sampler = walker("mcmc", problem, BATCH, 1.0, root)
    start = jax.numpy.asarray(mode)
    step, start = tuned_step(sampler, jax.random.key(row.seed), start, 0.5, NUM_TUNING)
    found, block = [], {}
    for block in blocks(
        sampler, row.num_rows, step, start[None], row.seed, row.seconds, COUNT, 1, 10**6
    ):
        found.append(block["positions"][0])
    draws = np.concatenate(found)
    return draws, {name: block[name] for name in ("wall", "cpu", "acceptance")} | {
        "num_draws": len(draws),
        "warmup_cpu": float("nan"),
        "step_size": float(step),
    }


def _sampled(row: Experiment) -> tuple[np.ndarray, Result]:
    """One of the library's moves that look at few rows, through `sample`; the mode is told apart."""
    problem, before = tall(row.num_rows), time.process_time()
    around = tp.laplace(problem)
    mode_cpu = time.process_time() - before
    move = exact_move(row.sampler, data(row.num_rows)[0], around, BATCH)

    def call(num_draws: int, checkpoint: Path) -> Any:
        return tp.sample(
            problem, "plain", move, num_draws=num_draws, num_warmup=NUM_WARMUP, num_chains=1,
            seed=row.seed, checkpoint=checkpoint, progress=False,
        )  # fmt: skip

    timed = drawn_for(row.seconds, call)
    return timed.pop("draws")[0], timed | {"mode_cpu": mode_cpu, "warmup_cpu": float("nan")}
