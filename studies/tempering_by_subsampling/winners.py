"""Where subsampling wins and where it does not: samplers as `sample` tunes them, and NUTS.

    steps       plain HMC and STT with the paper's settings, but for the step of 0.01
    plain       HMC as tuned by `sample`, alone
    pt, spt, stt   as tuned by `sample`
    nuts        BlackJAX's, with its window adaptation
    ... always  gradients in single precision, at every rung

Every one starts from draws of the prior, warms up for the same number of draws, and then draws for the
same seconds. Rates are those of drawing, per wall second and per million rows evaluated; warm-up is
told apart. The metric is diagonal, for NUTS too, but for the logistic regression, where all learn a
dense one.
"""

import time
from pathlib import Path
from typing import Any

import blackjax
import equinox as eqx
import jax
import numpy as np
from drawing import drawn_for
from experiment import Experiment, Result
from mixing import worth
from problems import FILES, problem_named

import temperance as tp
from temperance.problems.problem import densities_of
from temperance.programs.scope import scope

METHODS = ("plain", "stt", "spt", "pt", "nuts")
# With all gradients of HMC in single precision, for products of matrices take half the time there.
SINGLE_METHODS = ("plain always", "stt always", "spt always")
NUM_CHAINS = 3
NUTS_BLOCK = 8
SECONDS, NUM_WARMUP = 900.0, 1000
# Where a run is long enough to compare, one seed says too little.
MANY_SEEDS, LEAST_FOR_SEEDS = (0, 1, 2), 0.05
# Indicators that add up to one make a posterior that no diagonal metric fits.
METRIC = {"adult": "dense"}
# Steps of HMC beside the paper's 0.01, all else as in the paper.
STEPS = (0.03, 0.1, 0.3)
# (problem, rows, D, least scale, most scale, methods at less than full scale); the D of real data is
# for the file's name only. Compiling and warming up is most of a short run, so it runs fewer.
PROBLEMS = (
    ("gp", 512, 18, 0.05, np.inf, METHODS + SINGLE_METHODS),
    ("gp", 128, 18, 0.0, 0.05, METHODS),
    ("protein", 512, 9, 0.05, np.inf, METHODS + SINGLE_METHODS),
    ("protein", 128, 9, 0.0, 0.05, ("plain", "stt", "nuts")),
    ("adult", 32561, 124, 0.05, np.inf, METHODS),
    ("adult", 4096, 124, 0.0, 0.05, ("plain", "spt", "nuts")),
    ("radon", 919, 92, 0.05, np.inf, METHODS),
)


def experiments() -> list[Experiment]:
    """The methods by name on every problem, and the spread of the paper's estimator."""
    rows = [
        Experiment("tuned", problem, num_rows, dimension, "hmc", method, SECONDS,
                   seed=seed, least=least, most=most)
        for problem, num_rows, dimension, least, most, methods in PROBLEMS
        for seed in (MANY_SEEDS if least >= LEAST_FOR_SEEDS else (0,))
        for method in methods
    ]  # fmt: skip
    return [
        *rows,
        *(
            Experiment(
                "draws",
                "gp",
                num_rows,
                18,
                "hmc",
                f"{sampler} position {step}",
                600.0,
                least=least,
                most=most,
            )
            for num_rows, least, most in ((512, 0.05, np.inf), (128, 0.0, 0.05))
            for sampler in ("plain", "stt")
            for step in STEPS
        ),
        Experiment("spread", "normal", 256, 10, "metropolis", "plain", 600.0),
        Experiment("spread", "gp", 64, 18, "hmc", "plain", 600.0, least=0.05),
    ]


def warmup_at(scale: float) -> int:
    """Draws of warm-up: fewer than a hundred tune nothing."""
    return int(np.clip(2 * NUM_WARMUP * scale, 100, NUM_WARMUP))


def missing(row: Experiment, data: Path | None) -> bool:
    """Whether a row wants data that are not there."""
    return row.problem in FILES and not (data and (data / FILES[row.problem]).exists())


def run_tuned(row: Experiment, data: Path | None, num_warmup: int) -> Result:
    """A method by name, or NUTS."""
    problem = problem_named(row.problem, row.num_rows, row.dimension, data)
    if row.sampler == "nuts":
        timed = _nuts(problem, row, num_warmup)
    else:
        method, *single = row.sampler.split()
        metric = METRIC.get(row.problem, "diagonal")

        def call(num_draws: int, checkpoint: Path) -> Any:
            return tp.sample(
                problem,
                method,
                tp.hmc(metric=metric, single=single[0] if single else "never"),
                num_draws=num_draws,
                num_warmup=num_warmup,
                num_chains=NUM_CHAINS,
                seed=row.seed,
                checkpoint=checkpoint,
                progress=False,
            )

        timed = drawn_for(row.seconds, call)
    return timed | worth(timed.pop("draws")) | {"num_warmup": num_warmup}


def _nuts(problem: tp.Problem, row: Experiment, num_warmup: int) -> Result:
    with scope("double"):
        densities = densities_of(problem)
        began = time.perf_counter()
        diagonal = METRIC.get(row.problem, "diagonal") == "diagonal"
        state = _warm_up(densities, jax.random.key(row.seed), num_warmup, diagonal)
        # Once more for nothing, to compile.
        jax.block_until_ready(_draw(densities, *state, jax.random.key(0)))
        first = time.perf_counter() - began
        blocks, steps, count = [], 0, 0
        started, before = time.perf_counter(), time.process_time()
        while time.perf_counter() - started < row.seconds:
            key = jax.random.fold_in(jax.random.key(row.seed + 1), count)
            states, positions, num_steps = _draw(densities, *state, key)
            state = states, state[1]
            blocks.append(np.asarray(positions))
            steps += int(np.sum(num_steps))
            count += 1
        wall, cpu = time.perf_counter() - started, time.process_time() - before
    draws = np.concatenate(blocks, axis=1)
    return {
        "draws": draws,
        "num_draws": draws.shape[1],
        "wall": wall,
        "cpu": cpu,
        "first_call": first,
        "rows": float(steps) * problem.num_rows,
        "cubes": float(steps),
        "acceptance": float("nan"),
    }


# Chains run one after another: side by side, all would wait for the longest trajectory.
@eqx.filter_jit
def _warm_up(densities: Any, key: Any, num_warmup: int, diagonal: bool) -> Any:
    adaptation = blackjax.window_adaptation(
        blackjax.nuts, densities.whole, is_mass_matrix_diagonal=diagonal
    )

    def one(key: Any) -> Any:
        key_start, key_run = jax.random.split(key)
        (state, parameters), _ = adaptation.run(
            key_run, densities.draw(key_start), num_steps=num_warmup
        )
        return state, parameters

    return jax.lax.map(one, jax.random.split(key, NUM_CHAINS))


@eqx.filter_jit
def _draw(densities: Any, states: Any, parameters: Any, key: Any) -> Any:
    def one(arguments: Any) -> Any:
        state, parameters, key = arguments
        step = blackjax.nuts(densities.whole, **parameters).step

        def draw(state: Any, key: Any) -> Any:
            state, info = step(key, state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(draw, state, jax.random.split(key, NUTS_BLOCK))

    keys = jax.random.split(key, NUM_CHAINS)
    states, (positions, num_steps) = jax.lax.map(one, (states, parameters, keys))
    return states, positions, num_steps
