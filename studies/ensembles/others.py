"""The same posterior by samplers that the paper does not have, through `sample`.

    nuts            BlackJAX's NUTS alone, with gradients
    stt             tempered transitions over nested subsamples, one-at-a-time Metropolis at every rung
    pt              parallel tempering over powers, one-at-a-time Metropolis
    ensemble + pt   parallel tempering over powers, ensembles at every rung

Each is given seconds after its warm-up, four chains, and what it took of the CPU is kept. A slow evaluation of a hot rung
of a subsample counts by its rows cubed; a gradient counts as one, though it costs about twice a value.
"""

from pathlib import Path
from typing import Any

import numpy as np
from demonstration_tables import Rows
from drawing import drawn_for
from experiment import Experiment, Result
from modes import BETWEEN, side
from neal_problem import NUM_INPUTS, NUM_ROWS, problem
from sections import mean_and_error, table

import temperance as tp
from temperance.estimates.diagnostics import effective_size, standard_error
from temperance.methods.report.work import VALUE

NUM_CHAINS, NUM_WARMUP, FEW_WARMUP = 4, 300, 20
SECONDS, NUM_SEEDS = 60.0, 10
MEMBERS = 49
COMPILATION = {"others": 60.0}
SAMPLERS = ("nuts", "stt", "pt", "ensemble + pt", "ensemble")


def experiments() -> list[Experiment]:
    return [_row(name, seed) for seed in range(NUM_SEEDS) for name in SAMPLERS]


def smoke() -> list[Experiment]:
    return [_row("ensemble + pt", 0, 0.01)]


def _row(name: str, seed: int, seconds: float = SECONDS) -> Experiment:
    # One seed at any scale, and all of them at the whole.
    least = 0.0 if seed == 0 else 0.2 if seed < 4 else 1.0
    return Experiment(
        "others", "synthetic", NUM_ROWS, NUM_INPUTS, "any", name, seconds, seed, least=least
    )


def needs_data(row: Experiment) -> bool:  # noqa: ARG001
    return False


def call_of(name: str) -> tuple[tp.Problem, str, Any]:
    """The problem, method and move of a sampler."""
    if name == "nuts":
        return problem("direct"), "plain", tp.nuts(max_num_doublings=6)
    if name in ("stt", "pt"):
        return problem("direct"), name, tp.single_site()
    ensemble = tp.ensemble(members=MEMBERS, base="grid")
    return problem("spectral"), "pt" if name == "ensemble + pt" else "plain", ensemble


def run_others(row: Experiment, data: Path | None) -> Result:  # noqa: ARG001
    """Draws for some seconds, and what they say of log sigma."""
    target, method, move = call_of(row.sampler)
    warmup = NUM_WARMUP if row.seconds > 1 else FEW_WARMUP
    trees: list[Any] = []

    def call(num_draws: int, checkpoint: Path) -> Any:
        tree = tp.sample(
            target, method, move, num_draws=num_draws, num_warmup=warmup, num_chains=NUM_CHAINS,
            seed=row.seed, progress=False, checkpoint=checkpoint,
        )  # fmt: skip
        trees[:] = [tree]
        return tree

    found = drawn_for(row.seconds, call)
    log_sigma = np.asarray(trees[0]["posterior"]["log_noise"])
    visited = [side(chain) for chain in log_sigma]
    noisy = (log_sigma > BETWEEN).astype(float)
    # Cubes are of values with gradients, and Metropolis takes values alone.
    num_slow = found["cubes"] / VALUE if "cubes" in found else found["rows"] / NUM_ROWS
    return {
        "cpu": found["cpu"],
        "num_draws": found["num_draws"],
        "num_slow": num_slow,
        "switches": int(sum(np.abs(np.diff(v[v >= 0])).sum() for v in visited)),
        "ess_log_sigma": float(effective_size(log_sigma)),
        "noisy": float(noisy.mean()),
        "noisy_error": float(standard_error(noisy)) if np.ptp(noisy) > 0 else float("nan"),
        "by_chain": noisy.mean(axis=1).tolist(),
    }


def write(rows: Rows, folder: Path) -> list[str]:  # noqa: ARG001
    lines = []
    for name in SAMPLERS:
        found = [r for r in rows if r["sampler"] == name]
        if found:
            lines.append(
                [
                    name,
                    len(found),
                    *(mean_and_error([what(r) for r in found]) for what in WHAT.values()),
                ]
            )
    text = "Four chains a run; means over runs, ± one standard error where there are several."
    return table("Beside other samplers", text, ["sampler", "runs", *WHAT], lines)


WHAT = {
    "ESS of log sigma per CPU second": lambda r: r["ess_log_sigma"] / r["cpu"],
    "ESS per 100,000 slow evaluations": lambda r: 1e5 * r["ess_log_sigma"] / r["num_slow"],
    "switches of mode per 100,000": lambda r: 1e5 * r["switches"] / r["num_slow"],
    "share of the noisy mode": lambda r: r["noisy"],
}


def draw(rows: Rows, folder: Path) -> None:
    """Nothing: the table says it."""


RUNNERS = {"others": run_others}
