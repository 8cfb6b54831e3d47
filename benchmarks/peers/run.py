"""Run the samplers side by side, and write the table and the picture.

    python benchmarks/peers/run.py                       # what is missing from benchmarks/results/peers.csv
    python benchmarks/peers/run.py --again               # everything anew
    python benchmarks/peers/run.py --samplers temperance_pt blackjax_smc --seeds 20 --again

Each sampler runs in a process of its own, one after the other. Its rows are saved when it ends, so that an interrupted
run goes on from there; one that fails is reported with its last line of error and is tried again next time.
"""

import argparse
import platform
import sys
from pathlib import Path

# What machine this is, and how processes are run, is known one floor up.
sys.path.append(str(Path(__file__).parents[1]))

from environments import HERE, interpreter
from processes import json_rows
from rich.console import Console
from roster import ROSTER
from run_facts import machine
from table import draw, errors, markdown, read, summarise, write


def measured(name, seeds, max_seconds, say):
    """The rows of one sampler; raises RuntimeError with one line that says what went wrong."""
    say("setting up")
    python = interpreter(ROSTER[name].environment)
    command = [python, "-W", "ignore", str(HERE / "measure.py"), name, *map(str, seeds)]
    rows = []
    say("first run")
    for row in json_rows(command, max_seconds):
        rows.append(row)
        say(f"seed {min(len(rows), len(seeds))} of {len(seeds)}")
    first, *rest = rows
    where = f"{machine()}, Python {platform.python_version()}"
    return [
        row
        | errors(row["weight"], row["log_z"])
        | {"first_cpu_s": first["cpu_s"], "machine": where, "failure": ""}
        for row in rest
    ]


def complete(rows, name, seeds):
    return set(seeds) <= {
        int(row["seed"]) for row in rows if row["sampler"] == name and not row["failure"]
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--samplers",
        nargs="+",
        choices=ROSTER,
        help="which ones; those that take minutes a run are left out",
    )
    parser.add_argument("--all", action="store_true", help="the slow ones too")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds each")
    parser.add_argument(
        "--again", action="store_true", help="measure also what the CSV already has"
    )
    parser.add_argument(
        "--max-seconds",
        type=int,
        default=3600,
        help="for one sampler, all seeds together; 0 for no limit",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=HERE.parent / "results" / "peers.csv",
        help="the CSV; the others go beside it",
    )
    arguments = parser.parse_args()

    names = arguments.samplers or [
        name for name, entry in ROSTER.items() if arguments.all or not entry.optional
    ]
    seeds = list(range(arguments.seeds))
    rows = read(arguments.out)
    console = Console()
    for name in names:
        label = ROSTER[name].label
        if complete(rows, name, seeds) and not arguments.again:
            console.print(f"[dim]{label}: already in {arguments.out.name}[/]")
            continue
        with console.status(label) as status:
            try:
                new = measured(
                    name,
                    seeds,
                    arguments.max_seconds,
                    lambda stage, label=label: status.update(f"{label}: {stage}"),
                )
            except (RuntimeError, OSError) as error:
                new = [{"sampler": name, "failure": str(error)}]
        rows = [row for row in rows if row["sampler"] != name] + new
        write(arguments.out, rows)
        rows = read(arguments.out)
        (result,) = summarise([row for row in rows if row["sampler"] == name])
        if result.failure:
            console.print(f"[red]{label}: failed:[/] {result.failure}", highlight=False)
        else:
            console.print(
                f"[green]{label}[/]: weight error {result.weight_error:.3f}, log Z error {result.log_z_error:.3f}, "
                f"{result.cpu_s:.2f} CPU s (first run {result.first_cpu_s:.1f})"
            )

    arguments.out.with_suffix(".md").write_text(markdown(rows))
    draw(rows, arguments.out.with_suffix(".png"))
    console.print(
        f"Wrote {arguments.out}, with the table and the picture beside it", soft_wrap=True
    )


if __name__ == "__main__":
    main()
