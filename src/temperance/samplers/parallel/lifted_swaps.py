"""Swaps between rungs whose points know only their own rows.

A pair (k, k + 1) is accepted with min(1, exp(I_k(x_k) - I_k(x_{k+1}))). The colder point knows the
rows by which the rungs differ; the hotter one is *lifted*: it evaluates them, and if the swap is
accepted it has all that its new rung asks for. A point that goes to a hotter rung simply knows
more than it needs. So a swap costs the difference of the two subsamples, once, and nothing is
evaluated again after it: the paper's caveat, two evaluations of the likelihood for each proposal,
does not arise. Pairs that a scheme leaves out in a round are not lifted.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from temperance._types import Key, Point
from temperance.ladders.ladder import AbstractLadder
from temperance.moves.accept import choose, decide
from temperance.samplers.parallel.swaps import Swaps


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
    return moved, Swaps(order, done.acceptance, done.swapped, done.tried)


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
