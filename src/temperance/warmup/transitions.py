"""From rungs side by side to tempered transitions.

Transitions warm up as parallel tempering, whose swaps measure the barrier that spaces the rungs of
a transition, and then change over: chains draw from where the target's replicas are, with as many
rungs as the barrier wants (ladders/spacing.py).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from temperance.engine.loop import start_chains
from temperance.engine.run import Place, Stage
from temperance.errors import MoveError
from temperance.moves.move import AbstractMove, Params
from temperance.samplers.transitions import TemperedTransitions
from temperance.warmup.rounds import Left, draw_starts, first_params


def need_reversal(move: AbstractMove) -> None:
    """Raise where a transition could not run the move both ways."""
    if move.reversal() is None or not move.exact:
        raise MoveError(
            f"tempered transitions need an exact move that can be run backwards, and {move} is "
            "not: use metropolis, mala, hmc, autostep, nuts or slice, or repeat or alternate some "
            "of them"
        )


class Settled(NamedTuple):
    """Parameters that learn nothing more, and where warm-up left its replicas.

    `left` is by chain and rung, or NaN if there was no warm-up.
    """

    values: Params
    left: Float[Array, "chains rungs d"]

    def params(self, learning: Bool[Array, ""] | bool = False) -> Params:
        """Always the same."""
        return self.values

    def after(self, sampler: Any, state: PyTree, info: Any) -> "Settled":
        """Nothing is learnt."""
        return self


class ChangeOver(Stage):
    """Draws by tempered transitions."""

    kinds = ("draw",)
    draws = True

    def enter(self, shared: Any, left: Left | None) -> tuple[Place, PyTree]:
        call = shared.call
        if left is None:
            place = Place("draw", 0, call.num_draws, shared.initial())
            num_rungs = len(place.rungs.betas)
            starts = draw_starts(shared, place, shared.ladder(place.rungs), num_rungs)
            params = shared.first_params(place.rungs, starts)
            state = start_chains(self._transitions(shared, place, params), starts[:, -1], False)
            return place, (state, Settled(params, nowhere(shared, place)))
        assert left.params is not None
        old = np.asarray(left.rungs.betas)
        rungs, params = shared.for_transitions(left.rungs, left.params)
        place = Place("draw", 0, call.num_draws, rungs)
        replicas = left.state.points.position
        sampler = self._transitions(shared, place, params)
        state = start_chains(sampler, replicas[:, -1], False)
        nearest = np.abs(np.asarray(rungs.betas)[:, None] - old[None, :]).argmin(axis=1)
        return place, (state, Settled(params, replicas[:, nearest]))

    def sampler(self, shared: Any, place: Place, carry: PyTree) -> TemperedTransitions:
        return self._transitions(shared, place, carry[1].params())

    def _transitions(self, shared: Any, place: Place, params: Params) -> TemperedTransitions:
        return TemperedTransitions(shared.ladder(place.rungs), shared.call.move, params)

    def template(self, shared: Any, place: Place) -> PyTree:
        shared.ladder(place.rungs)  # outside of the trace: it may keep rows in their order

        def carried() -> PyTree:
            starts = jnp.zeros_like(nowhere(shared, place))
            params = first_params(shared.call.move, starts)
            state = start_chains(self._transitions(shared, place, params), starts[:, -1], False)
            return state, Settled(params, starts)

        return jax.eval_shape(carried)


def nowhere(shared: Any, place: Place) -> Array:
    """NaN for every chain and rung."""
    call = shared.call
    return jnp.full((call.num_chains, len(place.rungs.betas), call.dimension), jnp.nan)
