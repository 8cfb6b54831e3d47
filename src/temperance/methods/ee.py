"""`ee`: the equi-energy sampler, hot by powers and truncated energies."""

from dataclasses import dataclass

from temperance.engine.method import Call, Method
from temperance.ladders.energies import EnergyLadder
from temperance.methods.report.piece import Report
from temperance.methods.report.rings import Rings
from temperance.methods.report.rungs import Draws, Rungs
from temperance.methods.report.transitions import LeftBehind
from temperance.samplers.equi_energy.all_rungs import EquiEnergy
from temperance.warmup.energy_options import EnergyOptions, energy_rungs
from temperance.warmup.energy_rungs import (
    EnergyDraw,
    EnergyPilot,
    EnergyRungs,
    EnergyWarmUp,
    Fill,
)
from temperance.warmup.rung_options import sweeps


@dataclass(frozen=True, kw_only=True)
class Options(EnergyOptions):
    """Temperatures, levels and rings."""

    sweeps_per_draw: int = sweeps(8, "steps")


def prepare(call: Call) -> EnergyRungs:
    """Rungs of the target's energies; the prior or base is only where chains start."""
    return energy_rungs(call)


METHOD = Method(
    name="ee",
    summary="equi-energy sampler, hot by powers and truncated energies",
    options=Options,
    prepare=prepare,
    stages=(EnergyPilot(), EnergyWarmUp(), Fill(), EnergyDraw()),
    report=Report((Draws(), Rungs(), LeftBehind("jumps", "max_temperature"), Rings())),
    sampler=EquiEnergy,
    ladder=EnergyLadder,
    references=("kou2006",),
)
