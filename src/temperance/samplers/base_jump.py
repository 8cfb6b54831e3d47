"""An independent proposal from the base, for one chain on its way between base and target.

    x' ~ q,        accepted with probability min(1, (p(x') / q(x') / (p(x) / q(x)))^beta)

leaves q^(1 - beta) p^beta invariant: it is the rule of Metropolis and Hastings for a proposal that
does not depend on x. At beta = 0 it is always accepted. Where the base is a mixture of modes it
takes a chain from one of them to another, which small steps do not.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Key, Point
from temperance.errors import ArgumentError
from temperance.ladders.geometric import GeometricLadder
from temperance.moves.accept import choose, decide
from temperance.moves.move import AbstractMove


def jump_from_base(
    key: Key, ladder: GeometricLadder, beta: Float[Array, ""], point: Point, move: AbstractMove
) -> Point:
    """The point, or a draw of the base in its place."""
    assert ladder.draw_hot is not None
    key_draw, key_accept = jax.random.split(key)
    position = ladder.draw_hot(key_draw)
    fresh = ladder.evaluate(position, gradient=move.uses_gradient)
    if move.gathers:
        fresh = move.remember(fresh, ladder.at(0))
    ratio = log_ratio(ladder, beta, point, fresh)
    uniform = jax.random.uniform(key_accept, dtype=ratio.dtype)
    return choose(decide(uniform, ratio).accepted, fresh, point)


def log_ratio(
    ladder: GeometricLadder, beta: Float[Array, ""], here: Point, there: Point
) -> Float[Array, ""]:
    """The log of the ratio by which a draw of the base is accepted at a power `beta`."""
    gain = ladder.tilt(there.components) - ladder.tilt(here.components)
    # At the base every draw of it is as good as any other, also where the target is zero.
    return jnp.where(beta == 0, 0.0, beta * gain)


def check_jumps(ladder: object) -> None:
    """Raise where there is no base to draw from."""
    if not isinstance(ladder, GeometricLadder) or ladder.draw_hot is None:
        raise ArgumentError(
            "jumps: wanted a GeometricLadder whose base can be drawn from (draw_hot=)"
        )
