"""Swaps between rungs whose points know only their own rows.

A pair (k, k + 1) is accepted with min(1, exp(I_k(x_k) - I_k(x_{k+1}))). The colder point knows the
rows by which the rungs differ; the hotter one is *lifted*: it evaluates them, and if the swap is
accepted it has all that its new rung asks for. A point that goes to a hotter rung simply knows
more than it needs. So a swap costs the difference of the two subsamples, once, and nothing is
evaluated again after it: the paper's caveat, two evaluations of the likelihood for each proposal,
does not arise. Pairs that a scheme leaves out in a round are not lifted.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from temperance._types import Key, Point
from temperance.ladder import AbstractLadder
from temperance.move import acceptance_of
from temperance.samplers.swaps import Swaps


def lifted_swaps(
    scheme: str,
    key: Key,
    ladder: AbstractLadder,
    points: Point,
    parity: Int[Array, ""],
    rounds: int,
) -> tuple[Point, Swaps]:
    """`rounds` rounds of swaps from hot to cold, and the points at their new rungs.

    `tried` counts how often each pair was compared; its acceptance is that of the first time.
    """
    num_pairs = ladder.num_rungs - 1
    known = [jax.tree.map(lambda leaf, k=k: leaf[k], points) for k in range(num_pairs + 1)]
    places = [jnp.asarray(k) for k in range(num_pairs + 1)]
    acceptance = [jnp.zeros_like(points.components[0, 0])] * num_pairs
    swapped = [jnp.asarray(False)] * num_pairs
    tried = [jnp.zeros((), int)] * num_pairs
    for turn, key_round in enumerate(jax.random.split(key, rounds)):
        uniforms = jax.random.uniform(key_round, (num_pairs + 1,))
        half = (uniforms[0] < 0.5).astype(int) if scheme == "seo" else (parity + turn) % 2
        for k in range(num_pairs):
            compared = jnp.asarray(True) if scheme == "sweep" else half == k % 2
            hot = jax.lax.cond(
                compared, lambda p, k=k: ladder.lift(k, p), lambda p: p, known[k]
            )
            cold = known[k + 1]
            chance, log_ratio = acceptance_of(
                ladder.increments(hot.components)[k] - ladder.increments(cold.components)[k]
            )
            accepted = compared & (jnp.log(uniforms[k + 1]) < log_ratio)
            known[k], known[k + 1] = _exchanged(accepted, hot, cold)
            places[k], places[k + 1] = _exchanged(accepted, places[k], places[k + 1])
            acceptance[k] = jnp.where(compared & (tried[k] == 0), chance, acceptance[k])
            swapped[k] = swapped[k] | accepted
            tried[k] = tried[k] + compared.astype(int)
    moved = jax.tree.map(lambda *leaves: jnp.stack(leaves), *known)
    return moved, Swaps(
        jnp.stack(places), jnp.stack(acceptance), jnp.stack(swapped), jnp.stack(tried)
    )


def _exchanged(accepted: Array, one: Point | Array, two: Point | Array) -> tuple:
    first = jax.tree.map(lambda a, b: jnp.where(accepted, b, a), one, two)
    second = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), one, two)
    return first, second
