"""Rungs that are powers, and the pilot that says how many of them a problem wants.

    pilot    short rounds at a guessed number of rungs, which measure the communication barrier. If
             nearly all swaps are rejected, the barrier is out of sight, and another pilot looks
             with twice as many rungs
    warm     between rounds, powers are spaced anew for equal rejection rates (ladders/spacing.py)

The pilot's key is fixed: the number of rungs belongs to the problem and not to the seed.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import PyTree

from temperance.engine.run import Place, Stage
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.spacing import equalise, initial_betas, rungs_for, transition_rungs_for
from temperance.moves.move import Params
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.warmup.adaptation import transplant
from temperance.warmup.rounds import (
    Betas,
    Left,
    RungsSideBySide,
    carry_shapes,
    continue_round,
    floats,
    learn_round,
    start_anew,
)

PILOT_RUNGS = 10
MOST_RUNGS = 128
# Above this mean rejection the barrier is out of the pilot's sight and more rungs look again.
SATURATED = 0.7


@dataclass(frozen=True)
class PowerRungs(RungsSideBySide):
    """Rungs of parallel tempering, hot by powers of the way from the base to the target.

    Given `betas` are kept as they are; otherwise they begin at `min_beta`.
    """

    betas: tuple[float, ...] | None = None
    num_rungs: int | None = None
    min_beta: float = 0.0
    scheme: str = "deo"
    swaps_per_sweep: int = 2

    @property
    def pilot(self) -> str:
        """Of rungs whose number is not given."""
        return "powers" if self.betas is None and self.num_rungs is None else ""

    def initial(self) -> Betas:
        if self.betas is not None:
            return self.rungs(self.betas)
        return self.rungs(floats(initial_betas(self.num_rungs or PILOT_RUNGS, self.min_beta)))

    def ladder(self, rungs: Betas, *, pilot: bool = False) -> GeometricLadder:
        d = self.call.densities
        assert d.hot is not None
        return GeometricLadder(d.hot, d.cold, rungs.betas, bridge=d.bridge, draw_hot=d.draw)

    def sampler(self, rungs: Betas, params: Params, *, pilot: bool = False) -> ParallelTempering:
        ladder = self.ladder(rungs)
        return ParallelTempering(ladder, self.call.move, params, self.scheme, self.swaps_per_sweep)

    def respaced(self, rungs: Betas, params: Params) -> tuple[Betas, Params]:
        if self.betas is not None:
            return rungs, params
        return self.spaced(rungs, params, len(rungs.betas))

    def for_transitions(self, rungs: Betas, params: Params) -> tuple[Betas, Params]:
        if self.betas is not None:
            return rungs, params
        num_rungs = self.num_rungs or transition_rungs_for(rungs.barrier)
        if num_rungs == len(rungs.betas):
            return rungs, params
        return self.spaced(rungs, params, num_rungs)

    def spaced(self, rungs: Betas, params: Params, num_rungs: int) -> tuple[Betas, Params]:
        """So many rungs with equal shares of the barrier, and parameters of their neighbours."""
        old = np.asarray(rungs.betas)
        new = equalise(old, np.asarray(rungs.rejection), num_rungs)
        return replace(rungs, betas=floats(new)), transplant(old, new, params)


class PowerPilot(Stage):
    """Short rounds that measure the barrier, from which the number of rungs follows."""

    kinds = ("pilot",)

    def applies(self, shared: RungsSideBySide) -> bool:
        return shared.call.num_warmup > 0 and shared.pilot == "powers"

    def enter(self, shared: PowerRungs, left: Left | None) -> tuple[Place, PyTree]:
        place = Place("pilot", 0, max(20, shared.call.num_warmup // 20), shared.initial())
        return place, start_anew(shared, place, None)

    def sampler(self, shared: PowerRungs, place: Place, carry: PyTree) -> Any:
        return shared.sampler(place.rungs, carry[1].params(), pilot=True)

    def after(self, shared: PowerRungs, place: Place, carry: PyTree) -> tuple[Place | None, Any]:
        state, learning = carry
        rungs, params = learn_round(shared, place, learning)
        if place.round % 2 == 0:
            following = Place("pilot", place.round + 1, 2 * place.length, rungs)
            return following, continue_round(shared, following, params, state)
        barrier, num_rungs = float(np.sum(rungs.rejection)), len(rungs.betas)
        again = not ends_pilot(rungs)
        wanted = rungs_for(barrier)
        wanted = min(max(wanted, 2 * num_rungs) if again else wanted, MOST_RUNGS)
        # The betas of a finished pilot are already evenly spaced in the barrier.
        even = replace(rungs, rejection=(barrier / (num_rungs - 1),) * (num_rungs - 1))
        new, params = shared.spaced(even, params, wanted)
        if again:
            following = Place("pilot", place.round + 1, place.length // 2, shared.rungs(new.betas))
            return following, start_anew(shared, following, params)
        seen = replace(place, rungs=rungs), carry
        return None, Left(shared.rungs(new.betas, barrier=barrier), params, seen=seen)

    def template(self, shared: PowerRungs, place: Place) -> PyTree:
        return carry_shapes(shared, place)


def ends_pilot(rungs: Betas) -> bool:
    """Whether a pilot needs no further rounds: it has the barrier in sight."""
    num_pairs = len(rungs.betas) - 1
    saturated = float(np.sum(rungs.rejection)) > SATURATED * num_pairs
    return not (saturated and num_pairs + 1 < MOST_RUNGS)
