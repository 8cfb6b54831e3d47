"""Broken twins of equi-energy jumps, each named after its slip."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.energies import EnergyLadder
from temperance.ladders.ladder import Rungs
from temperance.moves.accept import acceptance_of
from temperance.samplers.equi_energy.jumps import Jump
from temperance.samplers.equi_energy.reservoir import Reservoir, draw


def jump_with_the_printed_ratio(
    key: Key, point: Point, hotter: Reservoir, ladder: EnergyLadder, rung: Rungs
) -> tuple[Point, Jump]:
    """Paper 2's appendix: pi_k(x') pi_{k-1}(x) over pi_{k-1}(x) pi_{k-2}(x')."""

    def log_ratio(there: Array) -> Array:
        return jnp.sum(ladder.increments(there)[jnp.asarray([rung - 1, rung - 2])])

    return _jump(key, point, hotter, ladder.ring(point.components), log_ratio)


def jump_with_the_ratio_upside_down(
    key: Key, point: Point, hotter: Reservoir, ladder: EnergyLadder, rung: Rungs
) -> tuple[Point, Jump]:
    """The old state over the new one."""

    def log_ratio(there: Array) -> Array:
        here = point.components
        return ladder.increments(here)[rung - 1] - ladder.increments(there)[rung - 1]

    return _jump(key, point, hotter, ladder.ring(point.components), log_ratio)


def jump_to_the_ring_of_the_truncated_energy(
    key: Key, point: Point, hotter: Reservoir, ladder: EnergyLadder, rung: Rungs
) -> tuple[Point, Jump]:
    """The ring by max(h, H_{k-1}), where stored states were sorted by h."""

    def log_ratio(there: Array) -> Array:
        here = point.components
        return ladder.increments(there)[rung - 1] - ladder.increments(here)[rung - 1]

    ring = ladder.ring(jnp.minimum(point.components, -ladder.levels[rung - 1]))
    return _jump(key, point, hotter, ring, log_ratio)


def jump_without_a_ratio(
    key: Key, point: Point, hotter: Reservoir, ladder: EnergyLadder, rung: Rungs
) -> tuple[Point, Jump]:
    """States of about the same energy taken for states of the same probability."""
    return _jump(key, point, hotter, ladder.ring(point.components), lambda _: jnp.zeros(()))


def _jump(
    key: Key, point: Point, hotter: Reservoir, ring: Array, log_ratio_to: object
) -> tuple[Point, Jump]:
    uniforms = jax.random.uniform(key, (2,))
    other, found = draw(uniforms[0], hotter, ring)
    acceptance, log_ratio = acceptance_of(log_ratio_to(other.components))
    accepted = found & (jnp.log(uniforms[1]) < log_ratio)
    landed = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), other, point)
    return landed, Jump(jnp.where(found, acceptance, 0.0), accepted, found)


JUMPS = {
    "the printed ratio": jump_with_the_printed_ratio,
    "the ratio upside down": jump_with_the_ratio_upside_down,
    "the ring of the truncated energy": jump_to_the_ring_of_the_truncated_energy,
    "no ratio": jump_without_a_ratio,
}
