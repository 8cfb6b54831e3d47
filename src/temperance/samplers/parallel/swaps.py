"""Which replicas change places: the swap schemes of parallel tempering.

Neighbours k and k+1 hold the points x_k and x_{k+1}. Exchanging them is accepted with

    a_k = min(1, exp(I_k(x_k) - I_k(x_{k+1}))),        I_k = log pi_{k+1} - log pi_k,

which is equation (2) of paper 1. Increments are weights times components, so no scheme evaluates a
density. All three leave the product of the rungs' densities invariant:

    deo     pairs (even, odd) and (odd, even) in turn: non-reversible, one round trip in
            2 + 2 sum r/(1-r) sweeps however many rungs there are (Syed et al. 2022)
    seo     the same pairs, which half is tossed: reversible, round trips slow down with K
    sweep   every pair from hot to cold, as in paper 1: a hot point may reach the target at once

A scheme returns `order`, where `order[k]` is the old rung of the replica that is at rung k now.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Key
from temperance.moves.accept import decide

SCHEMES = ("deo", "seo", "sweep")


class Swaps(NamedTuple):
    """Where replicas go, with every pair's acceptance probability and what was done.

    `tried` counts how often a pair was compared, where its acceptance is known only then.
    """

    order: Int[Array, " rungs"]
    acceptance: Float[Array, " pairs"]
    swapped: Bool[Array, " pairs"]
    tried: Int[Array, " pairs"] | None = None


def swap_rounds(
    scheme: str,
    key: Key,
    increments: Float[Array, "rungs pairs"],
    parity: Int[Array, ""],
    rounds: int,
) -> Swaps:
    """`rounds` rounds of swaps in a row, for which nothing has to be evaluated.

    The acceptance is that of the first round, which finds every rung freshly explored.
    """
    keys = jax.random.split(key, rounds)
    swaps = swap(scheme, keys[0], increments, parity)
    order, swapped = swaps.order, swaps.swapped
    for later in range(1, rounds):
        again = swap(scheme, keys[later], increments[order], parity + later)
        order, swapped = order[again.order], swapped | again.swapped
    return Swaps(order, swaps.acceptance, swapped)


def swap(
    scheme: str, key: Key, increments: Float[Array, "rungs pairs"], parity: Int[Array, ""]
) -> Swaps:
    """One round of swaps; `increments[i, k]` is I_k at the point that sits at rung i."""
    uniforms = jax.random.uniform(key, (increments.shape[1] + 1,))
    if scheme == "sweep":
        return hot_to_cold(uniforms[1:], increments)
    half = (uniforms[0] < 0.5).astype(int) if scheme == "seo" else parity % 2
    return even_odd(uniforms[1:], increments, half)


def even_odd(
    uniforms: Float[Array, " pairs"],
    increments: Float[Array, "rungs pairs"],
    half: Int[Array, ""],
) -> Swaps:
    """Swap the pairs (k, k+1) with k of parity `half`, all at once."""
    pairs = jnp.arange(uniforms.shape[0])
    decision = decide(uniforms, increments[pairs, pairs] - increments[pairs + 1, pairs])
    swapped = decision.accepted & (pairs % 2 == half)
    shift = swapped.astype(int)
    order = jnp.arange(pairs.size + 1) + jnp.pad(shift, (0, 1)) - jnp.pad(shift, (1, 0))
    return Swaps(order, decision.probability, swapped)


def hot_to_cold(uniforms: Float[Array, " pairs"], increments: Float[Array, "rungs pairs"]) -> Swaps:
    """Swap every pair in turn from the hottest, each on what the last one left."""

    def pair(order: Array, inputs: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        k, uniform = inputs
        here, above = order[k], order[k + 1]
        swapped, acceptance, _ = decide(uniform, increments[here, k] - increments[above, k])
        order = order.at[k].set(jnp.where(swapped, above, here))
        order = order.at[k + 1].set(jnp.where(swapped, here, above))
        return order, (acceptance, swapped)

    pairs = jnp.arange(uniforms.shape[0])
    order, (acceptance, swapped) = jax.lax.scan(pair, jnp.arange(pairs.size + 1), (pairs, uniforms))
    return Swaps(order, acceptance, swapped)
