"""How fast replicas travel: round trips by swap scheme, against theory and the number of rungs.

    python studies/communication/run.py          # everything again into results/, about 2 minutes

Three parts, told in README.md: swaps of constant acceptance, whose answer is known; a Gaussian
bridge, with exact draws at every rung and with one Metropolis step; and the schedule that warm-up
arrives at on a mixture of two modes.
"""

import argparse
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
import numpy as np

# What the studies share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

from bridge import DIMENSION, SCALE, adapted_betas, travel
from constant import rates
from experiment import processor, write_csv
from figures import draw_schedule, draw_travel
from mixture import warm_up
from rich.console import Console

from temperance import __version__
from temperance.estimates.diagnostics import communication_barrier, round_trip_rate
from temperance.programs.scope import scope
from temperance.samplers.parallel.swaps import SCHEMES

HERE = Path(__file__).parent
# Settings of the part with constant acceptance: (rungs, rejection).
CONSTANT = [(8, 0.1), (8, 0.3), (8, 0.5), (8, 0.7), (3, 0.5), (5, 0.5), (16, 0.5), (32, 0.5)]
RUNGS = (4, 7, 13, 25, 49)
METROPOLIS_RUNGS = (7, 13, 25)


def theory(scheme: str, rejection: np.ndarray) -> float:
    """Round trips a sweep if every swap is accepted whatever happened before.

    deo and seo: Syed et al. (2022). A replica that sweeps goes down a pair a sweep, as with deo,
    and up without waiting, which halves the time of a round trip.
    """
    if scheme == "seo":
        return float(1 / (2 * rejection.size + 2 * np.sum(rejection / (1 - rejection))))
    return float(round_trip_rate(rejection)) * (2 if scheme == "sweep" else 1)


def swaps_tried(scheme: str, num_rungs: int) -> float:
    """Pairs that a scheme compares in one sweep, on average."""
    return (num_rungs - 1) if scheme == "sweep" else (num_rungs - 1) / 2


def constant_rows(say):
    for num_rungs, rate in CONSTANT:
        rejection = np.full(num_rungs - 1, rate)
        for scheme in SCHEMES:
            say(f"constant acceptance: {num_rungs} rungs, rejection {rate}, {scheme}")
            found, error = rates(scheme, rejection)
            yield {
                "scheme": scheme,
                "rungs": num_rungs,
                "rejection": rate,
                "round_trips_per_sweep": found,
                "standard_error": error,
                "theory": theory(scheme, rejection),
                "per_swap_tried": found / swaps_tried(scheme, num_rungs),
            }


def bridge_rows(say):
    for num_rungs in RUNGS:
        say(f"Gaussian bridge: {num_rungs} rungs, schedule")
        betas = adapted_betas(num_rungs)
        tasks = [("exact", scheme) for scheme in SCHEMES]
        if num_rungs in METROPOLIS_RUNGS:
            tasks.append(("metropolis", "deo"))
        for move, scheme in tasks:
            say(f"Gaussian bridge: {num_rungs} rungs, {scheme}, {move}")
            found, error, rejection = travel(betas, scheme, move)
            yield {
                "scheme": scheme,
                "move": move,
                "rungs": num_rungs,
                "barrier": float(communication_barrier(rejection)),
                "largest_rejection": rejection.max(),
                "round_trips_per_sweep": found,
                "standard_error": error,
                "theory": theory(scheme, rejection),
                "per_swap_tried": found / swaps_tried(scheme, num_rungs),
            }


def schedule_rows(say):
    for stage in warm_up(say):
        for pair, rejection in enumerate(stage.rejection):
            yield {
                "round": stage.number,
                "sweeps": stage.num_sweeps,
                "pair": pair,
                "beta": stage.betas[pair],
                "next_beta": stage.betas[pair + 1],
                "rejection": rejection,
            }


def machine() -> str:
    others = ", ".join(f"{name} {version(name)}" for name in ("jax", "equinox", "numpy"))
    return (
        f"{processor()}, {os.cpu_count()} cores, {platform.system()}\n"
        f"Python {platform.python_version()}, temperance {__version__}, {others}, "
        f"matplotlib {mpl.__version__}\n"
        f"Gaussian bridge: N(0, {SCALE}^2 I) to N(0, I) in {DIMENSION} dimensions\n"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=HERE / "results", help="the folder to write to")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    parts = {"constant": constant_rows, "bridge": bridge_rows, "schedule": schedule_rows}
    tables = {}
    with scope("double"), console.status("starting") as status:
        for name, part in parts.items():
            tables[name] = list(part(status.update))
            write_csv(out / f"{name}.csv", tables[name])
            console.print(f"{name}: {len(tables[name])} rows")
        draw_travel(tables["constant"], tables["bridge"], out / "travel.png")
        draw_schedule(tables["schedule"], out / "schedule.png")
        (out / "machine.txt").write_text(machine())
    console.print(f"Wrote tables and figures to {out}", soft_wrap=True)


if __name__ == "__main__":
    main()
