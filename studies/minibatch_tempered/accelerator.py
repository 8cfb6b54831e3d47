"""Fifty modes on an accelerator, where all 100,000 rows of many replicas are cheap, or for an hour on a CPU.

    python studies/minibatch_tempered/accelerator.py --method pt --seconds 400 --name pt

Needs of this library only what runs on a bare machine with JAX: the draws are counted as modes, without ArviZ.
`results/accelerator.csv` has a line for each name: what `modes.py` says of a run, and how often each chain was in
each mode.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import jax
import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from fifty_problem import fifty_modes
from modes import visits
from results_table import add_run

import temperance as tp
from temperance.engine.conductor import Conductor
from temperance.engine.jobs import TunedJob
from temperance.engine.loop import block_size
from temperance.methods.equi_energy_plan import EquiEnergyPlan
from temperance.methods.mintee_plan import MinteePlan
from temperance.methods.plan import Plan
from temperance.problems.problem import densities_of
from temperance.programs.progress import reporter
from temperance.results.work import work

TABLE = Path(__file__).parent / "results" / "accelerator.csv"
# Temperatures of the hottest rung.
HOTTEST = {"pt": 250.0, "ee": 250.0, "mintee": 250.0, "spt": 250.0}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", choices=HOTTEST, default="pt")
    parser.add_argument("--num-rows", type=int, default=100_000)
    parser.add_argument("--num-chains", type=int, default=8)
    parser.add_argument("--num-rungs", type=int)
    parser.add_argument("--hottest", type=float, help="temperature of the hottest rung")
    parser.add_argument("--num-warmup", type=int, default=300)
    parser.add_argument("--num-fill", type=int, default=4000)
    parser.add_argument("--alpha", type=float, default=0.5, help="of mintee")
    parser.add_argument("--sweeps", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=400.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", help="the run's own in the table; by default the method")
    parser.add_argument("--out", type=Path, default=TABLE, help="the table")
    given = parser.parse_args()
    problem, began = fifty_modes(given.num_rows), time.monotonic()
    heat = given.hottest or HOTTEST[given.method]
    with jax.enable_x64(True), reporter(False) as bars:
        densities = densities_of(problem)
        shared = {
            "num_chains": given.num_chains, "num_warmup": given.num_warmup, "num_draws": 10**6,
            "key": jax.random.key(given.seed), "num_rungs": given.num_rungs,
            "hottest": heat if given.method in ("ee", "mintee") else 1 / heat,
        }  # fmt: skip
        if given.method == "spt":
            count = given.num_rungs or 24
            shares = np.geomspace(1 / heat, 1.0, count)
            betas = tuple(np.round(given.num_rows * shares) / given.num_rows)
            shared |= {"betas": betas, "num_rungs": count, "evidence": False}
        if given.method in ("pt", "spt"):
            plan = Plan(problem, densities, given.method, tp.hmc(), swaps_per_sweep=2, **shared)
        elif given.method == "ee":
            plan = EquiEnergyPlan(
                problem, densities, "ee", tp.hmc(), num_fill=given.num_fill, **shared
            )
        else:
            plan = MinteePlan(
                problem, densities, "mintee", tp.hmc(), num_fill=given.num_fill,
                alpha=given.alpha, **shared,
            )  # fmt: skip
        size = block_size(given.num_chains, densities.layout.dimension)
        with Conductor(size, bars, max_seconds=given.seconds, watched=True) as conductor:
            finished = TunedJob(plan, given.sweeps).run(conductor)
    draws = {name: np.moveaxis(array, 0, 1) for name, array in finished.draws.items()}
    found = visits(draws["position"]) | {
        "method": given.method,
        "device": jax.devices()[0].device_kind,
        "num_rows": given.num_rows,
        "hottest": heat,
        "num_rungs": finished.sampler.num_rungs,
        "num_chains": given.num_chains,
        "num_draws": finished.num_draws,
        "sweeps_per_draw": given.sweeps,
        "seconds": time.monotonic() - began,
        "rows": work(draws, finished, given.num_rows)["num_row_evaluations"],
    }
    if "round_trips" in draws:
        found["round_trips"] = draws["round_trips"][:, -1].tolist()
        found["swaps"] = draws["swap_acceptance"].mean(axis=(0, 1)).tolist()
    print(json.dumps(found, default=float))
    add_run(given.out, given.name or given.method, found)


if __name__ == "__main__":
    main()
