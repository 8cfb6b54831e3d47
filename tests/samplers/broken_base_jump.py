"""Jumps from the base with slips: each leaves another law invariant."""

from typing import Any

import jax
import jax.numpy as jnp

from temperance._types import Key, Point
from temperance.moves.accept import choose, decide


def jump_at_full_power(key: Key, ladder: Any, beta: Any, point: Point, move: Any) -> Point:
    """Accepts as if the target were at beta = 1 at every temperature."""
    fresh, uniform = _proposal(key, ladder)
    gain = ladder.tilt(fresh.components) - ladder.tilt(point.components)
    return choose(decide(uniform, gain).accepted, fresh, point)


def jump_without_the_base(key: Key, ladder: Any, beta: Any, point: Point, move: Any) -> Point:
    """Accepts by the target's density alone, as if proposals were symmetric."""
    fresh, uniform = _proposal(key, ladder)
    gain = beta * (fresh.components[1] - point.components[1])
    return choose(decide(uniform, gain).accepted, fresh, point)


def _proposal(key: Key, ladder: Any) -> tuple[Point, Any]:
    key_draw, key_accept = jax.random.split(key)
    fresh = ladder.evaluate(ladder.draw_hot(key_draw), gradient=True)
    return fresh, jax.random.uniform(key_accept, dtype=jnp.result_type(float))
