"""`st`: simulated tempering, Rao-Blackwellised over its rungs."""

from dataclasses import dataclass
from typing import Any

from temperance.engine.method import Call, Method
from temperance.engine.options import count, option
from temperance.errors import ArgumentError
from temperance.ladders.ladder import AbstractLadder
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws
from temperance.methods.report.weights import TravelEvidence, Travels, Weights
from temperance.samplers.simulated import SimulatedTempering
from temperance.warmup.base_options import BaseOptions, with_base_asked
from temperance.warmup.power_rungs import PowerPilot
from temperance.warmup.rounds import WarmUp
from temperance.warmup.rung_options import CHOSEN, check_agreement, increasing_betas, sweeps
from temperance.warmup.rung_weights import Stops, WeighedRungs
from temperance.warmup.serial_tempering import Ready, Travel


@dataclass(frozen=True, kw_only=True)
class Options(BaseOptions):
    """The base and the rungs between it and the target."""

    num_rungs: int | None = option(None, CHOSEN, count(2))
    betas: tuple[float, ...] | None = option(
        None,
        "the rungs' powers, from 0 to 1, kept as given (default: tuned in warm-up)",
        increasing_betas,
    )
    sweeps_per_draw: int = sweeps(4, "steps")


def prepare(call: Call) -> WeighedRungs:
    """Rungs that are weighed while they warm up side by side."""
    given: Options = call.options
    if given.betas is not None and given.betas[0] != 0:
        raise ArgumentError(f"betas: they have to begin at 0, the base; got {given.betas[0]}")
    check_agreement(given.num_rungs, given.betas, "rungs given")
    call, _ = with_base_asked(call)
    return WeighedRungs(call, given.betas, given.num_rungs)


def walking(shared: Any, rungs: Stops, ready: Ready) -> SimulatedTempering:
    """One chain that walks the rungs, which would be visited alike at the right log Z."""
    call = shared.call
    return SimulatedTempering(
        shared.ladder(rungs), call.move, ready.values, -ready.log_z, jumps=call.from_reference
    )


def log_zeta(sampler: SimulatedTempering) -> float:
    """The log ratio of constants at which both ends would be visited alike."""
    return float(sampler.log_weights[0] - sampler.log_weights[-1])


METHOD = Method(
    name="st",
    summary="simulated tempering, Rao-Blackwellised: one chain walks the rungs, draws weighted",
    options=Options,
    prepare=prepare,
    stages=(PowerPilot(), WarmUp(), Travel(walking)),
    report=Report(
        (Draws(), Weights(), Travels(log_zeta, by_rung=True), TravelEvidence(log_zeta)),
        weighted=True,
    ),
    sampler=SimulatedTempering,
    ladder=AbstractLadder,
    references=("marinari1992", "carlson2016", "geyer1995"),
)
