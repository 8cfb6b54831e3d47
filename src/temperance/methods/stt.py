"""`stt`: tempered transitions, hot by subsamples drawn anew for each (paper 1)."""

from dataclasses import dataclass

from temperance.engine.method import Call, Method
from temperance.ladders.prefix import PrefixLadder
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws, Rungs, Sizes
from temperance.methods.report.transitions import LeftBehind, Transitions
from temperance.methods.report.work import transitions_on_prefixes
from temperance.samplers.transitions import TemperedTransitions
from temperance.warmup.rounds import WarmUp
from temperance.warmup.rung_options import SizeOptions, subsample_rungs
from temperance.warmup.subsample_rungs import SizePilot, SubsampleRungs
from temperance.warmup.transitions import ChangeOver, need_reversal


@dataclass(frozen=True, kw_only=True)
class Options(SizeOptions):
    """How far to heat, in how many steps."""


def prepare(call: Call) -> SubsampleRungs:
    """Rungs with fewer rows than the target, at sizes that are tried before they are kept."""
    need_reversal(call.move)
    return subsample_rungs(call, transitions=True)


METHOD = Method(
    name="stt",
    summary="tempered transitions, hot by fresh subsamples",
    options=Options,
    prepare=prepare,
    stages=(SizePilot(), WarmUp(), ChangeOver()),
    report=Report(
        (Draws(), Rungs(), Sizes(), Transitions(), LeftBehind("transitions", "min_rows")),
        transitions_on_prefixes,
    ),
    sampler=TemperedTransitions,
    ladder=PrefixLadder,
    references=("vandemeent2014", "neal1996", "syed2022"),
)
