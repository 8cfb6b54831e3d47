"""What a run does whose chains travel the temperatures one by one: ST, Gibbs CT, AIS and BDMC.

Warm-up is that of parallel tempering, whose points weigh the rungs (weighing.py). Then

    st        the chains walk the rungs, with weights w_k = -log Z_k
    gibbs-ct  they go to any beta; rungs are knots for log Z and for the moves' parameters
    ais       each draw is an anneal through many more betas, spaced alike or by conditional ESS
    bdmc      the same, and one from the target for each

and nothing adapts any more. Chains start from where the target's replicas are.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from temperance._types import Options
from temperance.ladders.geometric import GeometricLadder
from temperance.moves.move import Params
from temperance.methods.plan import start_chains
from temperance.problems.problem import Problem
from temperance.samplers.annealing.importance import AnnealedImportance
from temperance.samplers.annealing.betas import conditional_betas
from temperance.samplers.continuous import GibbsTempering
from temperance.samplers.simulated import SimulatedTempering
from temperance.ladders.spacing import anneal_rungs_for, equalise
from temperance.engine.stage import Stage
from temperance.warmup.subsample_sizes import Subsampling
from temperance.warmup.rung_weights import Weighing, WeighingPlan

ANNEALED = ("ais", "bdmc")
# How many anneals choose their betas together, and folded into the key for them.
CHOOSERS, CHOOSING = 256, 2**31 - 2


class Ready(NamedTuple):
    """What draws are made with: tuned parameters at knots, log Z there, and an anneal's betas."""

    values: Params
    knots: Float[Array, " rungs"]
    log_z: Float[Array, " rungs"]
    betas: Float[Array, " betas"]

    def params(self, learning: Bool[Array, ""] | bool = False) -> Params:
        """Always the same."""
        return self.values

    def after(self, sampler: Any, state: PyTree, info: Any) -> "Ready":
        """Nothing is learnt."""
        return self


@dataclass(frozen=True)
class TravelPlan(WeighingPlan):
    """How to make the stages of one call. `anneal` are an anneal's betas, where they are given."""

    anneal: tuple[float, ...] | int | None = None
    conditional_ess: float | None = None
    by_rows: bool = False
    draw_target: Any = None

    def own(self) -> Options:
        names = ("anneal", "conditional_ess", "by_rows")
        return super().own() | {name: getattr(self, name) for name in names}

    @cached_property
    def subsampling(self) -> Subsampling | None:
        """How rows are left out, if an anneal adds rows instead of heat."""
        if not self.by_rows:
            return None
        assert isinstance(self.problem, Problem)
        return Subsampling(
            self.problem, self.densities, self.strata, self.key, False, self.hottest, True
        )

    # -- what draws ------------------------------------------------------------------------------

    def sampler_of(self, stage: Stage, carry: PyTree) -> Any:
        if stage.kind != "draw":
            return super().sampler_of(stage, carry)
        return self._drawing(stage, carry[1])

    def _drawing(self, stage: Stage, ready: Ready) -> Any:
        ladder = self.ladder(stage)
        if self.method == "st":
            return SimulatedTempering(ladder, self.move, ready.values, -ready.log_z)
        if self.method == "gibbs-ct":
            assert isinstance(ladder, GeometricLadder)
            return GibbsTempering(ladder, self.move, ready.values, ready.log_z)
        knots = None
        if isinstance(ladder, GeometricLadder):
            ladder = eqx.tree_at(lambda one: one.betas, ladder, ready.betas)
            knots = ready.knots
        return AnnealedImportance(ladder, self.move, ready.values, knots, self.draw_target)

    # -- stages ----------------------------------------------------------------------------------

    def after(self, stage: Stage, carry: PyTree) -> tuple[Stage, PyTree]:
        state, learnt = carry
        log_z = learnt.log_z() if isinstance(learnt, Weighing) else None
        following, carried = super().after(stage, (state, getattr(learnt, "inner", learnt)))
        if following.kind != "draw":
            return following, carried
        # The rungs of the last round are those of the draws, so that its weights are theirs.
        params, points = carried
        return self._set_out(following, params, log_z, points)

    def _draw(self, stage: Stage, params: Params, state: PyTree) -> tuple[Stage, PyTree]:
        following = replace(stage, kind="draw", index=0, length=self.num_draws)
        return following, (params, state.points.position[:, -1])

    def _set_out(
        self, stage: Stage, params: Params, log_z: np.ndarray | None, positions: Array
    ) -> tuple[Stage, PyTree]:
        """The chains of the draws, with all that they are drawn with."""
        log_z = np.zeros(len(stage.betas)) if log_z is None else log_z
        if self.log_zeta is not None:
            log_z = self.log_zeta * np.asarray(stage.betas)
        knots = jnp.asarray(stage.betas)
        ready = Ready(params, knots, jnp.asarray(log_z, params.step_size.dtype), knots)
        if self.method in ANNEALED and self.subsampling is None:
            ready = ready._replace(betas=jnp.asarray(self._anneal_betas(stage, ready)))
            stage = replace(stage, num_betas=len(ready.betas))
        return stage, (start_chains(self._drawing(stage, ready), positions, False), ready)

    def _anneal_betas(self, stage: Stage, ready: Ready) -> np.ndarray:
        """Where an anneal stops: as given, by conditional ESS, or with equal shares of barrier."""
        if isinstance(self.anneal, tuple):
            return np.asarray(self.anneal)
        if self.conditional_ess is not None:
            ladder = self.ladder(stage)
            assert isinstance(ladder, GeometricLadder)
            key = jax.random.fold_in(self.key, CHOOSING)
            return conditional_betas(
                key, ladder, self.move, ready.values, self.conditional_ess, CHOOSERS
            )
        rejection = np.asarray(stage.rejection or (1.0,) * (len(stage.betas) - 1))
        wanted = self.anneal or anneal_rungs_for(float(rejection.sum()))
        return np.asarray(equalise(np.asarray(stage.betas), rejection, wanted))

    # -- what a stage carries --------------------------------------------------------------------

    def _fresh(self, stage: Stage, params: Params | None) -> tuple[Stage, PyTree]:
        following, (state, learnt) = super()._fresh(stage, params)
        if following.kind != "draw":
            return following, (state, learnt)
        # No warm-up: what draws are made with is what a warm-up would have begun with.
        positions = state.points.position[:, -1]
        return self._set_out(following, learnt.params(), None, positions)

    def carried(self, stage: Stage) -> PyTree:
        state, learnt = super().carried(stage)
        if stage.kind != "draw":
            return state, learnt
        knots = jnp.asarray(stage.betas)
        ready = Ready(learnt.params(), knots, jnp.zeros_like(knots), knots)
        if self.method in ANNEALED and self.subsampling is None:
            ready = ready._replace(betas=jnp.zeros((stage.num_betas,)))
        positions = state.points.position[:, -1]
        return start_chains(self._drawing(stage, ready), positions, False), ready
