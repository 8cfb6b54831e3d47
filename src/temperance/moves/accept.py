"""Metropolis' decision: to accept a proposal, or to stay.

    r = pi(x') q(x', x) / (pi(x) q(x, x'))         u ~ U[0, 1)
    x' is accepted if  log u < log r,  which has the probability  min(1, r)

With it pi(x) q(x, x') min(1, r) is the same from x to x' as from x' to x, which is detailed
balance. Every move, swap and jump decides here, whatever its r is.

*In logarithms.* r overflows where log r is above 709 (88 in single precision) and underflows where
it is far below zero, while log u and log r are compared as they are. The comparison is strict: with
r = 0 a proposal is refused even if u is 0, since -inf < -inf is false.

*Not a number is refused.* log r is not a number where it is a difference of infinities: both
densities are zero, or a density could not be computed at the proposal. The chain stays where its
density is known, and the acceptance probability counts as zero in every mean.
"""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

State = TypeVar("State")


class Decision(NamedTuple):
    """Whether to accept, the probability of that, and log r with -inf for what is not a number."""

    accepted: Bool[Array, "*shape"]
    probability: Float[Array, "*shape"]
    log_ratio: Float[Array, "*shape"]


class Tried(NamedTuple):
    """How one or several proposals fared; `lost` says that the density was zero there."""

    acceptance: Float[Array, "*times"]
    accepted: Bool[Array, "*times"]
    lost: Bool[Array, "*times"]


def decide(uniform: Float[Array, "*shape"], log_ratio: Float[Array, "*shape"]) -> Decision:
    """Accept with probability min(1, ratio), by a number that is uniform on [0, 1)."""
    probability, log_ratio = acceptance_of(log_ratio)
    return Decision(jnp.log(uniform) < log_ratio, probability, log_ratio)


def acceptance_of(log_ratio: Float[Array, "*shape"]) -> tuple[Array, Array]:
    """min(1, ratio) and the log ratio, with -inf for what is not a number."""
    log_ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
    return jnp.exp(jnp.minimum(log_ratio, 0.0)), log_ratio


def choose(accepted: Bool[Array, ""], new: State, old: State) -> State:
    """The new state with all that is known of it, or the old one with all that is known of it."""
    return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)


def accept_or_stay(
    uniform: Float[Array, ""],
    log_there: Float[Array, ""],
    log_here: Float[Array, ""],
    there: State,
    here: State,
) -> tuple[State, Tried]:
    """Where a symmetric proposal leads, from the log densities of both states."""
    decision = decide(uniform, log_there - log_here)
    kept = choose(decision.accepted, there, here)
    return kept, Tried(decision.probability, decision.accepted, ~jnp.isfinite(log_there))
