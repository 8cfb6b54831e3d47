"""Worst effective size a CPU second: ours, and BlackJAX's NUTS on the density written plainly."""

import time

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from costs import data_of, plain_density

import temperance as tp
from temperance.estimates.diagnostics import effective_size
from temperance.models.gaussian_process.regression import LEAVES

NUM_ROWS, NUM_INPUTS = 256, 8
NUM_CHAINS = 2
MOVES = {"nuts": "nuts", "hmc": "hmc", "hmc, single": tp.hmc(single="always")}


def problem_of(seed=1):
    return tp.gaussian_process(*data_of(NUM_ROWS, NUM_INPUTS, seed))


def worst(draws):
    """The least effective size over coordinates of draws (chain, draw, d)."""
    return float(np.min(effective_size(draws)))


def ours(problem, move, num_warmup, num_draws, seed):
    start = time.process_time()
    tree = tp.sample(
        problem, method="plain", move=move, num_warmup=num_warmup, num_draws=num_draws,
        num_chains=NUM_CHAINS, seed=seed, progress=False,
    )  # fmt: skip
    seconds = time.process_time() - start
    leaves = [tree["posterior"][name].values for name in LEAVES]
    draws = np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], -1)
    return draws, seconds


def blackjax_program(problem, num_warmup, num_draws):
    """Window adaptation and draws, chain after chain, compiled."""
    data = jax.tree.map(jnp.asarray, problem.data)

    def density(position):
        return problem.log_prior(position) + plain_density(position, data)

    def chain(key):
        key_start, key_warmup, key_draws = jax.random.split(key, 3)
        adaptation = blackjax.window_adaptation(blackjax.nuts, density)
        start = problem.draw_prior(key_start)
        (state, params), _ = adaptation.run(key_warmup, start, num_steps=num_warmup)
        kernel = blackjax.nuts(density, **params).step

        def step(state, key):
            state, _ = kernel(key, state)
            return state, state.position

        return jax.lax.scan(step, state, jax.random.split(key_draws, num_draws))[1]

    keys = jax.random.split(jax.random.key(0), NUM_CHAINS)
    return jax.jit(lambda keys: jax.lax.map(chain, keys)).lower(keys).compile()


def theirs(program, seed):
    keys = jax.random.split(jax.random.key(seed), NUM_CHAINS)
    start = time.process_time()
    positions = jax.block_until_ready(program(keys))
    seconds = time.process_time() - start
    leaves = [np.asarray(positions[name]) for name in LEAVES]
    draws = np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], -1)
    return draws, seconds


def comparisons(num_warmup, num_draws, seeds):
    """(sampler, seed, worst effective size, CPU seconds, means), seeds taking turns."""
    problem = problem_of()
    program = blackjax_program(problem, num_warmup, num_draws)
    for move in MOVES.values():
        ours(problem, move, num_warmup, num_draws, 999)  # compiles
    for seed in seeds:
        for name in (*MOVES, "blackjax nuts"):
            if name == "blackjax nuts":
                draws, seconds = theirs(program, seed)
            else:
                draws, seconds = ours(problem, MOVES[name], num_warmup, num_draws, seed)
            yield name, seed, worst(draws), seconds, draws.mean(axis=(0, 1))
