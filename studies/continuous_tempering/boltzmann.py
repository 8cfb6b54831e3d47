"""Figure 2: errors of log Z, means and covariances against run time, on the paper's ten Boltzmann machine relaxations.

    ais K       100 anneals through K temperatures; an error for each K
    st          simulated tempering on 1000 temperatures, Rao-Blackwellised, with weights that short rounds of the chain
                itself learn first
    gibbs-ct    continuous tempering, beta drawn from its law given x
    gibbs-profile   the same with a profile of log Z that short rounds of the chain itself learn first (not in the paper)
    joint-ct    continuous tempering, (x, u) moved together
    exact N     what N independent exact draws would give, for comparison; they say nothing of log Z

An experiment is one method on one system, with all its repetitions. Seconds are CPU seconds on one core, in double
precision. Not in them: compiling, and the fit of the base, which all methods share. Errors are root mean squares over
entries, divided by those of the base.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from boltzmann_chains import Tempering, follow, learn
from boltzmann_curves import write
from boltzmann_figure import draw
from boltzmann_problem import MOMENTS, System, read_system, system
from experiment import Experiment, Result

import temperance as tp
from temperance.engine.loop import step_chains
from temperance.models.boltzmann import random_machine, relaxation
from temperance.programs.scope import scope

NUM_SYSTEMS, NUM_UNITS = 10, 30
# Of one repetition: what 100 anneals through 10,000 temperatures take. Repetitions are at scale 1.
SECONDS, NUM_REPETITIONS = 6.0, 10
# Of continuous tempering once more, one repetition: where does it pass the base?
LONG = 30.0
NUM_BLOCKS, NUM_POINTS, DISCARD = 120, 20, 0.1
NUM_ANNEALS, ANNEALS, EXACT = 100, (1000, 5000, 10_000), (1000, 10_000)
CONTINUOUS = ("gibbs-ct", "joint-ct")
GIBBS = ("gibbs-ct", "gibbs-profile")
CHAINS = ("st", *CONTINUOUS, "gibbs-profile")
# The same for all systems, chosen on system_0: chains, step sizes and leapfrog steps, the scale of u.
NUM_CHAINS = 100
MOVES = {
    "ais": (0.5, 10), "st": (0.5, 20), "gibbs-ct": (0.5, 10), "joint-ct": (0.5, 10),
    "gibbs-profile": (0.5, 10),
}  # fmt: skip
CONTROL_SCALE = 0.8
ST_RUNGS, NUM_KNOTS = 1000, 9
# Systems of the shortest scales, and the scale from which on all are run.
FEW_SYSTEMS, ALL_FROM = 4, 0.12
COMPILATION = {"boltzmann": 8.0}


def experiments() -> list[Experiment]:
    names = (*(f"ais {n}" for n in ANNEALS), *CHAINS, *(f"exact {n}" for n in EXACT))
    found = []
    for i in range(NUM_SYSTEMS):
        told = ("boltzmann", f"system_{i}", 0, NUM_UNITS, "hmc")
        least = 0.0 if i < FEW_SYSTEMS else ALL_FROM
        found += [Experiment(*told, n, SECONDS * NUM_REPETITIONS, least=least) for n in names]
        found += [Experiment(*told, f"{n} long", LONG, least=1.0) for n in CONTINUOUS]
    return found


def smoke() -> list[Experiment]:
    """A machine of six units, which needs no data."""
    return [
        Experiment("boltzmann", "random", 0, 6, "hmc", name, 0.2)
        for name in ("ais 20", *CHAINS, "exact 50")
    ]


def needs_data(row: Experiment) -> bool:
    return row.problem != "random"


def run_boltzmann(row: Experiment, data: Path | None) -> Result:
    """Every repetition of one method on one system: [seconds, ratios of errors] at some run times."""
    long = row.sampler.endswith("long")
    num_repetitions = 1 if long else max(1, round(row.seconds / SECONDS))
    seconds = row.seconds if long else min(SECONDS, row.seconds)
    with scope("double"):
        if needs_data(row):
            assert data is not None
            problem = read_system(data / "boltzmann" / f"{row.problem}.npz")
        else:
            problem = system(relaxation(random_machine(row.dimension, row.seed)), num_starts=50)
        once = repetition(problem, row.sampler, seconds)
        found = [once(1000 * row.seed + k) for k in range(num_repetitions)]
    return {
        "num_repetitions": num_repetitions,
        "base_errors": problem.base_errors,
        "curves": [one.pop("curve") for one in found],
        **{name: float(np.mean([one[name] for one in found])) for name in found[0]},
    }


def repetition(problem: System, name: str, seconds: float) -> Callable[[int], dict[str, Any]]:
    """One run as a function of its seed: a curve, and what became of its moves."""
    kind = name.split()[0]
    if kind == "exact":
        return partial(_exact, problem, int(name.split()[1]))
    sampler = sampler_of(problem, name)
    if kind != "ais":
        return partial(_chains, problem, sampler, seconds)
    keys = jax.random.split(jax.random.key(0), NUM_ANNEALS)
    return partial(_anneals, problem, sampler, _anneal.lower(sampler, keys).compile())


def _chains(problem: System, sampler: Any, seconds: float, seed: int) -> dict[str, Any]:
    learning, log_zeta = 0.0, problem.log_zeta
    if isinstance(sampler, Learnt):
        sampler, learning = learn(sampler.sampler, NUM_CHAINS, seed)
        last = sampler.log_z if isinstance(sampler, tp.GibbsTempering) else -sampler.log_weights
        log_zeta = float(last[-1])
    course = follow(sampler, NUM_CHAINS, seed, seconds, NUM_BLOCKS, DISCARD)
    spent = course.seconds + learning
    ends = np.unique(np.geomspace(1, NUM_BLOCKS, NUM_POINTS).round().astype(int)) - 1
    log_z = log_zeta + course.log_ratio
    return {
        "curve": [
            _point(problem, spent[k], log_z[k], course.mean[k], course.covariance[k]) for k in ends
        ],
        "acceptance": course.acceptance,
        "steps": course.num_steps * NUM_CHAINS,
        "trips": course.trips,
        "microseconds": 1e6 * course.seconds[-1] / (course.num_steps * NUM_CHAINS),
    }


def _exact(problem: System, num: int, seed: int) -> dict[str, Any]:
    y = problem.draw(np.random.default_rng(seed), num)
    return {"curve": [_point(problem, np.nan, np.nan, y.mean(0), np.cov(y.T, bias=True))]}


def _anneals(
    problem: System, sampler: tp.AnnealedImportance, program: Any, seed: int
) -> dict[str, Any]:
    """100 anneals, side by side."""
    keys = jax.random.split(jax.random.key(seed), NUM_ANNEALS)
    before = time.process_time()
    state, info = jax.block_until_ready(program(sampler, keys))
    took = time.process_time() - before
    logs, y = np.asarray(state.log_weight), np.asarray(state.position)
    weights = np.exp(logs - logs.max())
    log_z = logs.max() + np.log(weights.mean())
    weights /= weights.sum()
    mean = weights @ y
    covariance = (y.T * weights) @ y - np.outer(mean, mean)
    steps = NUM_ANNEALS * sampler.ladder.num_rungs
    return {
        "curve": [_point(problem, took, log_z, mean, covariance)],
        "acceptance": float(jnp.mean(info.acceptance)),
        "steps": steps,
        "microseconds": 1e6 * took / steps,
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


class Learnt(NamedTuple):
    """A chain that first learns log Z along its path, in time that counts."""

    sampler: Tempering


def sampler_of(problem: System, name: str) -> Any:
    """A method with its settings."""
    kind = name.split()[0]
    size, num_steps = MOVES[kind]
    move = tp.hmc(num_steps=num_steps, step_size=size)
    base, density, log_zeta = problem.base, problem.density, jnp.asarray(problem.log_zeta)
    if kind == "joint-ct":
        ladder = tp.JointLadder(base, density, log_zeta, bridge=True, draw_hot=base.draw)
        factor = jnp.append(jnp.ones(problem.dimension), CONTROL_SCALE)[None]
        return tp.JointTempering(ladder, move, tp.Params(jnp.full((1, 1), size), factor))
    if kind in GIBBS:
        # Closer where the scales change faster.
        betas = np.linspace(0.0, 1.0, NUM_KNOTS) ** 2
    else:
        betas = np.linspace(0.0, 1.0, ST_RUNGS if kind == "st" else int(name.split()[1]))
    ladder = tp.GeometricLadder(base, density, betas, bridge=True, draw_hot=base.draw)
    if kind == "ais":
        params = tp.Params(jnp.full((2, 1), size), jnp.ones((2, problem.dimension)))
        return tp.AnnealedImportance(ladder, move, params, jnp.asarray([0.0, 1.0]))
    params = tp.Params(jnp.full((betas.size, 1), size), jnp.asarray(scales(problem, betas)))
    if kind == "st":
        # The weights begin as a straight line.
        return Learnt(tp.SimulatedTempering(ladder, move, params, -jnp.asarray(betas) * log_zeta))
    chain = tp.GibbsTempering(ladder, move, params, jnp.asarray(betas) * log_zeta)
    return Learnt(chain) if kind == "gibbs-profile" else chain


def scales(problem: System, betas: np.ndarray) -> np.ndarray:
    """How wide one mode is at each beta: the target's are about 1 wide, the base as its variances say."""
    heat = betas[:, None]
    return 1 / np.sqrt((1 - heat) / np.asarray(problem.base.factor) ** 2 + heat)


RUNNERS = {"boltzmann": run_boltzmann}
__all__ = ["COMPILATION", "RUNNERS", "draw", "experiments", "needs_data", "smoke", "write"]
