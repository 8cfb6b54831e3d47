"""Warm-up: what is tuned, from what, and when it stops.

For every rung k, pooled over the chains:

    step size    dual averaging (Nesterov; Hoffman & Gelman 2014) of log s_k on target - acceptance
    factor       F_k F_k', from the moments of positions x and gradients g at the rung: the
                 minimiser of the Fisher divergence to a Gaussian, which is
                 diagonal   sqrt(var x / var g)
                 dense      S with S cov(g) S = cov(x)       (cov x, where no gradients are kept)
    betas        equal rejection between neighbours (ladders/spacing.py), from mean swap acceptance

Variances alone mislead when a rung has several modes: the distance between the modes is not the
width of either, and gradients only see the width. Rounds double in length; betas and factors change
only between rounds, on the host, and the last round tunes step sizes alone. Then nothing adapts.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from temperance.moves.move import AbstractMove, Params

# Dual averaging's constants, as in Hoffman & Gelman (2014).
SHRINKAGE, DELAY, FORGETTING = 0.05, 10.0, 0.75


class Moments(NamedTuple):
    """Sums over draws since the round began, about `shift` so that nothing cancels."""

    shift: Float[Array, "rungs d"]
    first: Float[Array, "rungs d"]
    second: Float[Array, "rungs d"] | Float[Array, "rungs d d"]


class Adaptation(NamedTuple):
    """Everything warm-up carries from step to step."""

    log_step: Float[Array, "rungs parts"]
    log_step_mean: Float[Array, "rungs parts"]
    log_step_center: Float[Array, "rungs parts"]
    error_mean: Float[Array, "rungs parts"]
    factor: Float[Array, "rungs d"] | Float[Array, "rungs d d"]
    positions: Moments
    gradients: Moments | None
    swap_acceptance: Float[Array, " rungs-1"]
    swap_tried: Float[Array, " rungs-1"]
    num_steps: Int[Array, ""]

    def params(self, learning: Bool[Array, ""] | bool = False) -> Params:
        """The parameters to try next while learning, and those arrived at otherwise."""
        log_step = jnp.where(learning, self.log_step, self.log_step_mean)
        return Params(jnp.exp(log_step), self.factor)

    def after(self, sampler: Any, state: PyTree, info: Any) -> "Adaptation":
        """What is known after one more step of every chain."""
        move: AbstractMove = sampler.move
        count = self.num_steps + 1
        error = jnp.asarray(move.target_acceptance)[None] - jnp.mean(info.acceptance, axis=0)
        rate = 1.0 / (count + DELAY)
        error_mean = (1 - rate) * self.error_mean + rate * error
        log_step = self.log_step_center - jnp.sqrt(count) / SHRINKAGE * error_mean
        log_step = jnp.minimum(log_step, jnp.log(jnp.asarray(move.longest_steps()))[None])
        weight = count**-FORGETTING
        log_step_mean = weight * log_step + (1 - weight) * self.log_step_mean
        free = _free(sampler)
        swaps = getattr(info, "swap_acceptance", None)
        tried = getattr(info, "swap_tried", None)
        return self._replace(
            log_step=jnp.where(free, log_step, self.log_step),
            log_step_mean=jnp.where(free, log_step_mean, self.log_step_mean),
            error_mean=error_mean,
            positions=_add(self.positions, jax.vmap(sampler.positions)(state)),
            gradients=None
            if self.gradients is None
            else _add(self.gradients, _gradients(sampler, state, info)),
            swap_acceptance=self.swap_acceptance
            + (0.0 if swaps is None else jnp.mean(swaps, axis=0)),
            swap_tried=self.swap_tried
            + (1.0 if tried is None else jnp.mean(jnp.minimum(tried, 1.0), axis=0)),
            num_steps=count,
        )


@eqx.filter_jit
def begin(sampler: Any, state: PyTree) -> Adaptation:
    """A round's start, from the sampler's parameters and the chains' states."""
    params: Params = sampler.params
    log_step = jnp.log(params.step_size)
    shift = jnp.mean(jax.vmap(sampler.positions)(state), axis=0)
    moments = Moments(shift, jnp.zeros_like(shift), jnp.zeros_like(params.factor))
    still = moments._replace(shift=jnp.zeros_like(shift))
    return Adaptation(
        log_step,
        log_step,
        log_step,
        jnp.zeros_like(log_step),
        params.factor,
        moments,
        still if sampler.move.sees_gradients() else None,
        jnp.zeros((shift.shape[0] - 1,), log_step.dtype),
        jnp.zeros((shift.shape[0] - 1,), log_step.dtype),
        jnp.zeros((), int),
    )


def _free(sampler: Any) -> np.ndarray:
    """Which rungs' step sizes are tuned: not fixed ones, nor that of an exact draw."""
    free = np.array([[size is None for size in sampler.move.step_sizes]] * sampler.num_rungs)
    if sampler.ladder.draw_hottest() is not None:
        free[0] = False
    return free


def _gradients(sampler: Any, state: PyTree, info: Any) -> Float[Array, "chains rungs d"]:
    """Each rung's gradient at its point or, where points carry none, seen on the way from it."""
    return info.slope if info.slope is not None else jax.vmap(sampler.gradients)(state)


def _add(moments: Moments, values: Float[Array, "chains rungs d"]) -> Moments:
    # A divergent trajectory may leave a gradient that is not finite; it says nothing of the scale.
    centred = jnp.where(jnp.isfinite(values), values - moments.shift[None], 0.0)
    dense = moments.second.ndim == 3
    square = jnp.einsum("cki,ckj->kij", centred, centred) if dense else jnp.sum(centred**2, axis=0)
    return Moments(moments.shift, moments.first + jnp.sum(centred, axis=0), moments.second + square)


def learn_factor(adaptation: Adaptation, metric: str, num_chains: int) -> np.ndarray:
    """The factor of every rung from a finished round's moments, shrunk towards the last one."""
    previous = np.asarray(adaptation.factor)
    n = int(adaptation.num_steps) * num_chains
    if metric == "unit" or n < 20:
        return previous
    spread = _covariance(adaptation.positions, n)
    slope = None if adaptation.gradients is None else _covariance(adaptation.gradients, n)
    pull = 10.0 / (n + 10.0)
    new = np.empty_like(previous)
    for k in range(previous.shape[0]):
        learn = _dense_factor if previous.ndim == 3 else _diagonal_factor
        learnt = learn(spread[k], None if slope is None else slope[k], previous[k], pull)
        new[k] = learnt if np.isfinite(learnt).all() else previous[k]
    return new


def _covariance(moments: Moments, n: int) -> np.ndarray:
    mean = np.asarray(moments.first) / n
    square = mean[:, :, None] * mean[:, None, :] if moments.second.ndim == 3 else mean**2
    return np.asarray(moments.second) / n - square


def _diagonal_factor(
    spread: np.ndarray, slope: np.ndarray | None, previous: np.ndarray, pull: float
) -> np.ndarray:
    variance = spread if slope is None else np.sqrt(spread / np.where(slope > 0, slope, np.nan))
    log_variance = (1 - pull) * np.log(np.where(variance > 0, variance, np.nan))
    log_variance = log_variance + pull * 2 * np.log(previous)
    return np.where(np.isfinite(log_variance), np.exp(0.5 * log_variance), previous)


def _dense_factor(
    spread: np.ndarray, slope: np.ndarray | None, previous: np.ndarray, pull: float
) -> np.ndarray:
    prior = previous @ previous.T
    try:
        covariance = (1 - pull) * spread + pull * prior
        if slope is not None:
            precision = (1 - pull) * slope + pull * np.linalg.inv(prior)
            covariance = _geometric_mean(covariance, precision)
        return np.linalg.cholesky(0.5 * (covariance + covariance.T))
    except np.linalg.LinAlgError:
        return previous


def _geometric_mean(covariance: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """The S with S precision S = covariance."""
    values, vectors = np.linalg.eigh(precision)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse_root = (vectors / np.sqrt(values)) @ vectors.T
    inner, axes = np.linalg.eigh(root @ covariance @ root)
    return inverse_root @ (axes * np.sqrt(np.maximum(inner, 0))) @ axes.T @ inverse_root


def rounds(num_warmup: int) -> list[int]:
    """Lengths of the rounds: doubling, then a last one that tunes step sizes only."""
    if num_warmup < 40:
        return [num_warmup] if num_warmup else []
    last = max(20, round(0.15 * num_warmup))
    learning = num_warmup - last
    num = max(1, int(np.log2(learning / 20 + 1)))
    num = min(num, 5)
    shares = 2.0 ** np.arange(num)
    lengths = np.floor(learning * shares / shares.sum()).astype(int)
    lengths[-1] += learning - lengths.sum()
    return [*lengths.tolist(), last]


def transplant(old: np.ndarray, new: np.ndarray, params: Params) -> Params:
    """Parameters of the rungs at `old` betas, carried to `new` ones by their neighbours."""
    place = np.interp(new, old, np.arange(len(old)))
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, len(old) - 1)
    share = place - low

    def between(values: np.ndarray) -> np.ndarray:
        mix = share.reshape(-1, *(1,) * (values.ndim - 1))
        if values.ndim == 3:  # a convex mix of triangles with positive diagonals is one
            return (1 - mix) * values[low] + mix * values[high]
        return np.exp((1 - mix) * np.log(values[low]) + mix * np.log(values[high]))

    return Params(
        jnp.asarray(between(np.asarray(params.step_size))),
        jnp.asarray(between(np.asarray(params.factor))),
    )
