"""`mintee`: the equi-energy sampler whose hot rungs look at mini-batches (paper 2)."""

from dataclasses import dataclass, replace
from typing import Any

from temperance.engine.method import Call, Method
from temperance.engine.options import option
from temperance.errors import ArgumentError
from temperance.ladders.energies import EnergyLadder
from temperance.methods.report.piece import Report
from temperance.methods.report.rings import MinibatchRings
from temperance.methods.report.rungs import Draws, Rungs
from temperance.methods.report.transitions import LeftBehind
from temperance.moves.minibatch.batch_law import implied_beta
from temperance.problems.checks import check_count
from temperance.problems.problem import Problem
from temperance.samplers.equi_energy.minibatch_rung import MinibatchRung
from temperance.warmup.energy_options import EnergyOptions, energy_rungs
from temperance.warmup.minibatch_rungs import MinibatchDraw, MinibatchRungs, TuneAndFill
from temperance.warmup.rung_options import given, need_base, sweeps


@dataclass(frozen=True, kw_only=True)
class Options(EnergyOptions):
    """Temperatures, levels and rings, and the rows of each rung."""

    alpha: float = option(0.5, "rows of a rung: m = (n / T)^(1 / alpha)", given)
    batch_sizes: Any = option(
        None,
        "rows of each rung, increasing to all of them, with temperatures (default: by alpha)",
        given,
        kind="rows",
    )
    sweeps_per_draw: int = sweeps(1, "steps")


def prepare(call: Call) -> MinibatchRungs:
    """Rungs of the energies of batches."""
    need_base(call)
    rungs = energy_rungs(call, MinibatchRungs)
    problem, options = call.problem, call.options
    if not isinstance(problem, Problem):
        raise ArgumentError(
            "method 'mintee' heats by mini-batches, and a Target has no rows: write it as a "
            "Problem with one term for each row, or use method='ee'"
        )
    n, sizes = problem.num_rows, options.batch_sizes
    implied_beta(n, n, options.alpha)
    if sizes is None:
        return replace(rungs, alpha=float(options.alpha))
    if rungs.betas is None or len(sizes) != len(rungs.betas):
        raise ArgumentError(
            "batch_sizes: each belongs to a temperature; give as many temperatures, decreasing to 1"
        )
    counts = tuple(check_count("batch_sizes", size, 2) for size in sizes)
    if list(counts) != sorted(counts) or counts[-1] != n:
        raise ArgumentError(
            f"batch_sizes: wanted sizes that increase to all {n} rows, which is what makes the "
            f"target exact; got {counts}"
        )
    return replace(rungs, alpha=float(options.alpha), batch_sizes=counts)


METHOD = Method(
    name="mintee",
    summary="equi-energy sampler whose hot rungs look at mini-batches",
    options=Options,
    prepare=prepare,
    stages=(TuneAndFill(), MinibatchDraw()),
    report=Report((Draws(), Rungs(), LeftBehind("jumps", "max_temperature"), MinibatchRings())),
    sampler=MinibatchRung,
    ladder=EnergyLadder,
    references=("li2017", "kou2006"),
)
