"""Two real regressions: the robot arm kin40k with 500 rows, and the elevators with 200.

Inputs and response are standardised on the rows that are used. Each sampler warms up and then draws for some seconds:

    ensemble         over what the chosen route makes fast, the route that `fast_gaussian_process` chooses
    one at a time    Metropolis of every variable in turn, by Cholesky
    nuts             BlackJAX's NUTS

Predictions are for 500 other rows, averaged over draws, and for ensembles over members.
"""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from demonstration_tables import Rows
from drawing import drawn_for
from experiment import Experiment, Result
from sections import mean_and_error, table

import temperance as tp
from temperance.estimates.diagnostics import effective_size

PROBLEMS = {"kin40k": 500, "elevators": 200}
INPUTS = {"kin40k": 8, "elevators": 18}
NUM_TEST, NUM_CHAINS, NUM_WARMUP = 500, 2, 300
SECONDS, NUM_SEEDS = 120.0, 3
SAMPLERS = ("ensemble", "one at a time", "nuts")
COMPILATION = {"regression": 120.0}
FEW_ROWS, FEW_INPUTS = 30, 2


def experiments() -> list[Experiment]:
    return [
        Experiment(
            "regression",
            name,
            size,
            INPUTS[name],
            "any",
            sampler,
            SECONDS,
            seed,
            least=0.0 if seed == 0 else 0.2,
        )
        for seed in range(NUM_SEEDS)
        for name, size in PROBLEMS.items()
        for sampler in SAMPLERS
    ]


def smoke() -> list[Experiment]:
    return [Experiment("regression", "made", FEW_ROWS, FEW_INPUTS, "any", "ensemble", 0.05)]


def needs_data(row: Experiment) -> bool:
    return row.problem in PROBLEMS


def read(name: str, num: int, folder: Path | None) -> tuple[np.ndarray, ...]:
    """Rows to learn from and rows to predict, all in units of the former."""
    rng = np.random.default_rng(0)
    if folder is None or name == "made":
        z = rng.normal(size=(num + NUM_TEST, FEW_INPUTS))
        table = np.column_stack([z, np.sin(2 * z[:, 0]) + 0.2 * rng.normal(size=len(z))])
    else:
        with gzip.open(folder / "regression" / f"{name}.csv.gz", "rt") as file:
            table = np.loadtxt(file, delimiter=",")
        table = table[rng.permutation(len(table))[: num + NUM_TEST]]
    learnt = table[:num]
    spread = learnt.std(axis=0)
    table = (table - learnt.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return table[:num, :-1], table[:num, -1], table[num:, :-1], table[num:, -1]


def run_regression(row: Experiment, data: Path | None) -> Result:
    z, y, new, truth = read(row.problem, row.num_rows, data)
    route = "auto" if row.sampler == "ensemble" else "spectral"
    target = tp.fast_gaussian_process(z, y, route=route)
    moves = {
        "ensemble": tp.ensemble(),
        "one at a time": tp.single_site(),
        "nuts": tp.nuts(max_num_doublings=5),
    }
    sampled = target
    if row.sampler != "ensemble":
        sampled = tp.Problem(
            target.log_prior, target.terms, target.data, target.draw_prior, independent=False
        )
    trees: list[Any] = []
    warmup = NUM_WARMUP if row.seconds > 1 else 10

    def call(num_draws: int, checkpoint: Path) -> Any:
        tree = tp.sample(
            sampled, "plain", moves[row.sampler], num_draws=num_draws, num_warmup=warmup,
            num_chains=NUM_CHAINS, seed=row.seed, progress=False, checkpoint=checkpoint,
        )  # fmt: skip
        trees[:] = [tree]
        return tree

    found = drawn_for(row.seconds, call)
    log_sigma = np.asarray(trees[0]["posterior"]["log_noise"])
    predicted = tp.predict(target, trees[0], new, noisy=True, num_draws=50)
    variance = predicted.variance
    score = -0.5 * np.log(2 * np.pi * variance) - 0.5 * (truth - predicted.mean) ** 2 / variance
    return {
        "route": target.terms.route if row.sampler == "ensemble" else "cholesky",
        "cpu": found["cpu"],
        "num_slow": found["rows"] / row.num_rows,
        "ess_log_sigma": float(effective_size(log_sigma)),
        "mean_log_sigma": float(log_sigma.mean()),
        "error": float(np.sqrt(np.mean((truth - predicted.mean) ** 2))),
        "score": float(score.mean()),
    }


WHAT = {
    "ms a slow evaluation": lambda r: 1e3 * r["cpu"] / r["num_slow"],
    "ESS of log sigma per 1000 slow evaluations": lambda r: (
        1e3 * r["ess_log_sigma"] / r["num_slow"]
    ),
    "ESS per CPU second": lambda r: r["ess_log_sigma"] / r["cpu"],
    "mean log sigma": lambda r: r["mean_log_sigma"],
    "held-out error": lambda r: r["error"],
    "held-out log score": lambda r: r["score"],
}


def write(rows: Rows, folder: Path) -> list[str]:  # noqa: ARG001
    lines = []
    for name in dict.fromkeys(r["problem"] for r in rows):
        for sampler in SAMPLERS:
            found = [r for r in rows if (r["problem"], r["sampler"]) == (name, sampler)]
            if found:
                cells = [mean_and_error([what(r) for r in found]) for what in WHAT.values()]
                lines.append(
                    [name, found[0]["num_rows"], sampler, len(found), found[0]["route"], *cells]
                )
    text = (
        "Two chains a run; means over runs, ± one standard error where there are several. A gradient counts as one "
        "slow evaluation."
    )
    return table(
        "Real regressions", text, ["data", "rows", "sampler", "runs", "route", *WHAT], lines
    )


def draw(rows: Rows, folder: Path) -> None:
    """Nothing: the table says it."""


RUNNERS = {"regression": run_regression}
