"""Weighted particles: what an island of sequential Monte Carlo carries, and how it is weighed.

For particles with normalised weights W^i and a step to the next temperature with incremental
weights v^i,

    Z_t / Z_{t-1}  ~  sum_i W^i v^i,          W^i  <-  W^i v^i / sum_j W^j v^j,
    ESS / N  = 1 / (N sum_i (W^i)^2),         CESS / N = (sum_i W^i v^i)^2 / sum_i W^i (v^i)^2.

A particle whose v is zero or not a number has no weight from then on. If none has any, the estimate
of Z is zero and stays zero, as it must for its mean to be Z; the weights are left as they were.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Point, Scalar
from temperance.ladders.ladder import Rung
from temperance.ladders.prefix import PrefixRung
from temperance.moves.move import Params
from temperance.samplers.annealing.betas import HALVINGS, log_conditional_ess
from temperance.samplers.annealing.particle_moves import Moved

LogWeights = Float[Array, " particles"]


class ParticleState(NamedTuple):
    """An island of particles, weighted, at inverse temperature `beta`; at the target that is 1.

    `log_weights` are normalised. `params` are those of the last moves, `origin` is each particle's
    ancestor at the hottest rung, and `order` that of the rows, where rungs are prefixes.
    """

    points: Point
    log_weights: LogWeights
    beta: Float[Array, ""]
    num_steps: Int[Array, ""]
    log_z: Float[Array, ""]
    params: Params
    origin: Int[Array, " particles"]
    order: Int[Array, " n"] | None


class ParticleInfo(NamedTuple):
    """What one step did; all zeros where the island was at the target already.

    `conditional_ess` and `ess` are shares of the particles, `ess` before resampling; `num_origins`
    of the particles' ancestors at the hottest rung are left. `acceptance` and `correlation` (with
    where the moves began) are means; counts, from `num_evaluations` on, are sums over particles and
    moves. `num_rows` are the terms that were evaluated on prefixes.
    """

    moving: Bool[Array, ""]
    beta: Float[Array, ""]
    log_z_step: Float[Array, ""]
    conditional_ess: Float[Array, ""]
    ess: Float[Array, ""]
    resampled: Bool[Array, ""]
    num_origins: Int[Array, ""]
    num_moves: Int[Array, ""]
    correlation: Float[Array, ""]
    acceptance: Float[Array, " parts"]
    step_size: Float[Array, " parts"]
    num_evaluations: Float[Array, ""]
    num_values: Float[Array, ""]
    num_rows: Float[Array, ""]
    diverging: Float[Array, ""]
    impossible: Float[Array, ""]


class Temperature(NamedTuple):
    """The next temperature: its beta and density, and the particles' log v on the way to it."""

    beta: Scalar
    rung: Rung
    points: Point
    increments: Float[Array, " particles"]


def reweighted(log_weights: LogWeights, increments: LogWeights) -> tuple[LogWeights, Scalar]:
    """The weights at the next temperature, and the log ratio of the two constants."""
    logs = log_weights + _number(increments)
    log_ratio = logsumexp(logs)
    lost = jnp.isneginf(log_ratio)
    return jnp.where(lost, log_weights, logs - jnp.where(lost, 0.0, log_ratio)), log_ratio


def effective_share(log_weights: LogWeights) -> Scalar:
    """ESS / N of normalised weights."""
    return jnp.exp(-logsumexp(2 * log_weights)) / log_weights.shape[0]


def conditional_share(log_weights: LogWeights, increments: LogWeights) -> Scalar:
    """CESS / N of a step from normalised weights."""
    one = jnp.ones((), log_weights.dtype)
    return jnp.exp(log_conditional_ess(one, _number(increments), log_weights))


def next_beta(
    beta: Scalar, tilts: Float[Array, " particles"], log_weights: LogWeights, share: float
) -> Scalar:
    """Where CESS / N of a step from `beta` is `share`, or 1 if it is no less there.

    `tilts` are the log densities at 1 over those at 0.
    """
    rest, wanted = 1 - beta, jnp.log(jnp.asarray(share, beta.dtype))

    def is_near(step: Scalar) -> Bool[Array, ""]:
        return log_conditional_ess(step, tilts, log_weights) >= wanted

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        near = is_near(middle)
        return jnp.where(near, middle, low), jnp.where(near, high, middle)

    low, _ = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(rest), rest))
    # No step at all would never end; the least is one that beta can tell from none.
    least = jnp.finfo(beta.dtype).eps
    following = jnp.minimum(beta + jnp.maximum(low, least), 1.0)
    # Where every particle is impossible Z-hat is zero, and there is nothing to be careful with.
    at_once = is_near(rest) | ~jnp.any(jnp.isfinite(log_weights + tilts))
    return jnp.where(at_once, 1.0, following)


def step_info(
    before: ParticleState,
    at: Temperature,
    log_weights: LogWeights,
    resampled: Bool[Array, ""],
    moved: Moved,
    after: ParticleState,
) -> ParticleInfo:
    """What a step did; `log_weights` are those before resampling."""
    evaluations = moved.counts.num_evaluations
    num, rows = log_weights.shape[0], jnp.zeros_like(evaluations)
    if isinstance(at.rung, PrefixRung):
        ladder, index = at.rung.prefix, at.rung.index
        rows = evaluations * ladder.sizes[index] + num * ladder.num_added(index - 1)
    return ParticleInfo(
        moving=jnp.array(True),
        beta=at.beta,
        log_z_step=after.log_z - before.log_z,
        conditional_ess=conditional_share(before.log_weights, at.increments),
        ess=effective_share(log_weights),
        resampled=resampled,
        num_origins=jnp.sum(jnp.zeros((num,), int).at[after.origin].set(1)),
        num_moves=moved.num_moves,
        correlation=moved.correlation,
        acceptance=moved.acceptance,
        step_size=moved.params.step_size,
        num_evaluations=evaluations,
        num_values=moved.counts.num_values,
        num_rows=rows,
        diverging=moved.counts.diverging,
        impossible=moved.counts.impossible,
    )


def _number(increments: LogWeights) -> LogWeights:
    return jnp.where(jnp.isnan(increments), -jnp.inf, increments)
