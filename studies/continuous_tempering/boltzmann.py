"""Figure 2: errors of log Z, means and covariances against run time, on the paper's ten Boltzmann machine relaxations.

    ais K       100 anneals through K temperatures; an error for each K
    st          simulated tempering on 1000 temperatures, Rao-Blackwellised
    gibbs-ct    continuous tempering, beta drawn from its law given x
    joint-ct    continuous tempering, (x, u) moved together

An experiment is one method on one system, with all its repetitions. Seconds are CPU seconds on one core, in double
precision. Not in them: compiling, and the fit of the base, which all methods share. Errors are root mean squares over
entries, divided by those of the base.
"""

import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from boltzmann_chains import follow
from boltzmann_curves import write
from boltzmann_figure import draw
from boltzmann_problem import MOMENTS, System, read_system, system
from experiment import Experiment, Result

import temperance as tp
from temperance.boltzmann import random_machine, relaxation
from temperance.runtime import scope
from temperance.samplers.run import step_chains

NUM_SYSTEMS, NUM_UNITS = 10, 30
# Of one repetition: what 100 anneals through 10,000 temperatures take. Repetitions are at scale 1.
SECONDS, NUM_REPETITIONS = 6.0, 10
NUM_BLOCKS, NUM_POINTS, DISCARD = 60, 20, 0.1
NUM_ANNEALS, ANNEALS = 100, (1000, 5000, 10_000)
CHAINS = ("st", "gibbs-ct", "joint-ct")
# The same for all systems, chosen on system_0.
NUM_CHAINS = 100
ST_RUNGS = 1000
MOVES = {"ais": (0.5, 10), "st": (0.5, 20), "gibbs-ct": (0.5, 10), "joint-ct": (0.5, 10)}
CONTROL_SCALE = 0.8
NUM_KNOTS = 33
COMPILATION = {"boltzmann": 12.0}


def experiments() -> list[Experiment]:
    names = (*(f"ais {number}" for number in ANNEALS), *CHAINS)
    return [
        Experiment("boltzmann", f"system_{i}", 0, NUM_UNITS, "hmc", name, SECONDS * NUM_REPETITIONS)
        for i in range(NUM_SYSTEMS)
        for name in names
    ]


def smoke() -> list[Experiment]:
    """A machine of six units, which needs no data."""
    return [
        Experiment("boltzmann", "random", 0, 6, "hmc", name, 0.2) for name in ("ais 20", *CHAINS)
    ]


def needs_data(row: Experiment) -> bool:
    return row.problem != "random"


def run_boltzmann(row: Experiment, data: Path | None) -> Result:
    """Every repetition of one method on one system: [seconds, ratios of errors] at some run times."""
    seconds = min(SECONDS, row.seconds)
    num_repetitions = max(1, round(row.seconds / SECONDS))
    with scope("double"):
        if needs_data(row):
            assert data is not None
            problem = read_system(data / "boltzmann" / f"{row.problem}.npz")
        else:
            problem = system(relaxation(random_machine(row.dimension, row.seed)), num_starts=50)
        if row.sampler.startswith("ais"):
            # Once without a clock: it compiles.
            repetition(problem, row.sampler, seconds, 0)
        found = [
            repetition(problem, row.sampler, seconds, 1000 * row.seed + k)
            for k in range(num_repetitions)
        ]
    return {
        "num_repetitions": num_repetitions,
        "num_chains": NUM_ANNEALS if row.sampler.startswith("ais") else NUM_CHAINS,
        "base_errors": problem.base_errors,
        "curves": [one.pop("curve") for one in found],
        **{name: float(np.mean([one[name] for one in found])) for name in found[0]},
    }


def repetition(problem: System, name: str, seconds: float, seed: int) -> dict[str, Any]:
    """One run: a curve, and what became of its moves."""
    if name.startswith("ais"):
        return anneals(problem, int(name.split()[1]), seed)
    course = follow(sampler_of(problem, name), NUM_CHAINS, seed, seconds, NUM_BLOCKS, DISCARD)
    ends = np.unique(np.geomspace(1, NUM_BLOCKS, NUM_POINTS).round().astype(int)) - 1
    curve = [
        _point(
            problem,
            course.seconds[k],
            problem.log_zeta + course.log_ratio[k],
            course.mean[k],
            course.covariance[k],
        )
        for k in ends
    ]
    return {
        "curve": curve,
        "acceptance": course.acceptance,
        "steps": course.num_steps * NUM_CHAINS,
        "trips": course.trips,
        "microseconds": 1e6 * course.seconds[-1] / (course.num_steps * NUM_CHAINS),
    }


def anneals(problem: System, num_betas: int, seed: int) -> dict[str, Any]:
    """100 anneals, side by side."""
    sampler = sampler_of(problem, f"ais {num_betas}")
    keys = jax.random.split(jax.random.key(seed), NUM_ANNEALS)
    before = time.process_time()
    state, info = jax.block_until_ready(_anneal(sampler, keys))
    took = time.process_time() - before
    logs, y = np.asarray(state.log_weight), np.asarray(state.position)
    weights = np.exp(logs - logs.max())
    log_z = logs.max() + np.log(weights.mean())
    weights /= weights.sum()
    mean = weights @ y
    covariance = (y.T * weights) @ y - np.outer(mean, mean)
    return {
        "curve": [_point(problem, took, log_z, mean, covariance)],
        "acceptance": float(jnp.mean(info.acceptance)),
        "steps": NUM_ANNEALS * num_betas,
        "kish": float(1 / np.sum(weights**2)),
        "sd_log_weight": float(logs.std()),
    }


@eqx.filter_jit
def _anneal(sampler: tp.AnnealedImportance, keys: jax.Array) -> Any:
    dimension = sampler.params.factor.shape[-1]
    return step_chains(sampler, keys, jax.vmap(sampler.init)(jnp.zeros((keys.shape[0], dimension))))


def _point(
    problem: System, seconds: float, log_z: float, mean: np.ndarray, covariance: np.ndarray
) -> list[float]:
    errors = problem.errors(log_z, mean, covariance)
    numbers = (seconds, *(errors[name] / problem.base_errors[name] for name in MOMENTS))
    return [float(f"{number:.4g}") for number in numbers]


def sampler_of(problem: System, name: str) -> Any:
    """A method with its settings."""
    kind = name.split()[0]
    size, num_steps = MOVES[kind]
    move = tp.hmc(num_steps=num_steps, step_size=size)
    if kind == "joint-ct":
        ladder = tp.JointLadder(
            problem.base,
            problem.density,
            jnp.asarray(problem.log_zeta),
            True,
            draw_hot=problem.base.draw,
        )
        factor = np.append(np.ones(problem.dimension), CONTROL_SCALE)
        return tp.JointTempering(
            ladder, move, tp.Params(jnp.full((1, 1), size), jnp.asarray(factor[None]))
        )
    num_betas = {
        "ais": int(name.split()[-1]) if kind == "ais" else 0,
        "st": ST_RUNGS,
        "gibbs-ct": NUM_KNOTS,
    }[kind]
    betas = np.linspace(0.0, 1.0, num_betas)
    ladder = tp.GeometricLadder(
        problem.base, problem.density, betas, bridge=True, draw_hot=problem.base.draw
    )
    if kind == "ais":
        params = tp.Params(jnp.full((2, 1), size), jnp.ones((2, problem.dimension)))
        return tp.AnnealedImportance(ladder, move, params, jnp.asarray([0.0, 1.0]))
    params = tp.Params(jnp.full((num_betas, 1), size), jnp.ones((num_betas, problem.dimension)))
    if kind == "st":
        return tp.SimulatedTempering(ladder, move, params, jnp.asarray(-betas * problem.log_zeta))
    return tp.GibbsTempering(ladder, move, params, jnp.asarray(problem.log_zeta))


RUNNERS = {"boltzmann": run_boltzmann}
__all__ = ["COMPILATION", "RUNNERS", "draw", "experiments", "needs_data", "smoke", "write"]
