"""Rounds of warm-up of rungs side by side, and the draws that follow.

    warm     rounds of doubling length; between them factors, step sizes and, where they are free,
             the rungs' powers are renewed. The last round settles: step sizes alone are tuned
    draw     nothing adapts

The object that the stages share says what the rungs are: one rung (one_rung.py), powers
(power_rungs.py) or nested subsamples (subsample_rungs.py).
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from temperance.engine.loop import start_chains
from temperance.engine.method import Shared
from temperance.engine.run import Place, Stage
from temperance.ladders.ladder import AbstractLadder
from temperance.ladders.starting_points import starting_points
from temperance.moves.move import AbstractMove, Params
from temperance.programs.random_streams import Stage as Streams, stream
from temperance.warmup.adaptation import Adaptation, begin, learn_factor, rounds


@dataclass(frozen=True)
class Betas:
    """Rungs by their powers, or by their shares of the rows; `rejection` is the newest, by pair.

    `barrier` is the pilot's, and stays.
    """

    betas: tuple[float, ...]
    rejection: tuple[float, ...] = ()
    barrier: float = float("nan")


class Left(NamedTuple):
    """What a stage leaves to the next: rungs, parameters, and chains to go on with, if any.

    `seen` is where the stage itself came to: its place and what it carried.
    """

    rungs: Any
    params: Params | None = None
    state: PyTree = None
    seen: tuple[Place, PyTree] | None = None


@dataclass(frozen=True)
class RungsSideBySide(Shared):
    """What stages share whose rungs run side by side. `pilot` names the pilot that they want."""

    rungs = Betas

    @property
    def pilot(self) -> str:
        return ""

    def initial(self) -> Betas:
        """The rungs before anything is known."""
        raise NotImplementedError

    def ladder(self, rungs: Betas, *, pilot: bool = False) -> AbstractLadder:
        """The ladder of these rungs."""
        raise NotImplementedError

    def sampler(self, rungs: Betas, params: Params, *, pilot: bool = False) -> Any:
        """What runs on the ladder while it warms up."""
        raise NotImplementedError

    def first_params(self, rungs: Betas, starts: Array) -> Params:
        """Parameters before anything is known."""
        return first_params(self.call.move, starts)

    def respaced(self, rungs: Betas, params: Params) -> tuple[Betas, Params]:
        """The rungs of the next round, by the rejection rates of the last."""
        return rungs, params

    def for_transitions(self, rungs: Betas, params: Params) -> tuple[Betas, Params]:
        """The rungs of a tempered transition, after a warm-up side by side."""
        return rungs, params

    def learns(self, sampler: Any, state: PyTree) -> Any:
        """What learns from the steps of a round."""
        return begin(sampler, state)

    def tuning(self, learnt: Any) -> Adaptation:
        """What the round has learnt for its moves and swaps."""
        return learnt

    def log_z(self, learnt: Any, betas: tuple[float, ...]) -> np.ndarray:
        """Log Z of every rung, for chains that have to weigh them: 0 where nobody did."""
        return np.zeros(len(betas))


class WarmUp(Stage):
    """Rounds of doubling length, between which the rungs and their moves are tuned."""

    kinds = ("warm",)

    def applies(self, shared: Any) -> bool:
        return self.num_steps(shared) > 0

    def num_steps(self, shared: Any) -> int:
        """Of all rounds together."""
        return shared.call.num_warmup

    def enter(self, shared: Any, left: Left | None) -> tuple[Place, PyTree]:
        left = Left(shared.initial()) if left is None else left
        place = Place("warm", 0, rounds(self.num_steps(shared))[0], left.rungs)
        return place, start_anew(shared, place, left.params)

    def sampler(self, shared: Any, place: Place, carry: PyTree) -> Any:
        return shared.sampler(place.rungs, carry[1].params())

    def after(self, shared: Any, place: Place, carry: PyTree) -> tuple[Place | None, Any]:
        state, learning = carry
        lengths = rounds(self.num_steps(shared))
        if place.round + 1 >= len(lengths):
            rungs = with_rejection(place.rungs, shared.tuning(learning))
            return None, Left(rungs, learning.params(), state, (place, carry))
        rungs, params = learn_round(shared, place, learning)
        following = Place("warm", place.round + 1, lengths[place.round + 1], rungs)
        return following, continue_round(shared, following, params, state)

    def template(self, shared: Any, place: Place) -> PyTree:
        return carry_shapes(shared, place)


class Draw(Stage):
    """Draws by the sampler that warmed up; nothing adapts."""

    kinds = ("draw",)
    draws = True

    def enter(self, shared: Any, left: Left | None) -> tuple[Place, PyTree]:
        if left is None:
            place = Place("draw", 0, shared.call.num_draws, shared.initial())
            return place, start_anew(shared, place, None)
        assert left.params is not None
        place = Place("draw", 0, shared.call.num_draws, left.rungs)
        return place, continue_round(shared, place, left.params, left.state)

    def sampler(self, shared: Any, place: Place, carry: PyTree) -> Any:
        return shared.sampler(place.rungs, carry[1].params())

    def template(self, shared: Any, place: Place) -> PyTree:
        return carry_shapes(shared, place)


# -- what a round learns -------------------------------------------------------------------------


def with_rejection(rungs: Betas, adaptation: Adaptation) -> Betas:
    """The rungs, with the rejection rates of a finished round."""
    tried = np.maximum(np.asarray(adaptation.swap_tried, float), 1.0)
    rejection = 1 - np.asarray(adaptation.swap_acceptance, float) / tried
    rejection = np.clip(rejection, 0.0, 1.0)
    return replace(rungs, rejection=floats(rejection)) if len(rungs.betas) > 1 else rungs


def learn_round(shared: Any, place: Place, learning: Any) -> tuple[Any, Params]:
    """Rungs, factors and step sizes from a finished round."""
    adaptation = shared.tuning(learning)
    rungs = with_rejection(place.rungs, adaptation)
    params = tune_params(shared, adaptation)
    if shared.ladder(place.rungs, pilot=place.stage == "pilot").draw_hottest() is not None:
        # An exactly drawn rung tunes no step size: it takes its neighbour's, should it be moved.
        sizes = params.step_size.at[0].set(params.step_size[1])
        params = params._replace(step_size=sizes)
    return shared.respaced(rungs, params)


def tune_params(shared: Any, adaptation: Adaptation) -> Params:
    """Factors and step sizes from a finished round."""
    factor = learn_factor(adaptation, shared.call.move.metric, shared.call.num_chains)
    sizes = np.exp(np.asarray(adaptation.log_step_mean))
    return Params(jnp.asarray(sizes), jnp.asarray(factor))


# -- what a round carries ------------------------------------------------------------------------


def start_anew(shared: Any, place: Place, params: Params | None) -> PyTree:
    """Chains at starting points drawn anew."""
    pilot = place.stage == "pilot"
    starts = draw_starts(
        shared, place, shared.ladder(place.rungs, pilot=pilot), len(place.rungs.betas)
    )
    first = shared.first_params(place.rungs, starts) if params is None else params
    return start_round(shared, place, first, starts)


def draw_starts(shared: Any, place: Place, ladder: Any, num_rungs: int) -> Array:
    """A draw of the prior or base for each chain and rung."""
    call = shared.call
    return starting_points(
        ladder,
        call.problem,
        call.densities,
        stream(shared.key(place), Streams.STARTS),
        (call.num_chains, num_rungs),
        gradient=call.move.uses_gradient,
    )


def start_round(shared: Any, place: Place, params: Params, positions: Array) -> PyTree:
    """A round's first carry: chains at `positions`, by chain and rung."""
    sampler = shared.sampler(place.rungs, params, pilot=place.stage == "pilot")
    return with_learning(shared, sampler, start_replicas(sampler, positions))


def continue_round(shared: Any, place: Place, params: Params, state: PyTree) -> PyTree:
    """A round's first carry: the chains where they are."""
    sampler = shared.sampler(place.rungs, params, pilot=place.stage == "pilot")
    return with_learning(shared, sampler, state)


def with_learning(shared: Any, sampler: Any, state: PyTree) -> PyTree:
    """The chains, and what is learnt of them from here on."""
    return state, shared.learns(sampler, state)


def start_replicas(sampler: Any, positions: Array) -> PyTree:
    """Every chain with a replica a rung or, of a sampler of one point, at the target's."""
    if hasattr(sampler, "init_replicas"):
        return start_chains(sampler, positions, True)
    return start_chains(sampler, positions[:, -1], False)


def zero_chains(shared: Any, place: Place) -> PyTree:
    """What a round carries, of chains at zero."""
    starts = jnp.zeros((shared.call.num_chains, len(place.rungs.betas), shared.call.dimension))
    return start_round(shared, place, first_params(shared.call.move, starts), starts)


def carry_shapes(shared: Any, place: Place) -> PyTree:
    """The shapes of what a round of rungs side by side carries."""
    # Built before the trace: a ladder of subsamples keeps its ordered rows, which must be arrays.
    shared.ladder(place.rungs, pilot=place.stage == "pilot")
    return jax.eval_shape(lambda: zero_chains(shared, place))


def first_params(move: AbstractMove, positions: Array) -> Params:
    """Before anything is known: the spread of the starting points, and a cautious step."""
    num_chains, num_rungs, dimension = positions.shape
    spread = jnp.std(positions.reshape(-1, dimension), axis=0)
    ones = jnp.ones((dimension,))
    few = num_chains * num_rungs < 4 or move.metric == "unit"
    factor = ones if few else jnp.where(spread > 0, spread, ones)
    factor = jnp.diag(factor) if move.metric == "dense" else factor
    sizes = move.initial_step_sizes(dimension)
    return Params(
        jnp.broadcast_to(sizes, (num_rungs, *sizes.shape)),
        jnp.broadcast_to(factor, (num_rungs, *factor.shape)),
    )


def floats(values: Any) -> tuple[float, ...]:
    """Plain numbers, as a place holds them."""
    return tuple(float(value) for value in np.asarray(values))
