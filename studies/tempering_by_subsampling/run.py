"""Every experiment of section 4 of "Tempering by subsampling" again, beside the paper's figures.

    python studies/tempering_by_subsampling/run.py              # about ten minutes on two cores
    python studies/tempering_by_subsampling/run.py --scale 1    # everything, about a day
    python studies/tempering_by_subsampling/run.py --redraw     # tables and figures of what is kept

A finished experiment is a small file, and a run skips those that it finds: stop it whenever you like
and start it again. A larger scale runs longer and runs more of the paper's settings. Real data come
from --data, or from the folder that TEMPERANCE_DATA names; without them their part is left out.

Each experiment has a core of its own, so that a second of wall time is one of work, and --cores of them
run side by side.
"""

import argparse
import functools
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import convergence
import cost
import dimensions
import draws
import figures
import mobility
import sizes
import tables
import winners
from experiment import Experiment, Result, chosen, read_all, run_all
from rich.console import Console
from settings import SAMPLERS

from temperance import __version__

HERE = Path(__file__).parent
PARTS = {
    "cost": cost.experiments,
    "convergence": convergence.experiments,
    "dimensions": dimensions.experiments,
    "sizes": sizes.experiments,
    "winners": winners.experiments,
    "mobility": mobility.experiments,
}
# Everything is chosen by the scale; this one takes about ten minutes on two cores.
DEFAULT_SCALE = 0.01
SHORTEST = 3.0


def machine() -> str:
    model = platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        model = next((li.split(":", 1)[1].strip() for li in lines if "model name" in li), model)
    others = ", ".join(f"{name} {version(name)}" for name in ("jax", "blackjax", "numpy"))
    return (
        f"{model}, one core for each experiment, {platform.system()}. "
        f"Python {platform.python_version()}, temperance {__version__}, {others}."
    )


def smoke() -> list[Experiment]:
    """One small row of every kind, and every sampler once."""
    setting = ("normal", 64, 5, "metropolis")
    return [
        Experiment("cost", *setting, "all", 0.05),
        *(Experiment("draws", *setting, sampler, 0.05) for sampler in SAMPLERS),
        Experiment("draws", "gp", 64, 3, "hmc", "stt", 0.05),
        Experiment("spread", *setting, "plain", 0.05),
        *(Experiment("tuned", *setting, method, 0.05) for method in ("plain", "spt", "nuts")),
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=DEFAULT_SCALE, help="1 is everything")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--only", default="", help="a pattern of experiments' names, e.g. gp-n512")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="tables and figures")
    parser.add_argument("--runs", type=Path, help="finished experiments; by default OUT/runs")
    parser.add_argument("--data", type=Path, default=os.environ.get("TEMPERANCE_DATA"))
    parser.add_argument("--cores", type=int, default=2, help="experiments side by side")
    parser.add_argument("--redraw", action="store_true", help="run nothing")
    parser.add_argument("--again", action="store_true", help="run what is finished once more")
    parser.add_argument("--smoke", action="store_true", help="a little of everything")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    console = Console()
    runs = given.runs or given.out / "runs"
    given.out.mkdir(parents=True, exist_ok=True)
    here = machine()
    if not given.redraw:
        scale = 0.0 if given.smoke else given.scale
        rows = [row for part in given.parts for row in PARTS[part]()]
        rows = smoke() if given.smoke else chosen(rows, scale, SHORTEST)
        rows = [row for row in rows if re.search(given.only, row.name)]
        absent = {row.problem for row in rows if winners.missing(row, given.data)}
        if absent:
            console.print(
                f"Left out for want of data: {', '.join(sorted(absent))}. Name the folder with "
                "--data or TEMPERANCE_DATA."
            )
        rows = [row for row in rows if row.problem not in absent]
        runners = {
            "cost": cost.run_cost,
            "draws": draws.run_draws,
            "mobility": mobility.run_mobility,
            "spread": draws.run_spread,
            "tuned": functools.partial(
                winners.run_tuned, data=given.data, num_warmup=winners.warmup_at(scale)
            ),
        }
        run_all(rows, runs, runners, console, here, given.cores, given.again)
    results: list[Result] = read_all(runs, None if given.redraw else here)
    if not results:
        console.print(f"There is nothing to draw in {runs}")
        return
    tables.write_all(results, given.out, here if not given.redraw else results[0]["machine"])
    figures.draw_all(results, given.out)
    console.print(f"Wrote tables and figures to {given.out}", soft_wrap=True)


if __name__ == "__main__":
    main()
