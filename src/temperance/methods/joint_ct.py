"""`joint-ct`: continuous tempering, position and temperature moved together (paper 4)."""

from dataclasses import dataclass

from temperance.engine.method import Call, Method
from temperance.ladders.joint import JointLadder
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws
from temperance.methods.report.weights import TravelEvidence, Travels, Weights
from temperance.samplers.continuous import JointTempering
from temperance.warmup.base_options import BaseOptions, ZetaOptions, with_base_asked
from temperance.warmup.joint import JointDraw, JointWarmUp, PathWarmUp
from temperance.warmup.power_rungs import PowerPilot
from temperance.warmup.rung_options import sweeps
from temperance.warmup.rung_weights import WeighedRungs


@dataclass(frozen=True, kw_only=True)
class Options(ZetaOptions, BaseOptions):
    """The base, and how likely each end is."""

    sweeps_per_draw: int = sweeps(4, "steps")


def prepare(call: Call) -> WeighedRungs:
    """Rungs, whose log Z becomes the path of the joint chain."""
    zeta = call.options.log_zeta
    call, bound = with_base_asked(call, fitted=True, joint=True)
    # Warm-up learns log zeta; without one, the fit's bound is all there is.
    zeta = bound if zeta is None and not call.num_warmup else zeta
    return WeighedRungs(call, log_zeta=zeta)


def log_zeta(sampler: JointTempering) -> float:
    """The guess of log Z that the draws were made with."""
    return float(sampler.ladder.log_zeta)


METHOD = Method(
    name="joint-ct",
    summary="continuous tempering: position and temperature moved together, draws weighted",
    options=Options,
    prepare=prepare,
    stages=(PowerPilot(), PathWarmUp(), JointWarmUp(), JointDraw()),
    report=Report(
        (
            Draws(),
            Weights(),
            Travels(log_zeta, has_rungs=False),
            TravelEvidence(log_zeta),
        ),
        weighted=True,
    ),
    sampler=JointTempering,
    ladder=JointLadder,
    references=("graham2017",),
)
