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
import warnings
from pathlib import Path

import jax
import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from fifty_problem import fifty_modes
from modes import visits
from results_table import add_run

import temperance as tp
from temperance.sampling import RunWarning

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
    options = {"sweeps_per_draw": given.sweeps}
    if given.method in ("ee", "mintee"):
        options |= {"num_rungs": given.num_rungs, "max_temperature": heat}
        options |= {"num_fill": given.num_fill}
    elif given.method == "spt":
        shares = np.geomspace(1 / heat, 1.0, given.num_rungs or 24)
        options |= {"sizes": np.round(given.num_rows * shares), "evidence": False}
    else:
        options |= {"num_rungs": given.num_rungs, "min_beta": 1 / heat}
    if given.method == "mintee":
        options |= {"alpha": given.alpha}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)  # it is meant to end early
        tree = tp.sample(
            problem, given.method, tp.hmc(), num_draws=10**6, num_warmup=given.num_warmup,
            num_chains=given.num_chains, seed=given.seed, max_seconds=given.seconds,
            progress=False, **options,
        )  # fmt: skip
    (positions,) = (leaf.values for leaf in tree["posterior"].dataset.data_vars.values())
    ladder = tree["tempering"].dataset
    found = visits(positions) | {
        "method": given.method,
        "device": jax.devices()[0].device_kind,
        "num_rows": given.num_rows,
        "hottest": heat,
        "num_rungs": ladder.sizes["rung"],
        "num_chains": given.num_chains,
        "num_draws": tree["posterior"].sizes["draw"],
        "sweeps_per_draw": given.sweeps,
        "seconds": time.monotonic() - began,
        "rows": tree.attrs["num_row_evaluations"],
    }
    if "round_trips" in ladder:
        found["round_trips"] = ladder["round_trips"].values.tolist()
        found["swaps"] = ladder["swap_acceptance"].values.tolist()
    print(json.dumps(found, default=float))
    add_run(given.out, given.name or given.method, found)


if __name__ == "__main__":
    main()
