"""An experiment is a row: what is sampled, by what, with which seed and for how long.

Each finished one is a line in the table of its kind, under the row's name. A run skips rows whose line was made
with as many seconds or more on the same machine by the same versions, so that it can be stopped anywhere and
lengthened later, and times of two machines never meet in a table.
"""

import argparse
import csv
import math
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import jax
from pinned import PinnedPool, cores
from results_table import Record, add_run, read_runs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from temperance import __version__


def processor() -> str:
    """The processor's name, where the system tells it."""
    model = platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        model = next((li.split(":", 1)[1].strip() for li in lines if "model name" in li), model)
    return model


def machine() -> str:
    """The processor, and the versions that a time depends on."""
    others = ", ".join(f"{name} {version(name)}" for name in ("jax", "blackjax", "numpy"))
    return (
        f"{processor()}, one core for each experiment, {platform.system()}. "
        f"Python {platform.python_version()}, temperance {__version__}, {others}."
    )


@dataclass(frozen=True)
class Experiment:
    """One row. `least` and `most` are the scales between which it is run; `seconds` are at scale 1.

    `kind` says which of a study's functions runs it.
    """

    kind: str
    problem: str
    num_rows: int
    dimension: int
    move: str
    sampler: str
    seconds: float
    seed: int = 0
    least: float = 0.0
    most: float = math.inf

    @property
    def name(self) -> str:
        return (
            f"{self.kind}-{self.problem}-n{self.num_rows}-d{self.dimension}"
            f"-{self.move}-{self.sampler.replace(' ', '-')}-s{self.seed}"
        )


Result = Record
# The seconds of a row, where its result has others.
GIVEN = "seconds_given"


def arguments(
    description: str | None, parts: list[str], out: Path, scale: float
) -> argparse.Namespace:
    """What a study may be told on the command line."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=scale, help="1 is everything")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--only", default="", help="a pattern of experiments' names, e.g. gp-n512")
    parser.add_argument("--out", type=Path, default=out, help="tables and figures")
    parser.add_argument("--runs", type=Path, help="finished experiments; by default OUT/runs")
    parser.add_argument("--data", type=Path, default=os.environ.get("TEMPERANCE_DATA"))
    parser.add_argument("--cores", type=int, default=2, help="experiments side by side")
    parser.add_argument("--redraw", action="store_true", help="run nothing")
    parser.add_argument("--again", action="store_true", help="run what is finished once more")
    parser.add_argument("--smoke", action="store_true", help="a little of everything")
    return parser.parse_args()


def chosen(rows: Iterable[Experiment], scale: float, shortest: float) -> list[Experiment]:
    """The rows of a scale, each once, with its own seconds: `shortest` at least."""
    found: dict[str, Experiment] = {}
    for row in rows:
        if not row.least <= scale < row.most:
            continue
        seconds = max(row.seconds * scale, shortest)
        scaled = Experiment(**(asdict(row) | {"seconds": seconds}))
        if row.name not in found or found[row.name].seconds < seconds:
            found[row.name] = scaled
    return list(found.values())


def table_of(kind: str, folder: Path) -> Path:
    """Where the finished experiments of a kind are."""
    return folder / f"{kind}.csv"


def read_all(folder: Path, machine: str | None) -> list[Result]:
    """Every finished experiment in a folder, or those of one machine, in order of their names."""
    found: dict[str, Result] = {}
    for path in folder.glob("*.csv"):
        found |= read_runs(path)
    results = [found[name] for name in sorted(found)]
    return [result for result in results if machine in (None, result["machine"])]


def machines(results: Sequence[Result]) -> str:
    """What ran the experiments; where there are several, with what each of them ran."""
    ran: dict[str, dict[str, int]] = {}
    for result in results:
        what = f"{result['kind']} of {result['problem']}, {result['dimension']} dimensions"
        counts = ran.setdefault(result["machine"], {})
        counts[what] = counts.get(what, 0) + 1
    if len(ran) == 1:
        return next(iter(ran))
    listed = {name: "; ".join(f"{what} ({n})" for what, n in c.items()) for name, c in ran.items()}
    return "\n\n".join(f"{name} Ran here: {what}." for name, what in listed.items())


def write_csv(path: Path, rows: Sequence[Result]) -> None:
    """Rows of equal columns as a table."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )


def run_all(
    rows: Sequence[Experiment],
    folder: Path,
    runners: dict[str, Callable[[Experiment], Result]],
    console: Console,
    machine: str,
    num_cores: int,
    compilation: dict[str, float],
    again: bool = False,
) -> None:
    """Every row that is not finished yet, `num_cores` of them at a time, each on its own core.

    `compilation` is what compiling and warming up add to a row's own seconds, by kind; it is for
    the time left and nothing else.
    """

    def expected(row: Experiment) -> float:
        return row.seconds + compilation[row.kind]

    folder.mkdir(parents=True, exist_ok=True)
    kinds = {row.kind for row in rows}
    kept = {kind: read_runs(table_of(kind, folder)) for kind in kinds}
    left = [row for row in rows if again or _wanting(kept[row.kind].get(row.name), row, machine)]
    if len(left) < len(rows):
        console.print(f"{len(rows) - len(left)} of {len(rows)} experiments are already there")
    if not left:
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    pool = PinnedPool(cores(num_cores))
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(left), left="")
        waiting = {pool.submit(_run, row, runners[row.kind], folder, machine): row for row in left}
        total, done = sum(map(expected, left)), 0.0
        try:
            for future in as_completed(waiting):
                future.result()
                row = waiting[future]
                # Rows differ in length by a hundredfold, so time left is not counted in rows.
                done += expected(row)
                minutes = (progress.tasks[0].elapsed or 0.0) * (total - done) / done / 60
                progress.update(task, description=row.name, left=f"{minutes:.0f} min left")
                progress.advance(task)
        except BaseException:
            pool.close(cancel=True)
            raise
    pool.close()


def _run(
    row: Experiment, runner: Callable[[Experiment], Result], folder: Path, machine: str
) -> None:
    result = asdict(row) | {"machine": machine} | runner(row)
    # Some measure seconds of their own, which do not tell whether a run was as long as it should be.
    if result["seconds"] != row.seconds:
        result[GIVEN] = row.seconds
    add_run(table_of(row.kind, folder), row.name, result)
    # Programs of one experiment are nobody else's, and a process may hold only so many.
    jax.clear_caches()


def _wanting(kept: Result | None, row: Experiment, machine: str) -> bool:
    if kept is None or kept["machine"] != machine:
        return True
    return kept.get(GIVEN, kept["seconds"]) < 0.99 * row.seconds
