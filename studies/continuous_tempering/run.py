"""The experiments of "Continuously tempered Hamiltonian Monte Carlo" again, beside the paper's figures.

    python studies/continuous_tempering/run.py              # short: about ten minutes on two cores
    python studies/continuous_tempering/run.py --scale 1    # everything
    python studies/continuous_tempering/run.py --redraw     # tables and figures of what is kept

A finished experiment is a small file, and a run skips those that it finds: stop it whenever you like and start it again. A
larger scale makes more repetitions. The paper's systems come from --data, or from the folder that TEMPERANCE_DATA names;
without it the parts that need them are left out.
"""

import functools
import re
import sys
from pathlib import Path

# What the studies share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

import bimodal
import boltzmann
import images
import radon
from experiment import arguments, chosen, machine, read_all, run_all
from rich.console import Console

HERE = Path(__file__).parent
# A part is a module with `experiments()`, `smoke()`, `needs_data(row)`, RUNNERS and COMPILATION by kind (a runner takes
# a row and the data's folder; compilation is what it adds to a row's seconds), `write(rows, folder)`, which writes CSV
# files and returns markdown, and `draw(rows, folder)`. Rows are finished experiments of the part's own kinds.
PARTS = {
    "bimodal": bimodal,
    "boltzmann": boltzmann,
    "radon": radon,
    "iwae": images,
}
DEFAULT_SCALE = 0.1
SHORTEST = 6.0


def main() -> None:
    given = arguments(__doc__, list(PARTS), HERE / "results", DEFAULT_SCALE)
    console = Console()
    runs = given.runs or given.out / "runs"
    given.out.mkdir(parents=True, exist_ok=True)
    here = machine()
    parts = [PARTS[name] for name in given.parts]
    if not given.redraw:
        rows = [
            row for part in parts for row in (part.smoke() if given.smoke else part.experiments())
        ]
        rows = rows if given.smoke else chosen(rows, given.scale, SHORTEST)
        rows = [row for row in rows if re.search(given.only, row.name)]
        kinds = {kind: part for part in parts for kind in part.RUNNERS}
        wanting = [row for row in rows if given.data is None and kinds[row.kind].needs_data(row)]
        if wanting:
            console.print(
                "Left out for want of the paper's systems: name their folder with --data."
            )
        rows = [row for row in rows if row not in wanting]
        data = None if given.data is None else Path(given.data)
        runners = {
            kind: functools.partial(run, data=data)
            for part in parts
            for kind, run in part.RUNNERS.items()
        }
        compilation = {kind: time for part in parts for kind, time in part.COMPILATION.items()}
        run_all(rows, runs, runners, console, here, given.cores, compilation, given.again)
    # Those of another machine are shown where nothing else is, and never mixed with others.
    results = read_all(runs, None if given.redraw else here)
    if not results:
        console.print(f"There is nothing to draw in {runs}")
        return
    text = ["# Continuously tempered HMC, rerun", "", results[0]["machine"], ""]
    for part in PARTS.values():
        rows = [row for row in results if row["kind"] in part.RUNNERS]
        if rows:
            text += part.write(rows, given.out)
            part.draw(rows, given.out)
    (given.out / "tables.md").write_text("\n".join(text))
    console.print(f"Wrote tables and figures to {given.out}", soft_wrap=True)


if __name__ == "__main__":
    main()
