"""How many rows a second a view of 68 categorical columns moves, and how soon the first sweep comes.

    python benchmarks/crosscat/run.py
    python benchmarks/crosscat/run.py --rounds 10 --out elsewhere/crosscat.csv

The table goes beside the CSV as .md. Goals: 1.3 million row steps a second at about 30 clusters and 0.9 million at about 100, on
one core; from import to the first sweep under 25 s the first time and under 2 s once compiled.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

# What the benchmarks share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

from kept import keep_figures

HERE = Path(__file__).parent
COLUMNS = ("clusters", "what", "value", "unit", "goal")
PACKAGES = ("numba", "llvmlite", "numpy")
GOALS = {30: 1.3, 100: 0.9}
COLD_GOAL, WARM_GOAL = 25.0, 2.0
IMPORTS = "import temperance.crosscat.estimator, temperance.crosscat.annealing.fitting"
TEXT = """\
One view of 68 categorical columns and {num_rows:,} rows (`studies/subsample_annealing/census.py`), one core, CPU
time: the least over rounds in which all take turns. A *row step* is: leave, be scored against every cluster, draw one,
enter. *Adds* are entries into given clusters. *Counts* only lower one whole number of each column and raise another.
*By chance*: rows are not taken as they lie in memory. Times to the first sweep are CPU seconds of a process of its own,
from its first import of the package, with a table that has every kind of column, and with Python's bytecode on disk, as
after an installation. A second table of other shape shows that kernels are not compiled anew for it."""
TIMED = {
    "steps": "row steps",
    "scattered": "row steps, rows by chance",
    "adds": "adds alone",
    "counts": "counts alone, one lowered and one raised",
}


def speeds(num_rows, num_rounds):
    """Millions a second by the least CPU time over rounds in which all take turns."""
    from programs import Rows

    for asked, goal in GOALS.items():
        rows = Rows(num_rows, asked)
        found = {name: [] for name in TIMED}
        num_clusters = []
        for number in range(num_rounds + 1):
            for name, times in found.items():
                getattr(rows, f"before_{name}")()
                start = time.process_time()
                done = getattr(rows, f"run_{name}")()
                took = (time.process_time() - start) / done
                if name == "steps":
                    num_clusters.append(rows.view.num_clusters)
                # The first round compiles.
                if number:
                    times.append(took)
        clusters = round(sum(num_clusters) / len(num_clusters))
        least = {name: 1e-6 / min(times) for name, times in found.items()}
        for name, words in TIMED.items():
            yield row(clusters, words, least[name], "million/s", goal if name == "steps" else "")
        yield row(clusters, "row steps / adds", least["steps"] / least["adds"], "x", "")
        yield row(clusters, "row steps / counts", least["steps"] / least["counts"], "x", "")


def first_sweeps(num_warm):
    """CPU seconds from the first import to a first fit, with an empty cache of compiled kernels and with a full one."""
    with TemporaryDirectory() as folder:
        # Python keeps what it makes of the sources of a package that is installed.
        environment = dict(os.environ, NUMBA_CACHE_DIR=folder, PYTHONPYCACHEPREFIX=folder)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        subprocess.run([sys.executable, "-c", IMPORTS], env=environment, check=True)
        command = [sys.executable, str(HERE / "first_sweep.py")]
        told = [
            [float(x) for x in subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True
            ).stdout.split()]
            for _ in range(1 + num_warm)
        ]  # fmt: skip
    cold, *warm = told
    for place, what in enumerate(("import", "import to first sweep", "import to a second table's")):
        goal = (COLD_GOAL, WARM_GOAL) if place == 1 else ("", "")
        yield row("", f"{what}, nothing compiled", cold[place], "s", goal[0])
        yield row("", f"{what}, kernels on disk", min(one[place] for one in warm), "s", goal[1])


def row(clusters, what, value, unit, goal):
    return dict(zip(COLUMNS, (clusters, what, value, unit, goal), strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument(
        "--parts", nargs="+", choices=("speeds", "first"), default=("speeds", "first")
    )
    out = HERE.parent / "results" / "crosscat.csv"
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args()
    parts = {
        "speeds": lambda: speeds(options.rows, options.rounds),
        "first": lambda: first_sweeps(min(3, options.rounds)),
    }
    rows = (one for part in options.parts for one in parts[part]())
    text = TEXT.format(num_rows=options.rows)
    keep_figures(rows, options.out, "Cross-categorization", text, PACKAGES)


if __name__ == "__main__":
    main()
