"""The equi-energy jump: to a stored state of the next hotter rung, with about the same energy.

A chain at rung k, at x in ring j, proposes a state x' that rung k - 1 left in the same ring, and
accepts it with

    min(1, pi_k(x') pi_{k-1}(x) / (pi_k(x) pi_{k-1}(x'))) = min(1, exp(I_{k-1}(x') - I_{k-1}(x))),

with I_{k-1} = log pi_k - log pi_{k-1}. If stored states have the law of rung k - 1, the proposal is
that law restricted to the ring of x, which is also the ring of x': the ratio is that of
Metropolis and Hastings, the constants of the ring cancel, and pi_k is invariant. A jump evaluates
nothing, because states are stored with what is known of them. An empty ring leaves x where it is.

In print (paper 2, appendix) the denominator has pi_{k-1}(x) and the rung beyond in place of
pi_k(x) and pi_{k-1}(x'), which leaves another law invariant.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Key, Point, Scalar
from temperance.ladders.energies import EnergyLadder
from temperance.ladders.ladder import Rungs
from temperance.moves.accept import choose, decide
from temperance.samplers.equi_energy.reservoir import Reservoir, draw


class Jump(NamedTuple):
    """How a jump fared: its acceptance probability, what came of it, and if there was a state."""

    acceptance: Float[Array, ""]
    accepted: Bool[Array, ""]
    found: Bool[Array, ""]


def jump_log_ratio(ladder: EnergyLadder, rung: Rungs, here: Array, there: Array) -> Scalar:
    """Log of the ratio that accepts a jump at `rung`, from the components of both states."""
    return ladder.increments(there)[rung - 1] - ladder.increments(here)[rung - 1]


def jump(
    key: Key, point: Point, hotter: Reservoir, ladder: EnergyLadder, rung: Rungs
) -> tuple[Point, Jump]:
    """One jump from `point` at `rung` into the rings of the next hotter rung.

    Leaves pi_rung invariant where the states in `hotter` are draws of rung - 1, new ones at each
    jump. States that stay the same are an approximation, with an error of order one over the root
    of their effective number.
    """
    uniforms = jax.random.uniform(key, (2,), point.components.dtype)
    other, found = draw(uniforms[0], hotter, ladder.ring(point.components))
    log_ratio = jump_log_ratio(ladder, rung, point.components, other.components)
    return land(uniforms[1], log_ratio, other, found, point)


def land(
    uniform: Scalar, log_ratio: Scalar, other: Point, found: Bool[Array, ""], point: Point
) -> tuple[Point, Jump]:
    """`other` or `point` by Metropolis' decision; `point` where no state was `found`."""
    decision = decide(uniform, log_ratio)
    accepted = found & decision.accepted
    probability = jnp.where(found, decision.probability, 0.0)
    return choose(accepted, other, point), Jump(probability, accepted, found)


def maybe_jump(
    key: Key,
    point: Point,
    hotter: Reservoir,
    ladder: EnergyLadder,
    rung: Int[Array, ""],
    probability: float,
    allowed: Bool[Array, ""],
) -> tuple[Point, Bool[Array, ""], Jump]:
    """A jump with that probability; the coin knows nothing of the state."""
    key_coin, key_jump = jax.random.split(key)
    tried = allowed & (jax.random.uniform(key_coin) < probability)
    landed, told = jump(key_jump, point, hotter, ladder, rung)
    point = choose(tried, landed, point)
    found = tried & told.found
    return point, tried, Jump(jnp.where(found, told.acceptance, 0.0), tried & told.accepted, found)
