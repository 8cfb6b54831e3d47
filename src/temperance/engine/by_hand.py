"""Runs of a sampler built by hand: as it is, with `num_warmup` steps thrown away."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from temperance._types import Key, Options
from temperance.engine.loop import start_chains
from temperance.engine.method import Functions, Shared
from temperance.engine.run import Place, Stage
from temperance.ladders.starting_points import starting_points
from temperance.programs.random_streams import ByHand, probe_key, stream

STREAMS = {"warm": ByHand.WARM, "draw": ByHand.DRAW}


@dataclass(frozen=True)
class HandBuilt(Shared):
    """A sampler that tunes nothing, and how many of its steps make a draw."""

    hand: Any
    thin: int

    @property
    def sweeps_per_draw(self) -> int:
        return self.thin

    def key(self, place: Place) -> Key:
        return stream(self.call.key, STREAMS[place.stage])

    def identity(self) -> Options:
        call = self.call
        return {
            "method": self.hand,
            "num_chains": call.num_chains,
            "num_warmup": call.num_warmup,
            "sweeps_per_draw": self.thin,
        }

    def functions(self) -> Functions:
        """The functions that the draws depend on, and what to trace them with."""
        layout, ladder = self.call.densities.layout, self.hand.ladder
        vector = jax.ShapeDtypeStruct((layout.dimension,), jnp.result_type(float))
        position = jax.eval_shape(lambda v: ladder.embed(layout.unravel(v)), vector)
        found: Functions = {"draw": (self.call.densities.draw, (probe_key(),))}
        for i, density in enumerate(ladder.densities()):
            found[f"component {i} of the ladder"] = (density, (position,))
        if ladder.draw_hottest() is not None:
            found["draw_hottest"] = (ladder.draw_hottest(), (probe_key(),))
        return found

    def start(self) -> PyTree:
        """Every chain at a draw from the prior or base."""
        call, layout = self.call, self.call.densities.layout
        starts = starting_points(
            self.hand.ladder,
            call.problem,
            call.densities,
            stream(call.key, ByHand.STARTS),
            (call.num_chains, 1),
            gradient=call.move.uses_gradient,
            place=layout,
        )
        positions = jax.vmap(layout.unravel)(starts[:, 0])
        return start_chains(self.hand, positions, False), None


class HandStage(Stage):
    """Steps of the sampler as it is."""

    def sampler(self, shared: HandBuilt, place: Place, carry: PyTree) -> Any:
        return shared.hand

    def template(self, shared: HandBuilt, place: Place) -> PyTree:
        return shared.start()


class BurnIn(HandStage):
    """Steps that are thrown away."""

    kinds = ("warm",)

    def applies(self, shared: HandBuilt) -> bool:
        return shared.call.num_warmup > 0

    def enter(self, shared: HandBuilt, left: Any) -> tuple[Place, PyTree]:
        return Place("warm", 0, shared.call.num_warmup), shared.start()

    def after(self, shared: HandBuilt, place: Place, carry: PyTree) -> tuple[None, PyTree]:
        return None, carry


class HandDraw(HandStage):
    """Draws."""

    kinds = ("draw",)
    draws = True

    def enter(self, shared: HandBuilt, left: Any) -> tuple[Place, PyTree]:
        place = Place("draw", 0, shared.call.num_draws)
        return place, shared.start() if left is None else left


STAGES = (BurnIn(), HandDraw())
