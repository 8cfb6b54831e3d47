"""Moves of all particles at one temperature, tuned by the particles themselves.

**Scales.** The factor F of the moves comes from the weighted particles at the new temperature. From
the variances of positions x and, where points carry them, of gradients g,

    diagonal   F_i^2 = var x_i,   or  sqrt(var x_i / var g_i)
    dense      F F'  = cov x,     or  the S with S cov(g) S = cov(x)

with gradients the Gaussian that is nearest in Fisher divergence, as in warm-up: the distance of two
modes does not widen it. It is shrunk towards the factor of the last temperature by 10 / (n + 10), n
being the effective number of particles. After each move of all particles a step size s follows

    log s <- log s + (mean acceptance of the particles) - (target acceptance).

**How many moves.** With rho_k the correlation of the particles' positions before the first move and
after k moves, averaged over coordinates (one below zero counts as zero), moves are repeated until

    rho_k < c    or    rho_{k/2} - rho_k < c (1 - rho_k)    or    k = the most allowed.

The second rule says that of all the distance moved only a share c came with the second half of the
moves. It ends the moves where particles have forgotten all but their mode, which no number of moves
would make them forget. Del Moral, Doucet and Jasra (2006) and Dau and Chopin (2022) leave the
number open.

**Waste-free.** Where M ancestors stand for N = M P particles, each starts a chain of P states, and
all N states are the new particles (Dau and Chopin 2022, algorithm 2).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Key, Point, Scalar
from temperance.ladders.ladder import Rung
from temperance.moves.move import AbstractMove, Params

Weights = Float[Array, " particles"]


class Moved(NamedTuple):
    """Particles after their moves, what was learnt on the way, and sums of what it took.

    `acceptance` is the mean over moves and particles; `correlation` that with the start.
    """

    points: Point
    params: Params
    acceptance: Float[Array, " parts"]
    correlation: Float[Array, ""]
    num_moves: Int[Array, ""]
    counts: "Counts"


class Counts(NamedTuple):
    """Sums over particles and moves."""

    num_evaluations: Float[Array, ""]
    num_values: Float[Array, ""]
    diverging: Float[Array, ""]
    impossible: Float[Array, ""]


def flat_positions(points: Point) -> Float[Array, "particles d"]:
    """Each particle's position as a vector."""
    return jax.vmap(lambda position: ravel_pytree(position)[0])(points.position)


def first_params(move: AbstractMove, points: Point, rung: Rung) -> Params:
    """Where step sizes start, and the scales of particles that were drawn at a rung."""
    flat = flat_positions(points)
    num, dimension = flat.shape
    shape = (dimension, dimension) if move.metric == "dense" else (dimension,)
    ones = jnp.eye(dimension, dtype=flat.dtype) if len(shape) == 2 else jnp.ones(shape, flat.dtype)
    even = jnp.full((num,), 1 / num, flat.dtype)
    step_size = move.initial_step_sizes(dimension).astype(flat.dtype)
    return Params(step_size, particles_factor(move, points, even, rung, ones))


def particles_factor(
    move: AbstractMove, points: Point, weights: Weights, rung: Rung, previous: Array
) -> Array:
    """The factor of the weighted particles, shrunk towards the previous one."""
    if move.metric == "unit":
        return previous
    pull = 10 / (10 + 1 / jnp.sum(weights**2))
    spread = _covariance(flat_positions(points), weights, previous.ndim)
    slope = None
    if points.gradients is not None:
        slope = _covariance(jax.vmap(rung.gradient)(points), weights, previous.ndim)
    learn = _dense_factor if previous.ndim == 2 else _diagonal_factor
    learnt = learn(spread, slope, previous, pull)
    return jnp.where(jnp.all(jnp.isfinite(learnt)), learnt, previous)


def _covariance(values: Float[Array, "particles d"], weights: Weights, ndim: int) -> Array:
    # A particle that is not finite, or whose gradient is not, says nothing of the scale.
    good = jnp.where(jnp.isfinite(values), values, 0.0)
    centred = good - (weights @ good)[None]
    return weights @ centred**2 if ndim == 1 else centred.T @ (weights[:, None] * centred)


def _diagonal_factor(spread: Array, slope: Array | None, previous: Array, pull: Scalar) -> Array:
    variance = spread if slope is None else jnp.sqrt(spread / slope)
    known = jnp.isfinite(variance) & (variance > 0)
    log_variance = jnp.log(jnp.where(known, variance, 1.0))
    learnt = jnp.exp(0.5 * (1 - pull) * log_variance + pull * jnp.log(previous))
    return jnp.where(known, learnt, previous)


def _dense_factor(spread: Array, slope: Array | None, previous: Array, pull: Scalar) -> Array:
    prior = previous @ previous.T
    covariance = (1 - pull) * spread + pull * prior
    if slope is not None:
        precision = (1 - pull) * slope + pull * jnp.linalg.inv(prior)
        values, vectors = jnp.linalg.eigh(precision)
        lengths = jnp.sqrt(values)[None]
        root, inverse_root = (vectors * lengths) @ vectors.T, (vectors / lengths) @ vectors.T
        inner, axes = jnp.linalg.eigh(root @ covariance @ root)
        middle = (axes * jnp.sqrt(jnp.maximum(inner, 0.0))[None]) @ axes.T
        covariance = inverse_root @ middle @ inverse_root
    return jnp.linalg.cholesky(0.5 * (covariance + covariance.T))


def mean_correlation(
    start: Float[Array, "particles d"], now: Float[Array, "particles d"], weights: Weights
) -> Scalar:
    """The correlation of the particles' positions then and now, averaged over coordinates.

    It is one in a coordinate in which particles do not differ, and zero where it is negative.
    """
    then, since = (x - (weights @ x)[None] for x in (start, now))
    both = weights @ (then * since)
    scale = jnp.sqrt((weights @ then**2) * (weights @ since**2))
    return jnp.mean(jnp.where(scale > 0, jnp.maximum(both / scale, 0.0), 1.0))


def move_once(
    move: AbstractMove, key: Key, points: Point, rung: Rung, params: Params, learning: bool
) -> tuple[Point, Params, Float[Array, " parts"], Counts]:
    """One move of every particle, and the step sizes that follow from it."""
    keys = jax.random.split(key, points.components.shape[0])

    def one(key: Key, point: Point):
        return move.step(key, point, rung, params)

    if move.branches:
        points, info = jax.lax.map(lambda each: one(*each), (keys, points))
    else:
        points, info = jax.vmap(one)(keys, points)
    acceptance = jnp.mean(info.acceptance, axis=0)

    def total(values: Array | int | bool) -> Array:
        each = jnp.broadcast_to(jnp.asarray(values, acceptance.dtype), keys.shape)
        return jnp.sum(each)

    counts = Counts(*map(total, (info.num_evaluations, info.num_values, info.diverging,
                                 info.impossible)))  # fmt: skip
    if learning:
        free = np.array([size is None for size in move.step_sizes])
        error = acceptance - jnp.asarray(move.target_acceptance, acceptance.dtype)
        longest = jnp.asarray(move.longest_steps(), acceptance.dtype)
        tried = jnp.minimum(params.step_size * jnp.exp(error), longest)
        params = params._replace(step_size=jnp.where(free, tried, params.step_size))
    return points, params, acceptance, counts


def move_repeatedly(
    move: AbstractMove,
    key: Key,
    points: Point,
    rung: Rung,
    params: Params,
    weights: Weights,
    *,
    num_moves: int | None,
    most_moves: int,
    correlation: float,
    learning: bool,
) -> Moved:
    """`num_moves` moves, or as many as it takes to forget the start, where that is None."""
    start = flat_positions(points)
    most = most_moves if num_moves is None else num_moves

    def again(carry: tuple[Point, Params, Array, Counts, Array, Array]) -> Bool[Array, ""]:
        *_, history, count = carry
        if num_moves is not None:
            return count < num_moves
        now, halfway = history[count], history[count // 2]
        stalled = (count >= 2) & (halfway - now < correlation * (1 - now))
        return (count < most) & ~((now < correlation) | stalled)

    def advance(carry: tuple[Point, Params, Array, Counts, Array, Array]):
        points, params, acceptance, counts, history, count = carry
        key_now = jax.random.fold_in(key, count)
        points, params, accepted, more = move_once(move, key_now, points, rung, params, learning)
        now = mean_correlation(start, flat_positions(points), weights)
        count = count + 1
        history = history.at[count].set(now)
        counts = jax.tree.map(jnp.add, counts, more)
        return points, params, acceptance + accepted, counts, history, count

    zero = jnp.zeros((), start.dtype)
    sums = jnp.zeros((len(move.step_sizes),), start.dtype)
    history = jnp.ones((most + 1,), start.dtype)
    carry = points, params, sums, Counts(zero, zero, zero, zero), history, jnp.array(0)
    points, params, acceptance, counts, history, count = jax.lax.while_loop(again, advance, carry)
    mean = acceptance / jnp.maximum(count, 1)
    return Moved(points, params, mean, history[count], count, counts)


def move_in_chains(
    move: AbstractMove,
    key: Key,
    points: Point,
    rung: Rung,
    params: Params,
    length: int,
    *,
    learning: bool,
) -> Moved:
    """A chain of `length` states from every point, which is its first; all of them, in turn."""
    start = flat_positions(points)

    def advance(carry: tuple[Point, Params], key: Key):
        points, params, acceptance, counts = move_once(
            move, key, carry[0], rung, carry[1], learning
        )
        return (points, params), (points, acceptance, counts)

    keys = jax.random.split(key, length - 1)
    (last, params), (later, acceptance, counts) = jax.lax.scan(advance, (points, params), keys)
    all_points = jax.tree.map(
        lambda first, rest: jnp.concatenate([first[None], rest]).reshape(-1, *first.shape[1:]),
        points,
        later,
    )
    even = jnp.full((start.shape[0],), 1 / start.shape[0], start.dtype)
    return Moved(
        all_points,
        params,
        jnp.mean(acceptance, axis=0),
        mean_correlation(start, flat_positions(last), even),
        jnp.asarray(length - 1),
        jax.tree.map(jnp.sum, counts),
    )
