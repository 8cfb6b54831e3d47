"""`ais`: annealed importance sampling, independent weighted draws."""

from dataclasses import dataclass

from temperance.engine.method import Call, Method
from temperance.ladders.ladder import AbstractLadder
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws
from temperance.methods.report.weights import AnnealEvidence, Anneals, Weights
from temperance.methods.report.work import anneals
from temperance.samplers.annealing.importance import AnnealedImportance
from temperance.warmup.anneals import (
    AnnealedPowers,
    AnnealedSizes,
    AnnealOptions,
    anneal_rungs,
    annealing,
    stops_of,
)
from temperance.warmup.power_rungs import PowerPilot
from temperance.warmup.rounds import WarmUp
from temperance.warmup.serial_tempering import Travel
from temperance.warmup.subsample_rungs import SizePilot


@dataclass(frozen=True, kw_only=True)
class Options(AnnealOptions):
    """Where anneals stop."""


def prepare(call: Call) -> AnnealedPowers | AnnealedSizes:
    """Rungs that tune moves for anneals."""
    return anneal_rungs(call)


METHOD = Method(
    name="ais",
    summary="annealed importance sampling: independent weighted draws, unbiased for Z",
    options=Options,
    prepare=prepare,
    stages=(PowerPilot(), SizePilot(), WarmUp(), Travel(annealing, stops_of)),
    report=Report((Draws(), Weights(), Anneals(), AnnealEvidence()), anneals, weighted=True),
    sampler=AnnealedImportance,
    ladder=AbstractLadder,
    references=("neal2001",),
)
