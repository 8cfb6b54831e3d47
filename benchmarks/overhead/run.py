"""What our loop costs beyond its moves: ratios of CPU time, evaluations counted, laws compared.

    python benchmarks/overhead/run.py
    python benchmarks/overhead/run.py --rounds 100 --out elsewhere/overhead.csv

The table goes beside the CSV as .md. Goals: a sweep of parallel tempering at most 1.1 x the moves
in it, plain HMC at most 1.05 x BlackJAX's, and not one evaluation more than the algorithm needs.
"""

import argparse
import csv
import sys
from pathlib import Path

# What machine this is, is known one floor up.
sys.path.append(str(Path(__file__).parents[1]))

from compare import costs, largest_z
from counts import evaluations
from programs import (
    NUM_COEFFICIENTS,
    NUM_LEAPFROG,
    NUM_ROWS,
    NUM_RUNGS,
    plain_blackjax,
    plain_ours,
    pt_moves,
    pt_ours,
    pt_reinitialised,
    single,
    tempered,
)
from rich.console import Console
from run_facts import machine, versions

from temperance.programs.scope import scope

HERE = Path(__file__).parent
COLUMNS = ("measure", "target", "chains", "loop", "against", "value", "low", "high", "goal", "us")
# Short enough that many turns fall between two interruptions of a busy machine.
NUM_SWEEPS = {"gaussian": 2000, "logistic": 100, "pt": 10}
NUM_LAW_DRAWS = {"gaussian": 20_000, "logistic": 3000}


def pt_rows(num_rounds):
    for num_chains in (1, 4):
        for exact_hottest in (True, False):
            setting, n = tempered(num_chains, exact_hottest), NUM_SWEEPS["pt"]
            loops = [pt_ours(setting, n), pt_ours(setting, n, tuned=True)]
            if not exact_hottest:
                loops.append(pt_reinitialised(setting, n))
            target = "logistic, hottest drawn" if exact_hottest else "logistic, hottest moved"
            found = costs([*loops, pt_moves(setting)], n, num_rounds)
            yield from cost_rows("PT sweep", target, num_chains, found, 1.1)


def plain_rows(num_rounds):
    for target in ("gaussian", "logistic"):
        for num_chains in (1, 4):
            setting, n = single(target, num_chains), NUM_SWEEPS[target]
            ours = [plain_ours(setting, n), plain_ours(setting, n, tuned=True)]
            found = costs([*ours, plain_blackjax(setting, n)], n, 2 * num_rounds)
            yield from cost_rows("plain HMC", target, num_chains, found, 1.05)


def cost_rows(measure, target, num_chains, found, goal):
    against = found[-1].name
    for cost in found:
        ours = cost.name.startswith("ours")
        row = measure, target, num_chains, cost.name, against, cost.ratio, cost.low, cost.high
        yield dict(zip(COLUMNS, (*row, goal if ours else "", cost.microseconds), strict=True))


def law_rows():
    for target, size in NUM_LAW_DRAWS.items():
        setting = single(target, 4)
        one, other = (make(setting, size).run(size) for make in (plain_ours, plain_blackjax))
        z = largest_z(one, other)
        row = "largest z of moments", target, 4, "ours", "blackjax", z, "", "", 4.0, ""
        yield dict(zip(COLUMNS, row, strict=True))


def count_rows():
    for exact_hottest in (True, False):
        found = evaluations(exact_hottest)
        target = "logistic, hottest drawn" if exact_hottest else "logistic, hottest moved"
        for kind in ("values", "gradients"):
            row = f"{kind} a PT sweep", target, 1, "ours", "needed", found[kind], "", ""
            yield dict(zip(COLUMNS, (*row, found["needed"], ""), strict=True))


INTRODUCTION = f"""\
Logistic regression: {NUM_ROWS} rows, {NUM_COEFFICIENTS} coefficients. Gaussian: ten dimensions. HMC
of {NUM_LEAPFROG} leapfrog steps; parallel tempering on {NUM_RUNGS} rungs; double precision. A ratio
is that of CPU times within one round of loops that take turns: the median over rounds, and in
brackets the quartiles.

*ours* is the loop of `sample` with a sampler built by hand; *tuned*, with one that was warmed up,
whose program carries what warm-up learnt. *moves* are the same moves in a bare loop, without swaps
and records. *reinitialised* rebuilds BlackJAX's HMC after every swap. *blackjax* is its HMC in a
bare `lax.scan`.
"""


def markdown(rows):
    lines = ["# Overhead", "", f"{machine()}. {versions()}.", "", *INTRODUCTION.splitlines(), ""]
    lines += [
        "| what | target | chains | loop | us a sweep | ratio | goal |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["us"] == "":
            continue
        lines.append(
            f"| {row['measure']} | {row['target']} | {row['chains']} | {row['loop']} "
            f"| {row['us']:.1f} | {row['value']:.3f} ({row['low']:.2f} to {row['high']:.2f}) "
            f"| {row['goal']} |"
        )
    lines += ["", "| what | target | found | goal |", "|---|---|---|---|"]
    lines += [
        f"| {row['measure']} | {row['target']} | {row['value']:.4g} "
        f"| {'at most' if row['against'] == 'blackjax' else 'exactly'} {row['goal']} |"
        for row in rows
        if row["us"] == ""
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="turns of each loop, at least")
    parser.add_argument("--out", type=Path, default=HERE.parent / "results" / "overhead.csv")
    arguments = parser.parse_args()
    console, rows = Console(), []
    parts = (
        ("counting evaluations", count_rows()),
        ("comparing laws", law_rows()),
        ("plain HMC", plain_rows(arguments.rounds)),
        ("parallel tempering", pt_rows(arguments.rounds)),
    )
    with scope("double"), console.status("starting") as status:
        for name, part in parts:
            status.update(name)
            for row in part:
                rows.append(row)
                chains = f"{row['chains']} chain" + "s" * (row["chains"] > 1)
                console.print(
                    f"{row['measure']}, {row['target']}, {chains}: {row['loop']} {row['value']:.4g}"
                )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )
    arguments.out.with_suffix(".md").write_text(markdown(rows))
    console.print(f"Wrote {arguments.out} and the table beside it", soft_wrap=True)


if __name__ == "__main__":
    main()
