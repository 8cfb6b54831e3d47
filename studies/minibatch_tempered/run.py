"""The experiments of "Mini-batch tempered MCMC" again, beside the paper's figures and beside other samplers.

    python studies/minibatch_tempered/run.py              # short: about half an hour on two cores
    python studies/minibatch_tempered/run.py --scale 1    # everything: most of a day
    python studies/minibatch_tempered/run.py --redraw     # tables and figures of what is kept

A finished experiment is a line of a table, and a run skips those that it finds: stop it whenever you like and
start it again. A larger scale runs each experiment longer and runs more seeds. MNIST comes from --data, or from the
folder that TEMPERANCE_DATA names; without it that part is left out.
"""

import functools
import re
import sys
from pathlib import Path

# What the studies share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

import fifty_modes
import figures
import mnist
import mnist_reaching
import tables
import tall
import tied_means
from experiment import Experiment, arguments, chosen, machine, read_all, run_all
from kernels import available
from mnist_problem import FILE
from rich.console import Console

HERE = Path(__file__).parent
PARTS = {
    "tied_means": tied_means.experiments,
    "mnist": mnist.experiments,
    "reaching": mnist_reaching.experiments,
    "fifty_modes": fifty_modes.experiments,
    "tall": tall.experiments,
}
DEFAULT_SCALE = 0.03
SHORTEST = 10.0
# What compiling, and warming up, adds to a row's own seconds.
COMPILATION = {
    "law": 10.0, "tied": 15.0, "normality": 15.0, "batch": 15.0, "accuracy": 15.0, "reaching": 15.0, "reasons": 5.0,
    "modes": 200.0, "tall": 60.0,
}  # fmt: skip
# Kinds that need MNIST.
OF_IMAGES = ("normality", "batch", "accuracy", "reaching")


def smoke() -> list[Experiment]:
    """One small row of every kind."""
    return [
        Experiment("law", "tied", 4000, 2, "grid", "exact", 0.1),
        *(Experiment("tied", "tied", 4000, 2, "metropolis", name, 0.1) for name in tied_means.SAMPLERS),
        Experiment("normality", "mnist", mnist.NUM_ROWS, mnist.DIMENSION, "metropolis", "batches", 0.1),
        Experiment("batch", "mnist", mnist.NUM_ROWS, mnist.DIMENSION, "T100", "barker", 0.1),
        Experiment("accuracy", "mnist", mnist.NUM_ROWS, mnist.DIMENSION, "metropolis", "mcmc", 0.1),
        Experiment("reaching", "mnist", mnist.NUM_ROWS, mnist.DIMENSION, "adapting", "mint common langevin 1.5", 0.1),
        Experiment("reasons", "fifty", fifty_modes.NUM_ROWS, 50, "none", "none", 0.1),
        Experiment("modes", "fifty", 500, 50, "hmc", "plain", 0.1),
        *(Experiment("tall", "tall", 2000, 20, "own", name, 0.1) for name in (*tall.PEERS, *tall.OURS)),
    ]  # fmt: skip


def main() -> None:
    given = arguments(__doc__, list(PARTS), HERE / "results", DEFAULT_SCALE)
    console = Console()
    runs = given.runs or given.out / "runs"
    given.out.mkdir(parents=True, exist_ok=True)
    here = machine()
    if not given.redraw:
        rows = [row for part in given.parts for row in PARTS[part]()]
        rows = smoke() if given.smoke else chosen(rows, given.scale, SHORTEST)
        rows = [row for row in rows if re.search(given.only, row.name)]
        absent = sorted({row.sampler for row in rows if not available(row.sampler)})
        if absent:
            console.print(f"This version of the library lacks: {', '.join(absent)}. Left out.")
        rows = [row for row in rows if available(row.sampler)]
        if not (given.data and (given.data / FILE).exists()):
            console.print("Without MNIST that part is left out: name its folder with --data.")
            rows = [row for row in rows if row.kind not in OF_IMAGES]
        runners = {
            "law": tied_means.run_law,
            "tied": tied_means.run_tied,
            "normality": functools.partial(mnist.run_normality, data=given.data),
            "batch": functools.partial(mnist.run_batch, data=given.data),
            "accuracy": functools.partial(mnist.run_accuracy, data=given.data),
            "reaching": functools.partial(mnist_reaching.run_reaching, data=given.data),
            "reasons": fifty_modes.run_reasons,
            "modes": fifty_modes.run_modes,
            "tall": tall.run_tall,
        }
        run_all(rows, runs, runners, console, here, given.cores, COMPILATION, given.again)
    results = read_all(runs, None if given.redraw else here)
    if not results:
        console.print(f"There is nothing to draw in {runs}")
        return
    tables.write_all(results, given.out)
    figures.draw_all(results, given.out)
    console.print(f"Wrote tables and figures to {given.out}", soft_wrap=True)


if __name__ == "__main__":
    main()
