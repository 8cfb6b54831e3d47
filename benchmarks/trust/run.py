"""Measure trust: how often a run is wrong, wrong without a warning, or right with one.

    python benchmarks/trust/run.py                                # what is missing from benchmarks/results/trust.csv
    python benchmarks/trust/run.py --seeds 0:20 --samplers temperance former
    python benchmarks/trust/run.py --seeds 0:0 --runs 10          # the fixed targets alone
    python benchmarks/trust/run.py --again                        # everything anew
    python benchmarks/trust/run.py --seeds 0:0 --runs 0           # only the tables, from the CSV

Every run is a process of its own. Its row is saved when it ends, so that an interrupted measurement goes on from
there; one that crashes or takes too long is recorded as a failure and is tried again next time.
"""

import argparse
import io
import platform
import subprocess
import sys
import tarfile
import tempfile
from contextlib import ExitStack
from pathlib import Path

# The modules here are named from the root of the repository.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.processes import json_rows, read_rows, write_rows
from benchmarks.run_facts import machine
from benchmarks.trust.roster import ROSTER
from benchmarks.trust.table import (
    COLUMNS,
    FIXED,
    NUMBERS,
    by_family,
    failed,
    fixed_targets,
    in_all,
    markdown,
    order,
    samplers_in,
)
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "benchmarks" / "results" / "trust.csv"
NUM_FIXED = 3


def git(*arguments):
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], check=True, capture_output=True
    ).stdout


def sources(commit, stack):
    """The folder of the sources of a commit, which lasts as long as the stack; of the working tree without one."""
    if not commit:
        return ROOT / "src"
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "src"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def version(commit):
    return commit or git("describe", "--always", "--dirty").decode().strip()


def measured(name, case, source, max_seconds):
    """The row of one run; what went wrong is in its column `failure`."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.trust.measure", name, case]
    settings = {"PYTHONPATH": f"{source}:{ROOT}"}
    where = {"machine": f"{machine()}, Python {platform.python_version()}", "failure": ""}
    try:
        (row,) = json_rows(command, max_seconds, settings)
    except (RuntimeError, OSError, ValueError) as error:
        from benchmarks.trust.measure import case_and_seed

        known, seed = case_and_seed(case)
        row = {"sampler": name, "case": case, "name": known.name, "family": known.family}
        row |= {"dimension": known.dimension, "seed": seed}
        row |= {"exact_probability": known.probability, "exact_log_z": known.log_z}
        return row | where | {"failure": str(error) or "no message"}
    return row | where


def cases_of(seeds, runs):
    fixed = [f"table-{row}-{run}" for row in range(NUM_FIXED) for run in range(runs)]
    return [*map(str, seeds), *fixed]


def seeds_of(text):
    try:
        first, last = text.split(":")
        return range(int(first), int(last))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"wanted FIRST:LAST, such as 0:200, got {text!r}"
        ) from None


def shown(title, header, body):
    table = Table(*header, title=title, title_justify="left")
    for cells in body:
        table.add_row(*map(str, cells))
    return table


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seeds",
        type=seeds_of,
        default=range(1000, 1200),
        help="of the random targets, FIRST:LAST",
    )
    parser.add_argument("--runs", type=int, default=10, help="of each fixed target")
    parser.add_argument("--samplers", nargs="+", choices=ROSTER, default=list(ROSTER))
    parser.add_argument(
        "--again", action="store_true", help="measure also what the CSV already has"
    )
    parser.add_argument("--max-seconds", type=int, default=300, help="for one run; 0 for no limit")
    parser.add_argument("--out", type=Path, default=OUT, help="the CSV; the table goes beside it")
    arguments = parser.parse_args()

    console = Console()
    rows = {(row["sampler"], row["case"]): row for row in read_rows(arguments.out, NUMBERS)}
    cases = cases_of(arguments.seeds, arguments.runs)
    for name in arguments.samplers:
        entry = ROSTER[name]
        done = set() if arguments.again else {
            case for case in cases if (name, case) in rows and not failed(rows[name, case])
        }  # fmt: skip
        missing = [case for case in cases if case not in done]
        if not missing:
            continue
        with ExitStack() as stack:
            source = sources(entry.commit, stack)
            status = stack.enter_context(console.status(entry.label))
            for number, case in enumerate(missing, start=1):
                status.update(f"{entry.label}: case {case}, {number} of {len(missing)}")
                row = measured(name, case, source, arguments.max_seconds)
                if entry.module == "temperance_default" and not row["failure"]:
                    row["versions"] = f"temperance {version(entry.commit)} {row['versions']}"
                rows[name, case] = row
                write_rows(arguments.out, COLUMNS, sorted(rows.values(), key=order))
                if row["failure"]:
                    console.print(
                        f"[red]{entry.label}, {case}:[/] {row['failure']}", highlight=False
                    )
        rows = {(row["sampler"], row["case"]): row for row in read_rows(arguments.out, NUMBERS)}

    found = list(rows.values())
    if not found:
        parser.error(f"nothing to measure, and nothing in {arguments.out}")
    random = [row for row in found if row["family"] != FIXED]
    for name in samplers_in(random):
        console.print(shown(ROSTER[name].label, *by_family(random, name)))
    if random:
        console.print(shown("Random targets", *in_all(random)))
    fixed = [row for row in found if row["family"] == FIXED]
    if fixed:
        console.print(shown("Fixed targets", *fixed_targets(fixed)))
    arguments.out.with_suffix(".md").write_text(markdown(found))
    console.print(f"Wrote {arguments.out}, with the table beside it", soft_wrap=True)


if __name__ == "__main__":
    main()
