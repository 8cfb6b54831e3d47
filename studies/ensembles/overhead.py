"""What an ensemble of 49 costs over the same Metropolis without it, in one run.

Samplers take turns, and of each the least CPU time over rounds counts, for one slow evaluation:

    single      one-at-a-time Metropolis of the same slow variables, by the same route
    ensemble    the same with an ensemble over the fast variables, of each base measure

and, for the spectral route, LAPACK's own eigendecomposition of a matrix of that size, by NumPy.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from demonstration_tables import Rows
from experiment import Experiment, Result
from neal_problem import NUM_INPUTS, PRIOR_SD, rows
from sections import table

import temperance as tp
from temperance.ladders.ladder import SingleRung
from temperance.problems.problem import densities_of
from temperance.programs.compiled import traceable
from temperance.programs.scope import scope

SIZES, MEMBERS, ROUNDS, SECONDS = (100, 200, 400), 49, 60, 60.0
BASES = ("independent", "exchangeable", "grid")
COMPILATION = {"overhead": 60.0}
# Slow evaluations of one round, at 100 rows.
COUNT = 1500


def experiments() -> list[Experiment]:
    return [_row(route, size, SECONDS) for size in SIZES for route in ("cholesky", "spectral")]


def smoke() -> list[Experiment]:
    return [_row("cholesky", 20, 0.1)]


def _row(route: str, size: int, seconds: float) -> Experiment:
    return Experiment("overhead", "synthetic", size, NUM_INPUTS, "single", route, seconds)


def needs_data(row: Experiment) -> bool:  # noqa: ARG001
    return False


def run_overhead(row: Experiment, data: Path | None) -> Result:  # noqa: ARG001
    """Microseconds for one slow evaluation of each sampler."""
    with scope("double"):
        timed = samplers(row.sampler, row.num_rows)
        if row.sampler == "spectral":
            timed["eigenvectors"] = _eigenvectors(row.num_rows)
        rounds = ROUNDS if row.seconds > 1 else 1
        count = max(NUM_INPUTS, int(COUNT * min(1.0, (100 / row.num_rows) ** 2)))
        times: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(rounds):
            for name, (call, num) in timed.items():
                before = time.process_time()
                made = call(max(1, count // num))
                times[name].append((time.process_time() - before) / made)
    return {name: 1e6 * min(taken) for name, taken in times.items()}


def samplers(route: str, num_rows: int) -> dict[str, tuple[Callable[[int], int], int]]:
    """Each sampler as a function of how many steps to make, which returns how many slow evaluations they were."""
    z, y = rows(num_rows=num_rows)
    target = tp.fast_gaussian_process(z, y, route=route)
    densities = densities_of(target)
    dimension, fast = densities.layout.dimension, target.terms.fast
    measures = {
        "independent": tp.independent(),
        "exchangeable": tp.exchangeable(np.full(len(fast), 0.4 * PRIOR_SD)),
        "grid": tp.grid((1.0, 1.1), np.full(len(fast), PRIOR_SD)),
    }
    # Without an ensemble the fast variables are not moved, so that both evaluate the same number of times.
    moves = {"single": tp.single_site()} | {
        base: tp.ensemble(members=MEMBERS, base=measures[base]) for base in BASES
    }
    factor = jnp.full((1, dimension), 0.5)
    found = {}
    for name, move in moves.items():
        placed = traceable(move.placed(target, densities.layout))
        params = tp.Params(jnp.ones((1, 1)), factor)
        sampler = tp.Plain(SingleRung(densities.whole), placed, params)
        state = eqx.filter_jit(sampler.init)(jnp.full(dimension, 0.5))
        call = _call(sampler, state)
        call(1)
        found[name] = call, dimension - (0 if name == "single" else len(fast))
    return found


def _call(sampler: Any, state: Any) -> Callable[[int], int]:
    def call(num: int) -> int:
        _, made = jax.block_until_ready(_steps(sampler, state, jnp.asarray(num)))
        return int(made)

    return call


@eqx.filter_jit
def _steps(sampler: Any, state: Any, num: jax.Array) -> Any:
    def one(i: jax.Array, carry: Any) -> Any:
        state, made = carry
        state, info = sampler.step(jax.random.fold_in(jax.random.key(0), i), state)
        return state, made + info.num_evaluations[0]

    return jax.lax.fori_loop(0, num, one, (state, jnp.zeros(())))


def _eigenvectors(num_rows: int) -> tuple[Callable[[int], int], int]:
    z, _ = rows(num_rows=num_rows)
    squares = ((z[:, None] - z[None]) ** 2).sum(-1)
    matrix = 1.0 + np.exp(-0.1 * squares) + 1e-4 * np.eye(num_rows)

    def call(num: int) -> int:
        for _ in range(num):
            np.linalg.eigh(matrix)
        return num

    return call, 1


def write(rows: Rows, folder: Path) -> list[str]:  # noqa: ARG001
    lines = []
    for row in sorted(rows, key=lambda r: (r["num_rows"], r["sampler"])):
        plain = next(
            (
                r["single"]
                for r in rows
                if r["num_rows"] == row["num_rows"] and r["sampler"] == "cholesky"
            ),
            float("nan"),
        )
        worst = max(row[base] for base in BASES)
        own = row.get("eigenvectors")
        lines.append(
            [
                row["num_rows"], row["sampler"], f"{row['single']:.0f}", *(f"{row[b]:.0f}" for b in BASES),
                f"{worst / row['single']:.3f}", f"{worst / plain:.2f}",
                "" if own is None else f"{worst / own:.2f}",
            ]
        )  # fmt: skip
    head = [
        "rows", "route", "without", *BASES, "most, over the same without", "over Metropolis by Cholesky",
        "over LAPACK's eigenvectors",
    ]  # fmt: skip
    text = "CPU microseconds for one slow evaluation, ensembles of 49."
    return table("What an ensemble costs", text, head, lines)


def draw(rows: Rows, folder: Path) -> None:
    """Nothing: the table says it."""


RUNNERS = {"overhead": run_overhead}
