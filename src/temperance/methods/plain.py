"""`plain`: the inner move alone, the baseline of every tempered method."""

from dataclasses import dataclass, replace

from temperance.engine.method import Call, Method
from temperance.ladders.ladder import AbstractLadder
from temperance.methods.report.batches import Batches
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws
from temperance.problems.problem import BaseDraw
from temperance.programs.compiled import traceable
from temperance.samplers.plain import Plain
from temperance.warmup.one_rung import OneRung
from temperance.warmup.rounds import Draw, WarmUp


@dataclass(frozen=True, kw_only=True)
class Options:
    """No options."""


def prepare(call: Call) -> OneRung:
    """One rung, from where the move wants to start, or from what is known of the modes."""
    start = call.move.draw_start()
    if start is None and call.reference is not None:
        start = BaseDraw(traceable(call.reference.density))
    if start is not None:
        call = replace(call, densities=replace(call.densities, draw=start))
    return OneRung(call)


METHOD = Method(
    name="plain",
    summary="the inner move alone",
    options=Options,
    prepare=prepare,
    stages=(WarmUp(), Draw()),
    report=Report((Draws(), Batches())),
    sampler=Plain,
    ladder=AbstractLadder,
)
