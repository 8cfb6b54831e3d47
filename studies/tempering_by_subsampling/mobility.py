"""How far a sampler moves for what it evaluates: where the paper's factor of 4.7 comes from.

With steps of 0.01 and five of them a trajectory is at most 0.05 long in every log hyperparameter, a
small part of the posterior's width. Such a chain diffuses: after t iterations it has moved by about
sqrt(t) jumps, and its effective samples a second are in proportion to

    J = E |x_{t+1} - x_t|^2 / cost of an iteration,

each coordinate in units of its posterior standard deviation. A tempered transition that is accepted
makes 2 M = 12 moves and costs 2.09 iterations of the inner sampler, because eleven of them are made on
few rows. If the hot moves go as far as the cold ones, J is 12 / 2.09 = 5.7 times that of the inner
sampler, whatever the posterior looks like and with nothing gained by heat. A tuned step makes the same
gain by a longer trajectory, at no cost. J can be measured in a minute, since it only takes a few hundred
jumps from points of the posterior, where an effective size takes convergence.
"""

import time
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from cost import counted
from experiment import Experiment, Result
from problems import problem_named
from settings import sampler_named

import temperance as tp
from temperance.engine.loop import Blocks
from temperance.programs.scope import scope

NUM_CHAINS, NUM_WARMUP, NUM_TUNED = 3, 300, 200
# The tuned run's points from which the others start, and their jumps.
NUM_STARTS, NUM_JUMPS = 4, 25
# Not SPT: what its target jumps by a swap it may jump back by the next.
SAMPLERS = ("plain", "stt")


def experiments() -> list[Experiment]:
    """The paper's Gaussian process with 20 parameters, or a smaller one."""
    return [
        Experiment("mobility", "gp", 512, 18, "hmc", "all", 600.0, least=0.05),
        Experiment("mobility", "gp", 128, 18, "hmc", "all", 600.0, most=0.05),
    ]


def run_mobility(row: Experiment) -> Result:
    """Squared jumps a cube and a CPU second, of tuned HMC and with the paper's settings."""
    problem = problem_named(row.problem, row.num_rows, row.dimension, None)
    tree = tp.sample(
        problem, "plain", num_draws=NUM_TUNED, num_warmup=NUM_WARMUP, num_chains=NUM_CHAINS,
        seed=row.seed, progress=False,
    )  # fmt: skip
    draws = flat(tree)
    scale = draws.reshape(-1, draws.shape[-1]).std(axis=0)
    jumps = np.mean((np.diff(draws, axis=1) / scale) ** 2)
    cubes = tree.attrs["num_evaluations"] / (NUM_CHAINS * NUM_TUNED)
    found = {"tuned plain": {"jump": jumps, "cubes": cubes, "per_cube": jumps / cubes}}
    starts = draws[:, -1 :: -NUM_TUNED // NUM_STARTS].reshape(-1, draws.shape[-1])
    with scope("double"):
        for name in SAMPLERS:
            found[name] = _jumps(row, problem, name, starts, scale)
    return {"mobility": found}


def flat(tree: Any) -> np.ndarray:
    """Draws as vectors, (chain, draw, d), in the order of `ravel_pytree`."""
    posterior = tree["posterior"]
    leaves = [posterior[name].values for name in sorted(posterior.data_vars)]
    return np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=-1)


def _jumps(row: Experiment, problem: Any, name: str, starts: Any, scale: Any) -> Result:
    sampler = sampler_named(name, problem, row.problem, row.move)
    unravel = jax.flatten_util.ravel_pytree(problem.draw_prior(jax.random.key(0)))[1]
    states = [sampler.init(unravel(jnp.asarray(start))) for start in starts]
    state = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    blocks = Blocks(sampler, jax.random.key(row.seed), 1, NUM_JUMPS)
    carry, _ = blocks.draw((state, None), 0, 2)
    # Replicas start at the same point; let each find its own rung's width before they count.
    carry, _ = blocks.draw(carry, 2, NUM_JUMPS)
    before = time.process_time()
    _, draws = blocks.draw(carry, 2 + NUM_JUMPS, NUM_JUMPS)
    seconds = (time.process_time() - before) / (NUM_JUMPS * len(starts))
    jump = float(np.mean((np.diff(draws["position"], axis=0) / scale) ** 2))
    cubes = counted(problem, sampler, draws) / (NUM_JUMPS * len(starts))
    rate = draws.get("transition_accepted", draws.get("swap_acceptance", np.ones(1)))
    return {
        "jump": jump, "cubes": cubes, "per_cube": jump / cubes, "cpu_seconds": seconds,
        "accepted": float(np.mean(rate)),
    }  # fmt: skip
