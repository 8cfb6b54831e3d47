"""Every experiment of section 4 of "Tempering by subsampling" again, beside the paper's figures.

    python studies/tempering_by_subsampling/run.py              # about ten minutes on two cores
    python studies/tempering_by_subsampling/run.py --scale 1    # everything, about a day
    python studies/tempering_by_subsampling/run.py --redraw     # tables and figures of what is kept

A finished experiment is a line of a table, and a run skips those that it finds: stop it whenever you like
and start it again. A larger scale runs longer and runs more of the paper's settings. Real data come
from --data, or from the folder that TEMPERANCE_DATA names; without them their part is left out.

Each experiment has a core of its own, so that a second of wall time is one of work, and --cores of them
run side by side.
"""

import functools
import re
import sys
from pathlib import Path

# What the studies share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

import convergence
import cost
import dimensions
import draws
import figures
import mobility
import sizes
import tables
import winners
from experiment import Experiment, Result, arguments, chosen, machine, read_all, run_all
from rich.console import Console
from settings import SAMPLERS

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
# What compiling, and warming up, adds to a row's own seconds.
COMPILATION = {"cost": 40.0, "mobility": 60.0, "draws": 8.0, "spread": 8.0, "tuned": 40.0}


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


def main() -> None:
    given = arguments(__doc__, list(PARTS), HERE / "results", DEFAULT_SCALE)
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
        run_all(rows, runs, runners, console, here, given.cores, COMPILATION, given.again)
    results: list[Result] = read_all(runs, None if given.redraw else here)
    if not results:
        console.print(f"There is nothing to draw in {runs}")
        return
    tables.write_all(results, given.out)
    figures.draw_all(results, given.out)
    console.print(f"Wrote tables and figures to {given.out}", soft_wrap=True)


if __name__ == "__main__":
    main()
