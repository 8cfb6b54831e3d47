"""Betas of an anneal, each as far from the last as its particles' weights allow.

With particles of normalised weights W and the increment v = exp((b - beta) t) of a step to b,

    CESS(b) = (sum W v)^2 / sum W v^2

is the conditional effective size of the step, a share of the particles (Zhou, Johansen and Aston
2016). Each b is where CESS has a given value, found by bisection; then all particles move at b. The
betas depend on these particles alone: the anneals that use them are others, and stay unbiased.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from temperance._types import Key, Point, Scalar
from temperance.errors import ArgumentError
from temperance.ladders.geometric import GeometricLadder
from temperance.samplers.params_by_beta import params_at
from temperance.moves.move import AbstractMove, Params

MOST_BETAS = 2**14
HALVINGS = 60


class Choosing(NamedTuple):
    """The betas so far, how many they are, and the particles that choose the next."""

    betas: Float[Array, " most"]
    num_betas: Int[Array, ""]
    points: Point
    log_weights: Float[Array, " particles"]


def log_conditional_ess(
    step: Scalar, tilts: Float[Array, " particles"], log_weights: Float[Array, " particles"]
) -> Scalar:
    """Log CESS of a step of `step` in beta, for particles with these tilts and log weights."""
    logs = log_weights - logsumexp(log_weights)
    moved = step * jnp.where(jnp.isfinite(tilts), tilts, -jnp.inf)
    return 2 * logsumexp(logs + moved) - logsumexp(logs + 2 * moved)


def conditional_betas(
    key: Key,
    ladder: GeometricLadder,
    move: AbstractMove,
    params: Params,
    conditional_ess: float,
    num_particles: int,
) -> np.ndarray:
    """Betas from 0 to 1 between which the conditional effective size is `conditional_ess`.

    `params` belong to the rungs of `ladder`, which can be drawn from at beta = 0.
    """
    betas, count = _choose(key, ladder, move, params, jnp.asarray(conditional_ess), num_particles)
    found = np.asarray(betas)[: int(count)]
    if found[-1] != 1.0:
        raise ArgumentError(
            f"conditional_ess: with {conditional_ess} an anneal takes more than {MOST_BETAS} "
            f"steps and came to beta = {found[-1]:.3g}: give a smaller one, or a base that is "
            "nearer to the target"
        )
    return found


@eqx.filter_jit
def _choose(
    key: Key,
    ladder: GeometricLadder,
    move: AbstractMove,
    params: Params,
    wanted: Scalar,
    num_particles: int,
) -> tuple[Array, Array]:
    draw = ladder.draw_hottest()
    assert draw is not None
    key_start, key_moves = jax.random.split(key)
    points = jax.vmap(lambda k: ladder.evaluate(draw(k), gradient=move.uses_gradient))(
        jax.random.split(key_start, num_particles)
    )
    zeros = jnp.zeros((num_particles,), points.components.dtype)
    start = Choosing(jnp.zeros((MOST_BETAS,), zeros.dtype), jnp.asarray(1), points, zeros)

    def unfinished(now: Choosing) -> Array:
        return (now.betas[now.num_betas - 1] < 1) & (now.num_betas < MOST_BETAS)

    def advance(now: Choosing) -> Choosing:
        beta = now.betas[now.num_betas - 1]
        tilts = jax.vmap(ladder.tilt)(now.points.components)

        def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = 0.5 * (low + high)
            near = log_conditional_ess(middle, tilts, now.log_weights) > jnp.log(wanted)
            return jnp.where(near, middle, low), jnp.where(near, high, middle)

        rest = 1 - beta
        at_once = log_conditional_ess(rest, tilts, now.log_weights) >= jnp.log(wanted)
        _, step = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(rest), rest))
        # Not a step at all would not end; below this the next beta is the next number.
        step = jnp.maximum(step, jnp.finfo(step.dtype).eps)
        following = jnp.where(at_once, 1.0, jnp.minimum(beta + step, 1.0))
        moved = now.log_weights + (following - beta) * jnp.where(
            jnp.isfinite(tilts), tilts, -jnp.inf
        )
        rung = ladder.between(following, 1 - following)
        here = params_at(ladder.betas, params, following)
        keys = jax.random.split(jax.random.fold_in(key_moves, now.num_betas), num_particles)
        points = jax.vmap(lambda k, p: move.step(k, p, rung, here)[0])(keys, now.points)
        return Choosing(
            now.betas.at[now.num_betas].set(following), now.num_betas + 1, points, moved
        )

    end = jax.lax.while_loop(unfinished, advance, start)
    return end.betas, end.num_betas
