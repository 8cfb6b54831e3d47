"""Run walkers for some seconds: tune their step first, then draw in compiled blocks.

The step is tuned by a stochastic approximation of its logarithm, with gains t^(-0.6), to accept a
proportion, and the mean over its second half is kept. Tuning and compiling are told apart from drawing.
Seconds are the process's own, which other programs on the machine do not change.
"""

import time
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from kernels import with_step

ACCEPTED = 0.3


@eqx.filter_jit
def tuned_step(
    sampler: Any, key: Array, start: Array, first: Any, num_steps: int
) -> tuple[Array, Array]:
    """A step size that accepts 0.3 of proposals around where the chain goes, and where it goes."""

    def one(carry: Any, given: Any) -> Any:
        state, log_step = carry
        key, t = given
        state, info = with_step(sampler, jnp.exp(log_step)).step(key, state)
        gain = (t + 1.0) ** -0.6
        log_step += 2.0 * gain * (jnp.mean(info.acceptance) - ACCEPTED)
        return (state, log_step), log_step

    state = sampler.init(start)
    given = jax.random.split(key, num_steps), jnp.arange(num_steps, dtype=float)
    (state, _), path = jax.lax.scan(one, (state, jnp.log(jnp.asarray(first, float))), given)
    position = jnp.ravel(sampler.positions(state))
    return jnp.exp(jnp.mean(path[num_steps // 2 :])), position


@eqx.filter_jit
def _block(sampler: Any, step: Array, states: Any, key: Array, count: int, thin: int) -> Any:
    sampler = with_step(sampler, step)

    def chain(state: Any, key: Array) -> Any:
        def draw(state: Any, key: Array) -> Any:
            def inner(state: Any, key: Array) -> Any:
                state, info = sampler.step(key, state)
                return state, jnp.mean(info.acceptance)

            state, acceptance = jax.lax.scan(inner, state, jax.random.split(key, thin))
            return state, (jnp.ravel(sampler.positions(state)), jnp.mean(acceptance))

        return jax.lax.scan(draw, state, jax.random.split(key, count))

    num_chains = jax.tree.leaves(states)[0].shape[0]
    return jax.vmap(chain)(states, jax.random.split(key, num_chains))


def blocks(
    sampler: Any,
    step: Any,
    starts: Array,
    seed: int,
    seconds: float,
    count: int,
    thin: int,
    most: int,
) -> Iterator[dict[str, Any]]:
    """Blocks of `count` draws (chain, draw, d), one every `thin` steps, with time so far.

    The first block is made twice, and once for nothing, because it compiles.
    """
    step = jnp.asarray(step)
    states = eqx.filter_vmap(lambda start: sampler.init(start))(starts)
    key = jax.random.key(seed)
    jax.block_until_ready(_block(sampler, step, states, key, count, thin))
    wall = cpu = 0.0
    for number in range(most):
        began, before = time.perf_counter(), time.process_time()
        states, (positions, acceptance) = jax.block_until_ready(
            _block(sampler, step, states, jax.random.fold_in(key, number), count, thin)
        )
        # What the caller does with a block is not part of it.
        wall += time.perf_counter() - began
        cpu += time.process_time() - before
        yield {
            "positions": np.asarray(positions),
            "acceptance": float(jnp.mean(acceptance)),
            "wall": wall,
            "cpu": cpu,
        }
        if cpu > seconds:
            return
