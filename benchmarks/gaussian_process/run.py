"""What a Gaussian process costs: value, gradient, the rungs of a ladder, and effective draws.

    python benchmarks/gaussian_process/run.py
    python benchmarks/gaussian_process/run.py --rounds 20 --out elsewhere/gaussian_process.csv

The table goes beside the CSV as .md. Goals: value and gradient together at most 5 x the value; the
sizes of a ladder together at most 1.6 x the largest; NUTS at least 2 x as many effective draws a
CPU second as BlackJAX's on the density written plainly.
"""

import argparse
import itertools
import sys
from pathlib import Path

import numpy as np

# What the benchmarks share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

from costs import LADDER, milliseconds
from kept import keep_figures
from sampling import MOVES, NUM_CHAINS, NUM_INPUTS, NUM_ROWS, comparisons

from temperance.programs.scope import scope

HERE = Path(__file__).parent
COLUMNS = ("measure", "rows", "inputs", "what", "value", "unit", "goal")
PACKAGES = ("jax", "jaxlib", "blackjax", "numpy", "scipy")
TEXT = f"""\
Squared exponential kernel, double precision unless said, one BLAS thread, CPU time. A cost is that of
one call inside a compiled loop, the least over rounds in which all take turns. *By autodiff*
is the same density written plainly in JAX. The ladder has the sizes 1024 * 2^(-m/2); *alone*
are a factor with its z, and an inverse, of a covariance that is there. From these times
follows what an iteration of SPT or STT would cost if nothing else took any.
Sampling is {NUM_ROWS} rows and {NUM_INPUTS} inputs, {NUM_CHAINS} chains, warm-up counted and
compilation not; BlackJAX's NUTS has its window adaptation and runs chain after chain. *Single*
is HMC that follows gradients of single precision and decides in double."""
SIZES = (256, 512, 1024)
LADDER_KINDS = {
    "value": "value",
    "both": "value and gradient",
    "single": "value and gradient in single precision",
    "factor": "factor alone",
    "inverse": "inverse alone",
}
NUM_STEPS = 5
GOALS = {"SPT": 1.65, "STT": 2.2}
INPUTS = (8, 18)


def row(*values):
    return dict(zip(COLUMNS, values, strict=True))


def cost_rows(num_rounds):
    for num_inputs in INPUTS:
        kinds = ("value", "both", "autodiff")
        found = milliseconds(kinds, SIZES, num_inputs, num_rounds)
        for n in SIZES:
            value, both, autodiff = (found[kind, n] for kind in kinds)
            yield row("cost", n, num_inputs, "value", value, "ms", "")
            yield row("cost", n, num_inputs, "value and gradient", both, "ms", "")
            yield row("cost", n, num_inputs, "the same by autodiff", autodiff, "ms", "")
            yield row("cost", n, num_inputs, "gradient / value", both / value, "ratio", 5)
            yield row("cost", n, num_inputs, "autodiff / value", autodiff / value, "ratio", "")


def ladder_rows(num_rounds):
    ideal = sum((n / LADDER[0]) ** 3 for n in LADDER)
    for num_inputs in INPUTS:
        found = milliseconds(LADDER_KINDS, LADDER, num_inputs, num_rounds)
        for n in LADDER:
            for kind, name in LADDER_KINDS.items():
                yield row("ladder", n, num_inputs, name, found[kind, n], "ms", "")
        for kind, name in LADDER_KINDS.items():
            total = sum(found[kind, n] for n in LADDER) / found[kind, LADDER[0]]
            goal = 1.6 if kind == "both" else ""
            yield row("ladder", "all", num_inputs, f"sum / largest, {name}", total, "ratio", goal)
        yield row("ladder", "all", num_inputs, "sum / largest, cubes alone", ideal, "ratio", "")
        for name, kinds in {
            "as they are": ("value", "both", "both"),
            "hot gradients in single precision": ("value", "both", "single"),
            "matrices alone": ("factor", "inverse", "inverse"),
        }.items():
            for sampler, cost in iterations(found, *kinds).items():
                what = f"{sampler} / inner HMC, {name}"
                yield row("ladder", "all", num_inputs, what, cost, "ratio", GOALS[sampler])


def iterations(found, value, both, hot):
    """What an iteration of five leapfrog steps costs on these rungs, in iterations of the inner HMC.

    Gradients are of kind `both` at the target and `hot` elsewhere. Every move ends with a value. SPT compares every other pair of rungs, each on the rows of the
    colder one; on the way down of STT the end of a move is looked at on the next larger size.
    """
    kinds = [both] + [hot] * (len(LADDER) - 1)
    steps = [NUM_STEPS * found[k, n] + found[value, n] for k, n in zip(kinds, LADDER, strict=True)]
    looks = [found[value, n] for n in LADDER]
    spt = sum(steps) + sum(looks[:-1]) / 2
    stt = sum(steps) + sum(steps[1:-1]) + sum(looks[:-1])
    return {"SPT": spt / steps[0], "STT": stt / steps[0]}


def sampling_rows(num_warmup, num_draws, num_seeds):
    rates, means = {}, {}
    for name, seed, size, seconds, mean in comparisons(num_warmup, num_draws, range(num_seeds)):
        rates.setdefault(name, []).append(size / seconds)
        means.setdefault(name, []).append(mean)
        what = f"{name}, seed {seed}"
        yield row("sampling", NUM_ROWS, NUM_INPUTS, f"{what}: worst ESS", size, "draws", "")
        yield row("sampling", NUM_ROWS, NUM_INPUTS, f"{what}: CPU time", seconds, "s", "")
        yield row(
            "sampling", NUM_ROWS, NUM_INPUTS, f"{what}: ESS a second", size / seconds, "1/s", ""
        )
    theirs = np.median(rates["blackjax nuts"])
    for name in MOVES:
        ratio = np.median(rates[name]) / theirs
        what = f"{name} / blackjax nuts, medians over seeds"
        yield row(
            "sampling", NUM_ROWS, NUM_INPUTS, what, ratio, "ratio", 2 if name == "nuts" else ""
        )
    apart = max(
        float(np.abs(np.mean(means[name], 0) - np.mean(means["blackjax nuts"], 0)).max())
        for name in MOVES
    )
    what = "largest difference of posterior means"
    yield row("sampling", NUM_ROWS, NUM_INPUTS, what, apart, "log scale", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=400)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    out = HERE.parent / "results" / "gaussian_process.csv"
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args()
    rows = itertools.chain(
        cost_rows(options.rounds),
        ladder_rows(options.rounds),
        sampling_rows(options.warmup, options.draws, options.seeds),
    )
    with scope("double"):
        keep_figures(rows, options.out, "Gaussian processes", TEXT, PACKAGES)


if __name__ == "__main__":
    main()
