"""From rungs side by side to chains that travel the temperatures alone.

Warm-up is that of parallel tempering, whose points weigh the rungs (rung_weights.py). Then

    simulated tempering      the chains walk the rungs, with weights w_k = -log Z_k
    Gibbs tempering          they go to any beta; rungs are knots of log Z and of the moves
    annealing                each draw is an anneal through many more betas, spaced alike or by
                             conditional ESS

and nothing adapts any more. Chains start from where the target's replicas are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from temperance.engine.loop import start_chains
from temperance.engine.run import Place, Stage
from temperance.moves.move import Params
from temperance.warmup.rounds import Left, carry_shapes, start_anew, zero_chains


class Ready(NamedTuple):
    """What draws are made with: tuned parameters at knots, log Z there, and an anneal's betas.

    `wanted` is how many betas the barrier asks for, where a limit of evaluations left fewer.
    """

    values: Params
    knots: Float[Array, " rungs"]
    log_z: Float[Array, " rungs"]
    betas: Float[Array, " betas"]
    wanted: Int[Array, ""]

    def params(self, learning: Bool[Array, ""] | bool = False) -> Params:
        """Always the same."""
        return self.values

    def after(self, sampler: Any, state: PyTree, info: Any) -> "Ready":
        """Nothing is learnt."""
        return self


Make = Callable[[Any, Any, Ready], Any]


@dataclass(frozen=True)
class Travel(Stage):
    """Draws by chains that travel alone: `make(shared, rungs, ready)` is their sampler.

    `stops`, if given, says from `(shared, rungs, ready, learnt)` which betas an anneal has, and how
    many it should have had if a limit left it fewer, or 0. `learnt` is what warm-up left, or None.
    """

    make: Make
    stops: Callable[[Any, Any, Ready, Any], tuple[Any, int]] | None = None
    kinds = ("draw",)
    draws = True

    def enter(self, shared: Any, left: Left | None) -> tuple[Place, PyTree]:
        if left is None:
            # No warm-up: what draws are made with is what a warm-up would have begun with.
            place = Place("draw", 0, shared.call.num_draws, shared.initial())
            state, learning = start_anew(shared, place, None)
            return self._set_out(shared, place, learning.params(), None, state)
        assert left.params is not None
        assert left.seen is not None
        place = Place("draw", 0, shared.call.num_draws, left.rungs)
        # The rungs of the last round are those of the draws, so that its weights are theirs.
        return self._set_out(shared, place, left.params, left.seen[1][1], left.state)

    def _set_out(
        self, shared: Any, place: Place, params: Params, learning: Any, state: PyTree
    ) -> tuple[Place, PyTree]:
        """The chains of the draws, with all that they are drawn with."""
        rungs, positions = place.rungs, state.points.position[:, -1]
        knots = jnp.asarray(rungs.betas)
        log_z = jnp.asarray(shared.log_z(learning, rungs.betas), params.step_size.dtype)
        ready = Ready(params, knots, log_z, knots, jnp.asarray(0))
        betas, wanted = (None, 0)
        if self.stops is not None:
            betas, wanted = self.stops(shared, rungs, ready, learning)
        if betas is not None:
            ready = ready._replace(betas=jnp.asarray(betas), wanted=jnp.asarray(wanted))
            place = replace(place, rungs=replace(rungs, num_betas=len(betas)))
        return place, (start_chains(self.make(shared, rungs, ready), positions, False), ready)

    def sampler(self, shared: Any, place: Place, carry: PyTree) -> Any:
        return self.make(shared, place.rungs, carry[1])

    def template(self, shared: Any, place: Place) -> PyTree:
        carry_shapes(shared, place)

        def carried() -> PyTree:
            state, learning = zero_chains(shared, place)
            knots = jnp.asarray(place.rungs.betas)
            none = jnp.asarray(0)
            ready = Ready(learning.params(), knots, jnp.zeros_like(knots), knots, none)
            num_betas = getattr(place.rungs, "num_betas", 0)
            if num_betas:
                ready = ready._replace(betas=jnp.zeros((num_betas,)))
            positions = state.points.position[:, -1]
            return start_chains(self.make(shared, place.rungs, ready), positions, False), ready

        return jax.eval_shape(carried)
