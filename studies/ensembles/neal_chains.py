"""A chain for a number of slow evaluations, of which some points are kept."""

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from neal_problem import named, problem
from neal_samplers import Setting

from temperance.problems.problem import densities_of
from temperance.programs.compiled import traceable

POINTS = 3000


@eqx.filter_jit
def block(
    sampler: Any,
    state: Any,
    key: jax.Array,
    first: jax.Array,
    num: int,
    each: jax.Array,
    route: str,
) -> tuple[Any, jax.Array, jax.Array]:
    """`num` points, `each` steps apart, and the mean acceptance."""

    def step(i: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        state, accepted = carry
        state, info = sampler.step(jax.random.fold_in(key, i), state)
        return state, accepted + jnp.mean(info.acceptance)

    def point(state: Any, k: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
        start = first + k * each
        state, accepted = jax.lax.fori_loop(start, start + each, step, (state, jnp.zeros(())))
        return state, (named(state.point.position, route), accepted / each)

    state, (points, acceptance) = jax.lax.scan(point, state, jnp.arange(num))
    return state, points, jnp.mean(acceptance)


def run(chosen: Setting, num_slow: int, seed: int) -> dict[str, Any]:
    """A chain from a draw of the prior, for `num_slow` slow evaluations: what it was like at `POINTS` of its steps."""
    sampler = traceable(chosen.sampler)
    key_start, key = jax.random.split(jax.random.key(seed))
    densities = densities_of(problem(chosen.route))
    state = eqx.filter_jit(sampler.init)(densities.draw(key_start))
    num_steps = num_slow // chosen.slow
    num = min(POINTS, num_steps)
    each = jnp.asarray(num_steps // num)
    jax.block_until_ready(
        block(sampler, state, key, jnp.asarray(0), num, jnp.asarray(0), chosen.route)
    )
    before = time.process_time()
    _, points, acceptance = jax.block_until_ready(
        block(sampler, state, key, jnp.asarray(0), num, each, chosen.route)
    )
    took = time.process_time() - before
    return {
        "points": np.asarray(points),
        "seconds": took,
        "num_slow": int(num * each) * chosen.slow,
        "acceptance": float(acceptance),
    }
