"""Chains that keep running weighted sums of what they see, so that an estimate is known at every run time.

A chain's x counts for the target with weight w_1 and for the base with w_0. Of every step are kept

    sum w_1,    sum w_0,    sum w_1 y,    sum w_1 y y'

over all chains, block by block: differences of two blocks' sums leave the beginning out. None of the weights can
overflow: w_1 is at most 1 or t, and a probability is at most 1.
"""

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from temperance.engine.loop import chain_keys, step_chains
from temperance.samplers.continuous import GibbsTempering, JointTempering
from temperance.samplers.inverse_temperature import draw_beta
from temperance.samplers.simulated import SimulatedTempering

Tempering = GibbsTempering | SimulatedTempering


class Sums(NamedTuple):
    """What is kept of draws."""

    target: jax.Array
    base: jax.Array
    first: jax.Array
    second: jax.Array
    acceptance: jax.Array
    trips: jax.Array


def nothing(dimension: int) -> Sums:
    zero = jnp.zeros(())
    return Sums(zero, zero, jnp.zeros(dimension), jnp.zeros((dimension, dimension)), zero, zero)


@eqx.filter_jit
def block(
    sampler: Any, state: Any, key: jax.Array, first: jax.Array, count: jax.Array
) -> tuple[Any, Sums]:
    """`count` steps of every chain from step `first` on, and their sums."""
    num_chains = jax.tree.leaves(state)[0].shape[0]

    def one(step: jax.Array, carry: tuple[Any, Sums]) -> tuple[Any, Sums]:
        state, sums = carry
        before = state.trips.finished
        state, info = step_chains(sampler, chain_keys(key, num_chains, step), state)
        trail = jax.vmap(sampler.trail)(state)
        target, base = jnp.exp(trail["log_weight"]), jnp.exp(trail["log_weight_base"])
        y = jax.vmap(sampler.snapshot)(state)["position"]
        weighted = target[:, None] * y
        return state, Sums(
            sums.target + jnp.sum(target),
            sums.base + jnp.sum(base),
            sums.first + jnp.sum(weighted, axis=0),
            sums.second + weighted.T @ y,
            sums.acceptance + jnp.mean(info.acceptance),
            sums.trips + jnp.sum(state.trips.finished - before),
        )

    dimension = jax.eval_shape(jax.vmap(sampler.snapshot), state)["position"].shape[-1]
    return jax.lax.fori_loop(first, first + count, one, (state, nothing(dimension)))


class Course(NamedTuple):
    """Estimates after each block: CPU seconds, log Z over zeta, means and covariances."""

    seconds: np.ndarray
    log_ratio: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    acceptance: float
    trips: float
    num_steps: int


@eqx.filter_jit
def start(sampler: Any, keys: jax.Array) -> Any:
    """Chains at exact draws of the base; a joint chain's u is drawn given x.

    Where a draw of the base is a hundred below the target, u = 0 has a slope of 25: no leapfrog step of use is accepted
    there, and the chain would stay for good.
    """

    def one(key: jax.Array) -> Any:
        key_x, key_beta = jax.random.split(key)
        state = sampler.init(sampler.ladder.draw_hot(key_x))
        if not isinstance(sampler, JointTempering):
            return state
        tilt = state.point.components[1]
        beta, rest = draw_beta(jax.random.uniform(key_beta, dtype=tilt.dtype), tilt)
        here = state.point.position._replace(u=jnp.log(beta) - jnp.log(rest))
        return state._replace(point=sampler.ladder.evaluate(here, gradient=True))

    return jax.vmap(one)(keys)


ROUNDS = (50, 100, 200)


@eqx.filter_jit
def weigh(
    sampler: Tempering, state: Any, key: jax.Array, count: jax.Array
) -> tuple[Any, jax.Array]:
    """`count` steps of every chain, and log Z at the knots or rungs by how likely each is given x."""
    num_chains = jax.tree.leaves(state)[0].shape[0]
    knots = sampler.ladder.betas

    def densities(state: Any) -> jax.Array:
        if isinstance(sampler, SimulatedTempering):
            return state.log_probabilities - sampler.log_weights
        tilt = sampler.ladder.tilt(state.point.components)
        return knots * tilt - logsumexp(state.law.log_masses)

    def one(step: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        state, logs = carry
        state, _ = step_chains(sampler, chain_keys(key, num_chains, step), state)
        return state, jnp.logaddexp(logs, logsumexp(jax.vmap(densities)(state), axis=0))

    begin = state, jnp.full(knots.shape, -jnp.inf)
    state, log_z = jax.lax.fori_loop(0, count, one, begin)
    return state, log_z - log_z[0]


def _weighed(sampler: Tempering, state: Any, log_z: jax.Array) -> tuple[Tempering, Any]:
    """The sampler with log Z as found; what a state carries of the law of beta is made anew."""
    if isinstance(sampler, SimulatedTempering):
        sampler = eqx.tree_at(lambda one: one.log_weights, sampler, -log_z)
        logs = jax.vmap(sampler.log_probabilities)(state.point.components)
        return sampler, state._replace(log_probabilities=logs)
    sampler = eqx.tree_at(lambda one: one.log_z, sampler, log_z)
    return sampler, state._replace(law=jax.vmap(sampler.law)(state.point.components))


def learn(sampler: Tempering, num_chains: int, seed: int) -> tuple[Tempering, float]:
    """The sampler with the log Z that short rounds of its own chains give it, and their CPU seconds."""
    key_start, key = jax.random.split(jax.random.fold_in(jax.random.key(seed), 1))
    starts = jax.random.split(key_start, num_chains)
    state = start(sampler, starts)
    jax.block_until_ready(weigh(sampler, state, key, jnp.asarray(1)))
    before = time.process_time()
    state = start(sampler, starts)
    for number, length in enumerate(ROUNDS):
        key_round = jax.random.fold_in(key, number)
        state, log_z = weigh(sampler, state, key_round, jnp.asarray(length))
        sampler, state = _weighed(sampler, state, log_z)
    jax.block_until_ready(state)
    return sampler, time.process_time() - before


def follow(
    sampler: Any,
    num_chains: int,
    seed: int,
    seconds: float,
    num_blocks: int,
    discard: float,
) -> Course:
    """Chains for about `seconds` of CPU time, without the first `discard` of their steps.

    What is compiled, and how long a step takes, is found out before.
    """
    key_start, key = jax.random.split(jax.random.key(seed))
    starts = jax.random.split(key_start, num_chains)
    state = jax.block_until_ready(start(sampler, starts))
    pace = _pace(sampler, state, key, seconds)
    count = max(1, int(seconds / num_blocks / pace))
    before = time.process_time()
    state = start(sampler, starts)
    kept, ends = [], []
    for k in range(num_blocks):
        state, sums = block(sampler, state, key, jnp.asarray(k * count), jnp.asarray(count))
        kept.append(jax.block_until_ready(sums))
        ends.append(time.process_time() - before)
    running = [
        np.cumsum(np.stack([np.asarray(one) for one in leaf]), axis=0)
        for leaf in zip(*kept, strict=True)
    ]
    return estimates(Sums(*running), np.array(ends), count, discard)


def _pace(sampler: Any, state: Any, key: jax.Array, seconds: float) -> float:
    """CPU seconds a step."""
    zero = jnp.asarray(0)
    jax.block_until_ready(block(sampler, state, key, zero, jnp.asarray(1)))
    count = 1
    while True:
        before = time.process_time()
        jax.block_until_ready(block(sampler, state, key, zero, jnp.asarray(count)))
        took = time.process_time() - before
        if took > min(0.05, 0.1 * seconds):
            return took / count
        count *= 2


def estimates(running: Sums, ends: np.ndarray, count: int, discard: float) -> Course:
    """Estimates at the end of each block from the sums up to there, less those of the blocks left out."""
    num_blocks = ends.size
    out = np.floor(discard * np.arange(1, num_blocks + 1)).astype(int)

    def later(total: np.ndarray) -> np.ndarray:
        return total - np.concatenate([np.zeros_like(total[:1]), total])[out]

    target, base, first, second = (later(np.asarray(leaf)) for leaf in running[:4])
    mean = first / target[:, None]
    covariance = second / target[:, None, None] - mean[:, :, None] * mean[:, None, :]
    return Course(
        ends,
        np.log(target) - np.log(base),
        mean,
        covariance,
        float(running.acceptance[-1]) / (num_blocks * count),
        float(running.trips[-1]),
        num_blocks * count,
    )
