"""Warm-up by parallel tempering that also estimates log Z of every rung.

It is the warm-up of methods that draw with a single chain, which travels between the rungs. Rungs
of parallel tempering (power_rungs.py) tune a step size and a factor for every temperature, their
rejection rates determine the spacing of the rungs, and their points give

    log Z_{k+1} / Z_k = log mean_{pi_k} exp(I_k / 2) - log mean_{pi_{k+1}} exp(-I_k / 2)

(the geometric bridge of Meng and Wong 1996). A single chain can hardly estimate these weights
itself: it visits all rungs only if it has them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, PyTree

from temperance.ladders.ladder import weighted
from temperance.moves.move import Params
from temperance.warmup.adaptation import Adaptation, begin
from temperance.warmup.power_rungs import PowerRungs
from temperance.warmup.rounds import Betas


class Weighing(NamedTuple):
    """Warm-up of parallel tempering, and sums of exp(I / 2) and exp(-I / 2) for each pair.

    `num_evaluations` sums what a step's move evaluated at each rung, on average over the chains.
    """

    inner: Adaptation
    log_up: Float[Array, " pairs"]
    log_down: Float[Array, " pairs"]
    num_evaluations: Float[Array, " rungs"]

    def params(self, learning: Bool[Array, ""] | bool = False) -> Params:
        return self.inner.params(learning)

    def after(self, sampler: Any, state: PyTree, info: Any) -> "Weighing":
        """What is known after one more step of every chain."""
        components = state.points.components  # (chain, rung, component)
        steps = jnp.diff(sampler.ladder.weight_table(), axis=0)
        by_pair = jax.vmap(jax.vmap(weighted), in_axes=(None, 0))
        up = 0.5 * by_pair(steps, components[:, :-1])
        down = -0.5 * by_pair(steps, components[:, 1:])
        return Weighing(
            self.inner.after(sampler, state, info),
            jnp.logaddexp(self.log_up, logsumexp(_possible(up), axis=0)),
            jnp.logaddexp(self.log_down, logsumexp(_possible(down), axis=0)),
            self.num_evaluations + jnp.mean(info.num_evaluations, axis=0),
        )

    def log_z(self) -> np.ndarray:
        """Log Z of every rung, from the hottest; 0 more where two rungs share no point."""
        steps = np.asarray(self.log_up, float) - np.asarray(self.log_down, float)
        return np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(steps), steps, 0.0))])

    def cost(self) -> float:
        """Evaluations of a move between the ends, where an anneal makes its moves."""
        steps = max(int(self.inner.num_steps), 1)
        return float(np.mean(np.asarray(self.num_evaluations, float)[1:])) / steps


def _possible(values: Array) -> Array:
    return jnp.where(jnp.isnan(values), -jnp.inf, values)


@dataclass(frozen=True)
class Stops(Betas):
    """Rungs, and how many betas an anneal has, which are more; 0 where nothing anneals."""

    num_betas: int = 0


@dataclass(frozen=True)
class WeighedRungs(PowerRungs):
    """Rungs that are powers, and weighed; `log_zeta` is log Z where it is given, and kept."""

    log_zeta: float | None = None

    rungs = Stops

    def learns(self, sampler: Any, state: PyTree) -> Weighing:
        params = sampler.params
        nothing = jnp.full((sampler.num_rungs - 1,), -jnp.inf, params.step_size.dtype)
        evaluations = jnp.zeros((sampler.num_rungs,), params.step_size.dtype)
        return Weighing(begin(sampler, state), nothing, nothing, evaluations)

    def tuning(self, learnt: Weighing) -> Adaptation:
        return learnt.inner

    def log_z(self, learnt: Weighing | None, betas: tuple[float, ...]) -> np.ndarray:
        """Log Z of every rung: as given, as weighed, or 0 where nothing is known."""
        if self.log_zeta is not None:
            return self.log_zeta * np.asarray(betas)
        return np.zeros(len(betas)) if learnt is None else learnt.log_z()
