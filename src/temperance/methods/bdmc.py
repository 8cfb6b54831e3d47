"""`bdmc`: bidirectional Monte Carlo, log Z from below and from above."""

from dataclasses import dataclass
from typing import Any

from temperance.engine.method import Call, Method
from temperance.engine.options import option
from temperance.ladders.ladder import AbstractLadder
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws
from temperance.methods.report.weights import AnnealBounds, Anneals, Weights
from temperance.methods.report.work import anneals
from temperance.samplers.annealing.importance import AnnealedImportance
from temperance.warmup.anneals import (
    AnnealedPowers,
    AnnealedSizes,
    AnnealOptions,
    anneal_rungs,
    annealing,
    exact_draw,
    stops_of,
)
from temperance.warmup.power_rungs import PowerPilot
from temperance.warmup.rounds import WarmUp
from temperance.warmup.rung_options import given
from temperance.warmup.serial_tempering import Travel
from temperance.warmup.subsample_rungs import SizePilot


@dataclass(frozen=True, kw_only=True)
class Options(AnnealOptions):
    """Where anneals stop, and the exact draw of the target from which reverse anneals start."""

    exact: Any = option(
        None,
        "an exact draw of the target, or a function of a key that makes them; needed",
        given,
        traced=True,
        kind="position or function",
    )


def prepare(call: Call) -> AnnealedPowers | AnnealedSizes:
    """Rungs that tune moves for anneals, there and back."""
    return anneal_rungs(call, exact_draw(call))


METHOD = Method(
    name="bdmc",
    summary="annealed importance sampling there and back: log Z from below and from above",
    options=Options,
    prepare=prepare,
    stages=(PowerPilot(), SizePilot(), WarmUp(), Travel(annealing, stops_of)),
    report=Report((Draws(), Weights(), Anneals(), AnnealBounds()), anneals, weighted=True),
    sampler=AnnealedImportance,
    ladder=AbstractLadder,
    references=("grosse2015", "neal2001"),
)
