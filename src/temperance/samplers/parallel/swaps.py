"""Which replicas change places: the swap schemes of parallel tempering.

Neighbours k and k+1 hold the points x_k and x_{k+1}. Exchanging them is accepted with

    a_k = min(1, exp(I_k(x_k) - I_k(x_{k+1}))),        I_k = log pi_{k+1} - log pi_k,

which is equation (2) of paper 1. All schemes leave the product of the rungs' densities invariant:

    deo     pairs (even, odd) and (odd, even) in turn: non-reversible, one round trip in
            2 + 2 sum r/(1-r) sweeps however many rungs there are (Syed et al. 2022)
    seo     the same pairs, which half is tossed: reversible, round trips slow down with K
    sweep   every pair from hot to cold, as in paper 1: a hot point may reach the target at once

A scheme returns `order`, where `order[k]` is the old rung of the replica that is at rung k now.

**On powers** (`swap_rounds`) increments are weights times the components that points carry, so no
scheme evaluates a density.

**On nested subsamples** (`lifted_swaps`) points know only the rows of their own rung. The colder
point has the rows by which two rungs differ; the hotter one is *lifted*: these rows are evaluated
at it, so that it has all rows of its new rung if the swap is accepted. A point that goes to a
hotter rung keeps the values of rows that this rung does not use. So a swap costs the difference of
the two subsamples, once, and nothing is evaluated again after it: the paper's caveat, two
evaluations of the likelihood for each proposal, does not arise. Pairs that a scheme leaves out in a
round are not lifted.

A rule of one's own leaves the product invariant if it chooses its pairs without looking at the
points, and if the pairs that it exchanges at once have no rung in common.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Key, Point
from temperance.ladders.ladder import AbstractLadder
from temperance.moves.accept import choose, decide

SCHEMES = ("deo", "seo", "sweep")


class SwapOutcome(NamedTuple):
    """Where replicas go, with every pair's acceptance probability and what was done.

    `tried` counts how often a pair was compared, where its acceptance is known only then.
    """

    order: Int[Array, " rungs"]
    acceptance: Float[Array, " pairs"]
    swapped: Bool[Array, " pairs"]
    tried: Int[Array, " pairs"] | None = None


# One round of swaps, from a key, the increments and how many rounds have been.
SwapRule = Callable[[Key, Float[Array, "rungs pairs"], Int[Array, ""]], SwapOutcome]


def swap_rounds(
    once: SwapRule,
    key: Key,
    increments: Float[Array, "rungs pairs"],
    parity: Int[Array, ""],
    rounds: int,
) -> SwapOutcome:
    """`rounds` rounds of swaps in a row, each by `once`, for which nothing has to be evaluated.

    The acceptance is that of the first round, which finds every rung freshly explored.
    """
    keys = jax.random.split(key, rounds)
    swaps = once(keys[0], increments, parity)
    order, swapped = swaps.order, swaps.swapped
    for later in range(1, rounds):
        again = once(keys[later], increments[order], parity + later)
        order, swapped = order[again.order], swapped | again.swapped
    return SwapOutcome(order, swaps.acceptance, swapped)


def swap(
    scheme: str, key: Key, increments: Float[Array, "rungs pairs"], parity: Int[Array, ""]
) -> SwapOutcome:
    """One round of swaps; `increments[i, k]` is I_k at the point that sits at rung i."""
    uniforms = jax.random.uniform(key, (increments.shape[1] + 1,))
    if scheme == "sweep":
        return hot_to_cold(uniforms[1:], increments)
    half = (uniforms[0] < 0.5).astype(int) if scheme == "seo" else parity % 2
    pairs = jnp.arange(increments.shape[1])
    return swap_pairs(uniforms[1:], increments, pairs % 2 == half)


def swap_pairs(
    uniforms: Float[Array, " pairs"],
    increments: Float[Array, "rungs pairs"],
    compared: Bool[Array, " pairs"],
) -> SwapOutcome:
    """Swap the pairs (k, k+1) that are compared, all at once.

    No two of them may share a rung. This is not checked, and the swaps of such pairs are wrong.
    The acceptance is that of every pair, compared or not.
    """
    pairs = jnp.arange(uniforms.shape[0])
    decision = decide(uniforms, increments[pairs, pairs] - increments[pairs + 1, pairs])
    swapped = decision.accepted & compared
    shift = swapped.astype(int)
    order = jnp.arange(pairs.size + 1) + jnp.pad(shift, (0, 1)) - jnp.pad(shift, (1, 0))
    return SwapOutcome(order, decision.probability, swapped)


def hot_to_cold(
    uniforms: Float[Array, " pairs"], increments: Float[Array, "rungs pairs"]
) -> SwapOutcome:
    """Swap every pair in turn from the hottest, each on what the last one left."""

    def pair(order: Array, inputs: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        k, uniform = inputs
        hotter, colder = order[k], order[k + 1]
        swapped, acceptance, _ = decide(uniform, increments[hotter, k] - increments[colder, k])
        order = order.at[k].set(jnp.where(swapped, colder, hotter))
        order = order.at[k + 1].set(jnp.where(swapped, hotter, colder))
        return order, (acceptance, swapped)

    pairs = jnp.arange(uniforms.shape[0])
    order, (acceptance, swapped) = jax.lax.scan(pair, jnp.arange(pairs.size + 1), (pairs, uniforms))
    return SwapOutcome(order, acceptance, swapped)


def lifted_swaps(
    scheme: str,
    key: Key,
    ladder: AbstractLadder,
    points: Point,
    parity: Int[Array, ""],
    rounds: int,
) -> tuple[Point, SwapOutcome]:
    """`rounds` rounds of swaps from hot to cold, and the points at their new rungs.

    `tried` counts how often each pair was compared; its acceptance is that of the first time.
    """
    num_pairs = ladder.num_rungs - 1
    uniforms = jax.vmap(lambda one: jax.random.uniform(one, (num_pairs + 1,)))(
        jax.random.split(key, rounds)
    )
    zero = jnp.zeros((), points.components.dtype)
    pairs = [_Pair(zero, jnp.asarray(False), jnp.zeros((), int))] * num_pairs
    places = [
        _Place(jax.tree.map(lambda leaf, k=k: leaf[k], points), jnp.asarray(k))
        for k in range(num_pairs + 1)
    ]

    def round_of(turn: Array, carry: Any) -> Any:
        places, pairs = list(carry[0]), list(carry[1])
        half = (uniforms[turn, 0] < 0.5).astype(int) if scheme == "seo" else (parity + turn) % 2
        for k in range(num_pairs):
            compared = jnp.asarray(True) if scheme == "sweep" else half == k % 2
            hot, cold = places[k], places[k + 1]
            lifted = jax.lax.cond(
                compared, lambda p, k=k: ladder.lift(k, p), lambda p: p, hot.point
            )
            log_ratio = (
                ladder.increments(lifted.components)[k]
                - ladder.increments(cold.point.components)[k]
            )
            decision = decide(uniforms[turn, k + 1], log_ratio)
            accepted = compared & decision.accepted
            places[k], places[k + 1] = _exchanged(accepted, hot._replace(point=lifted), cold)
            first = compared & (pairs[k].tried == 0)
            pairs[k] = _Pair(
                jnp.where(first, decision.probability, pairs[k].acceptance),
                pairs[k].swapped | accepted,
                pairs[k].tried + compared.astype(int),
            )
        return places, pairs

    # Rolled up, because every comparison is a program of its own to compile.
    places, pairs = jax.lax.fori_loop(0, rounds, round_of, (places, pairs))
    moved, order = jax.tree.map(lambda *leaves: jnp.stack(leaves), *places)
    done = jax.tree.map(lambda *leaves: jnp.stack(leaves), *pairs)
    return moved, SwapOutcome(order, done.acceptance, done.swapped, done.tried)


class _Place(NamedTuple):
    """A rung's point, and the rung it was at before."""

    point: Point
    was: Int[Array, ""]


class _Pair(NamedTuple):
    """What became of two neighbours."""

    acceptance: Array
    swapped: Array
    tried: Array


def _exchanged(accepted: Array, one: _Place, two: _Place) -> tuple[_Place, _Place]:
    return choose(accepted, two, one), choose(accepted, one, two)
