"""`tt`: tempered transitions, hot by powers."""

from dataclasses import dataclass

from temperance.engine.method import Call, Method
from temperance.ladders.ladder import AbstractLadder
from temperance.ladders.spacing import transition_rungs_for
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws, Rungs
from temperance.methods.report.transitions import LeftBehind, Transitions
from temperance.samplers.transitions import TemperedTransitions
from temperance.warmup.base_options import BaseOptions, rungs_wanted, with_base_asked
from temperance.warmup.power_rungs import PowerPilot, PowerRungs
from temperance.warmup.rounds import WarmUp
from temperance.warmup.rung_options import PowerOptions, check_agreement
from temperance.warmup.transitions import ChangeOver, need_reversal


@dataclass(frozen=True, kw_only=True)
class Options(PowerOptions, BaseOptions):
    """How far to heat, in how many steps."""


def prepare(call: Call) -> PowerRungs:
    """Rungs between the prior or base and the target."""
    need_reversal(call.move)
    given: Options = call.options
    check_agreement(given.num_rungs, given.betas, "betas")
    call, _ = with_base_asked(call)
    num_rungs = rungs_wanted(call, given.num_rungs, given.betas, transition_rungs_for)
    return PowerRungs(call, given.betas, num_rungs, given.min_beta)


METHOD = Method(
    name="tt",
    summary="tempered transitions, hot by powers",
    options=Options,
    prepare=prepare,
    stages=(PowerPilot(), WarmUp(), ChangeOver()),
    report=Report((Draws(), Rungs(), Transitions(), LeftBehind("transitions", "min_beta"))),
    sampler=TemperedTransitions,
    ladder=AbstractLadder,
    references=("neal1996", "syed2022"),
)
