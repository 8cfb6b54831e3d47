"""What an iteration costs relative to the inner sampler: the paper's figure 1 and section 4.4.

Every sampler of one problem is compiled first. Then they take turns, each running a block of
iterations, and a cost is the median over rounds of the ratio of times within a round: whatever else
the machine does falls on all of them alike. One chain, which starts at the parameters that the data
were drawn with, a point of the posterior, and goes on from block to block. Wall time and CPU time.
What was evaluated is counted by the samplers themselves, in rows or, where terms look at each other,
in units of n^3.
"""

import time
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from experiment import Experiment, Result
from problems import problem_named, truth
from settings import SAMPLERS, sampler_named, theory, theory_with_swaps

import temperance as tp
from temperance.engine.loop import Blocks
from temperance.methods import method_like
from temperance.methods.report.work import VALUE
from temperance.programs.scope import scope

# About how long a block of the inner sampler lasts, and how many rounds there are at least.
BLOCK_SECONDS, FEWEST_ROUNDS, MOST_ROUNDS = 0.1, 5, 60
# Iterations over which evaluations are counted.
COUNTED = 4
# What a block's buffers hold.
BLOCK_SIZE = 2048
NORMAL_ROWS, NORMAL_DIMENSION = (64, 128, 256, 512, 1024, 2048), 50
GP_ROWS, GP_DIMENSION = (64, 128, 256, 512, 1024), 18
# HMC in its other order, and with gradients of single precision: on hot subsamples, or everywhere.
VARIANTS = ("plain velocity", "spt hot", "stt hot", "plain always", "spt always", "stt always")
# At a small scale one size for HMC.
ALWAYS = {("normal", 2048), ("gp", 512)}


def experiments() -> list[Experiment]:
    """One row a problem and move: its samplers take turns."""
    rows = []
    for problem, many, dimension in (
        ("normal", NORMAL_ROWS, NORMAL_DIMENSION),
        ("gp", GP_ROWS, GP_DIMENSION),
    ):
        for num_rows in many:
            always = (problem, num_rows) in ALWAYS
            seconds = 600.0 if problem == "gp" and num_rows > 256 else 120.0
            rows += [
                Experiment("cost", problem, num_rows, dimension, "hmc", "all", seconds,
                           least=0.0 if always else 0.05),
                Experiment("cost", problem, num_rows, dimension, "metropolis", "all", seconds,
                           least=0.05),
            ]  # fmt: skip
    return rows


def run_cost(row: Experiment) -> Result:
    """Ratios of wall time, CPU time and what was evaluated, by sampler."""
    problem = problem_named(row.problem, row.num_rows, row.dimension, None)
    names = [*SAMPLERS, *VARIANTS] if row.move == "hmc" else [*SAMPLERS]
    with scope("double"):
        loops = {name: _loop(row, problem, name) for name in names}
        # The first run compiles.
        for _, run in loops.values():
            run(1)
        counts = {
            n: counted(problem, sampler, run(COUNTED)) / COUNTED
            for n, (sampler, run) in loops.items()
        }
        num_iterations = _block_length(loops["plain"][1])
        wall, cpu = _take_turns([run for _, run in loops.values()], num_iterations, row.seconds)
    found: Result = {"num_iterations": num_iterations, "num_rounds": len(wall), "costs": {}}
    for column, name in enumerate(names):
        found["costs"][name] = {
            "wall": _ratio(wall, column),
            "cpu": _ratio(cpu, column),
            "microseconds": 1e6 * float(np.median(wall[:, column])) / num_iterations,
            "cpu_microseconds": 1e6 * float(np.median(cpu[:, column])) / num_iterations,
            "evaluated": counts[name] / counts["plain"],
            "theory": theory(name.split()[0], row.num_rows, row.problem),
            "with_swaps": theory_with_swaps(name.split()[0], row.num_rows, row.problem, row.move),
        }
    return found


def _block_length(run: Any) -> int:
    """Iterations in a block: so many that starting it is a small part of its time."""

    def seconds(count: int) -> float:
        began = time.perf_counter()
        run(count)
        return time.perf_counter() - began

    start = min(seconds(1) for _ in range(3))
    if start > BLOCK_SECONDS:
        return 1
    each = max((min(seconds(65) for _ in range(3)) - start) / 64, 1e-7)
    return int(np.clip(max(BLOCK_SECONDS, 20 * start) / each, 1, BLOCK_SIZE))


def _loop(row: Experiment, problem: tp.Problem, name: str) -> tuple[Any, Any]:
    """A sampler, and the loop of `sample` over it."""
    sampler = sampler_named(name, problem, row.problem, row.move)
    start = jax.tree.map(jnp.asarray, truth(row.problem, row.dimension))
    state = jax.tree.map(lambda leaf: leaf[None], sampler.init(start))
    blocks = Blocks(sampler, jax.random.key(0), 1, BLOCK_SIZE)
    carry, done = (state, None), 0

    def run(num_iterations: int) -> dict[str, np.ndarray]:
        nonlocal carry, done
        carry, draws = blocks.draw(carry, done, num_iterations)
        done += num_iterations
        return draws

    return sampler, run


def counted(problem: tp.Problem, sampler: Any, draws: dict[str, np.ndarray]) -> float:
    """What all iterations evaluate, in rows, or in cubes where terms look back."""
    run = SimpleNamespace(
        draws=draws, sampler=sampler, sweeps_per_draw=1, num_rows=problem.num_rows
    )
    done = method_like(sampler).report.work(run)
    if problem.independent:
        return done["num_row_evaluations"]
    # Off the subsamples every evaluation is one of all rows.
    alone = (1 - VALUE) * float(draws["num_values"].sum())
    return done.get("num_cubes", float(draws["num_evaluations"].sum()) - alone)


def _take_turns(runs: list[Any], count: int, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Wall and CPU seconds (round, sampler)."""
    wall, cpu = [], []
    began = time.perf_counter()
    while len(wall) < MOST_ROUNDS:
        if len(wall) >= FEWEST_ROUNDS and time.perf_counter() - began > seconds:
            break
        times = np.zeros((2, len(runs)))
        # Each follows each other one equally often: what one leaves in the caches counts.
        for place in np.roll(np.arange(len(runs)), len(wall)):
            before = time.perf_counter(), time.process_time()
            runs[place](count)
            times[:, place] = time.perf_counter() - before[0], time.process_time() - before[1]
        wall.append(times[0])
        cpu.append(times[1])
    return np.array(wall), np.array(cpu)


def _ratio(seconds: np.ndarray, column: int) -> list[float]:
    """Quartiles of the ratio to the inner sampler, the median in the middle."""
    return np.quantile(seconds[:, column] / seconds[:, 0], [0.25, 0.5, 0.75]).tolist()
