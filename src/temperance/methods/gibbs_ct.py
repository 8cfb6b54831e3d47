"""`gibbs-ct`: continuous tempering, its temperature drawn exactly between moves (paper 4)."""

from dataclasses import dataclass
from typing import Any

from temperance.engine.method import Call, Method
from temperance.ladders.ladder import AbstractLadder
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws
from temperance.methods.report.weights import TravelEvidence, Travels, Weights
from temperance.samplers.continuous import GibbsTempering
from temperance.warmup.base_options import BaseOptions, ZetaOptions, with_base_asked
from temperance.warmup.power_rungs import PowerPilot
from temperance.warmup.rounds import WarmUp
from temperance.warmup.rung_options import sweeps
from temperance.warmup.rung_weights import Stops, WeighedRungs
from temperance.warmup.serial_tempering import Ready, Travel


@dataclass(frozen=True, kw_only=True)
class Options(ZetaOptions, BaseOptions):
    """The base, and how likely each end is."""

    sweeps_per_draw: int = sweeps(4, "steps")


def prepare(call: Call) -> WeighedRungs:
    """Rungs, weighed in warm-up, that are knots of log Z afterwards."""
    zeta = call.options.log_zeta
    call, bound = with_base_asked(call, fitted=True)
    # Warm-up learns log zeta; without one, the fit's bound is all there is.
    zeta = bound if zeta is None and not call.num_warmup else zeta
    return WeighedRungs(call, log_zeta=zeta)


def travelling(shared: Any, rungs: Stops, ready: Ready) -> GibbsTempering:
    """One chain at any beta between 0 and 1."""
    call = shared.call
    return GibbsTempering(
        shared.ladder(rungs), call.move, ready.values, ready.log_z, jumps=call.from_reference
    )


def log_zeta(sampler: GibbsTempering) -> float:
    """The log ratio of constants at which both ends would be visited alike."""
    return float(sampler.log_z[-1] - sampler.log_z[0])


METHOD = Method(
    name="gibbs-ct",
    summary="continuous tempering: the temperature drawn exactly between moves, draws weighted",
    options=Options,
    prepare=prepare,
    stages=(PowerPilot(), WarmUp(), Travel(travelling)),
    report=Report((Draws(), Weights(), Travels(log_zeta), TravelEvidence(log_zeta)), weighted=True),
    sampler=GibbsTempering,
    ladder=AbstractLadder,
    references=("graham2017", "gelman1998"),
)
