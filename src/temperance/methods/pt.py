"""`pt`: parallel tempering, hot by powers."""

from dataclasses import dataclass

from temperance.engine.method import Call, Method
from temperance.ladders.ladder import AbstractLadder
from temperance.methods.report.evidence import RungEvidence
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws, Rungs, Swaps
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.warmup.base_options import BaseOptions, rungs_wanted, with_base_asked
from temperance.warmup.power_rungs import PowerPilot, PowerRungs
from temperance.warmup.rounds import Draw, WarmUp
from temperance.warmup.rung_options import (
    PowerOptions,
    SwapOptions,
    check_agreement,
    sweeps,
)


@dataclass(frozen=True, kw_only=True)
class Options(SwapOptions, PowerOptions, BaseOptions):
    """A sweep crosses a few pairs of rungs at most, so a kept draw is several of them."""

    sweeps_per_draw: int = sweeps(8)


def prepare(call: Call) -> PowerRungs:
    """Rungs between the prior or base and the target."""
    given: Options = call.options
    check_agreement(given.num_rungs, given.betas, "betas")
    call, _ = with_base_asked(call)
    num_rungs = rungs_wanted(call, given.num_rungs, given.betas)
    return PowerRungs(call, given.betas, num_rungs, given.min_beta, given.scheme, given.swap_rounds)


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
