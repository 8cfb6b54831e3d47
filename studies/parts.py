"""The command of a study that is made of parts.

A part is a module with `experiments()`, `smoke()`, `needs_data(row)`, RUNNERS and COMPILATION by kind (a runner takes a row
and the data's folder; compilation is what it adds to a row's seconds), `write(rows, folder)`, which writes CSV files and
returns markdown, and `draw(rows, folder)`. Rows are finished experiments of the part's own kinds.
"""

import functools
import re
from pathlib import Path
from typing import Any

from experiment import arguments, chosen, machine, machines, read_all, run_all
from rich.console import Console

# Rows shorter than this, in seconds, are lengthened to it.
SHORTEST = 6.0


def run_parts(
    description: str | None,
    parts: dict[str, Any],
    title: str,
    out: Path,
    scale: float,
    shortest: float = SHORTEST,
) -> None:
    """What the command line asks for: run what is not there yet, and write tables and figures."""
    given = arguments(description, list(parts), out, scale)
    console = Console()
    runs = given.runs or given.out / "runs"
    given.out.mkdir(parents=True, exist_ok=True)
    here = machine()
    if not given.redraw:
        _run(given, [parts[name] for name in given.parts], runs, here, console, shortest)
    # Those of another machine are shown where nothing else is, and never mixed with others.
    results = read_all(runs, None if given.redraw else here)
    if not results:
        console.print(f"There is nothing to draw in {runs}")
        return
    text = [f"# {title}", "", machines(results), ""]
    for part in parts.values():
        rows = [row for row in results if row["kind"] in part.RUNNERS]
        if rows:
            text += part.write(rows, given.out)
            part.draw(rows, given.out)
    (given.out / "tables.md").write_text("\n".join(text))
    console.print(f"Wrote tables and figures to {given.out}", soft_wrap=True)


def _run(
    given: Any, parts: list[Any], runs: Path, here: str, console: Console, shortest: float
) -> None:
    rows = [row for part in parts for row in (part.smoke() if given.smoke else part.experiments())]
    rows = rows if given.smoke else chosen(rows, given.scale, shortest)
    rows = [row for row in rows if re.search(given.only, row.name)]
    kinds = {kind: part for part in parts for kind in part.RUNNERS}
    wanting = [row for row in rows if given.data is None and kinds[row.kind].needs_data(row)]
    if wanting:
        console.print("Some experiments are left out for want of data: name their folder by --data")
    rows = [row for row in rows if row not in wanting]
    data = None if given.data is None else Path(given.data)
    runners = {
        kind: functools.partial(run, data=data)
        for part in parts
        for kind, run in part.RUNNERS.items()
    }
    compilation = {kind: time for part in parts for kind, time in part.COMPILATION.items()}
    run_all(rows, runs, runners, console, here, given.cores, compilation, given.again)
