"""Warm-up in company that weighs the rungs as it goes, for chains that will travel alone.

Rungs of parallel tempering (plan.py) tune a step size and a factor for every temperature, their
swaps say where the rungs belong, and their points weigh the rungs,

    log Z_{k+1} / Z_k = log mean_{pi_k} exp(I_k / 2) - log mean_{pi_{k+1}} exp(-I_k / 2)

(the geometric bridge of Meng and Wong 1996). A chain that has to find these weights on its own
must first have been where it cannot go without them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, PyTree

from temperance._types import Options
from temperance.ladders.ladder import weighted
from temperance.moves.move import Params
from temperance.methods.plan import Plan
from temperance.engine.stage import Stage
from temperance.warmup.adaptation import Adaptation


class Weighing(NamedTuple):
    """Warm-up of parallel tempering, and sums of exp(I / 2) and exp(-I / 2) for each pair."""

    inner: Adaptation
    log_up: Float[Array, " pairs"]
    log_down: Float[Array, " pairs"]

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
        )

    def log_z(self) -> np.ndarray:
        """Log Z of every rung, from the hottest; 0 more where two rungs share no point."""
        steps = np.asarray(self.log_up, float) - np.asarray(self.log_down, float)
        return np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(steps), steps, 0.0))])


def _possible(values: Array) -> Array:
    return jnp.where(jnp.isnan(values), -jnp.inf, values)


@dataclass(frozen=True)
class WeighingPlan(Plan):
    """A plan whose rungs of parallel tempering carry a `Weighing`; `log_zeta` is kept if given.

    Where rows are added instead of heat nothing is weighed: the draws need no weights.
    """

    log_zeta: float | None = None

    def own(self) -> Options:
        return {"log_zeta": self.log_zeta}

    def _carry(self, stage: Stage, params: Params, state: PyTree) -> PyTree:
        state, inner = super()._carry(stage, params, state)
        if self.subsampling is not None:
            return state, inner
        nothing = jnp.full((len(stage.betas) - 1,), -jnp.inf, params.step_size.dtype)
        return state, Weighing(inner, nothing, nothing)
