"""Run walkers for some seconds: tune their step first, then draw in compiled blocks.

The step is tuned by a stochastic approximation of its logarithm, with gains t^(-0.6), to accept a
proportion, and the mean over its second half is kept. Tuning and compiling are told apart from drawing,
unless steps adapt while they draw, with gains t^(-0.3).
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
from kernels import rows_evaluated, with_step

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
def _block(
    sampler: Any, num_rows: int, walks: Any, key: Array, count: int, thin: int, wanted: Array
) -> Any:
    """Draws of all chains; steps change only if `wanted`, the acceptance that is aimed at, is a number."""

    def chain(walk: Any, key: Array) -> Any:
        def draw(walk: Any, key: Array) -> Any:
            def inner(walk: Any, key: Array) -> Any:
                state, log_step, t = walk
                state, info = with_step(sampler, jnp.exp(log_step)).step(key, state)
                accepted = jnp.mean(info.acceptance)
                change = 2.0 * (t + 1.0) ** -0.3 * (accepted - wanted)
                log_step += jnp.where(jnp.isnan(wanted), 0.0, change)
                return (state, log_step, t + 1.0), (accepted, rows_evaluated(info, num_rows))

            walk, (acceptance, rows) = jax.lax.scan(inner, walk, jax.random.split(key, thin))
            found = jnp.ravel(sampler.positions(walk[0])), jnp.mean(acceptance), jnp.sum(rows)
            return walk, found

        return jax.lax.scan(draw, walk, jax.random.split(key, count))

    num_chains = jax.tree.leaves(walks)[0].shape[0]
    return jax.vmap(chain)(walks, jax.random.split(key, num_chains))


def blocks(
    sampler: Any,
    num_rows: int,
    step: Any,
    starts: Array,
    seed: int,
    seconds: float,
    count: int,
    thin: int,
    most: int,
    adapts_to: float = float("nan"),
) -> Iterator[dict[str, Any]]:
    """Blocks of `count` draws (chain, draw, d), one every `thin` steps, with rows evaluated and time so far.

    With `adapts_to` the step is only the first, and changes towards that acceptance. The first block
    is made twice, and once for nothing, because it compiles.
    """
    wanted = jnp.asarray(adapts_to, float)

    def begin(start: Array) -> Any:
        return sampler.init(start), jnp.log(jnp.asarray(step, float)), jnp.zeros(())

    walks = eqx.filter_vmap(begin)(starts)
    key = jax.random.key(seed)
    jax.block_until_ready(_block(sampler, num_rows, walks, key, count, thin, wanted))
    wall = cpu = 0.0
    for number in range(most):
        began, before = time.perf_counter(), time.process_time()
        walks, (positions, acceptance, rows) = jax.block_until_ready(
            _block(sampler, num_rows, walks, jax.random.fold_in(key, number), count, thin, wanted)
        )
        # What the caller does with a block is not part of it.
        wall += time.perf_counter() - began
        cpu += time.process_time() - before
        yield {
            "positions": np.asarray(positions),
            "acceptance": float(jnp.mean(acceptance)),
            "rows": np.asarray(rows, float),
            "wall": wall,
            "cpu": cpu,
        }
        if cpu > seconds:
            return
