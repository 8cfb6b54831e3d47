"""`pt`: parallel tempering, hot by powers."""

from dataclasses import dataclass

from temperance.engine.method import Call, Method
from temperance.ladders.ladder import AbstractLadder
from temperance.methods.report.evidence import RungEvidence
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws, Rungs, Swaps
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.warmup.power_rungs import PowerPilot, PowerRungs
from temperance.warmup.rounds import Draw, WarmUp
from temperance.warmup.rung_options import (
    PowerOptions,
    SwapOptions,
    check_agreement,
    need_base,
    sweeps,
)


@dataclass(frozen=True, kw_only=True)
class Options(SwapOptions, PowerOptions):
    """A sweep crosses a few pairs of rungs at most, so a kept draw is several of them."""

    sweeps_per_draw: int = sweeps(8)


def prepare(call: Call) -> PowerRungs:
    """Rungs between the prior or base and the target."""
    need_base(call)
    given: Options = call.options
    check_agreement(given.num_rungs, given.betas, "betas")
    return PowerRungs(
        call, given.betas, given.num_rungs, given.min_beta, given.scheme, given.swap_rounds
    )


METHOD = Method(
    name="pt",
    summary="parallel tempering, hot by powers",
    options=Options,
    prepare=prepare,
    stages=(PowerPilot(), WarmUp(), Draw()),
    report=Report((Draws(), Rungs(), Swaps(), RungEvidence())),
    sampler=ParallelTempering,
    ladder=AbstractLadder,
    references=("geyer1991", "syed2022", "shirts2008", "xie2011"),
)
