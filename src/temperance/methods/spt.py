"""`spt`: parallel tempering, hot by nested subsamples (paper 1)."""

from dataclasses import dataclass
from typing import Any

from temperance.engine.method import Call, Method
from temperance.engine.options import option
from temperance.ladders.prefix import PrefixLadder
from temperance.methods.report.evidence import RungEvidence
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws, Rungs, Sizes, Swaps
from temperance.methods.report.work import parallel_prefixes
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.warmup.rounds import Draw, WarmUp
from temperance.warmup.rung_options import (
    LOG_EVIDENCE,
    SizeOptions,
    SwapOptions,
    default_refresh,
    refreshes,
    subsample_rungs,
    sweeps,
)
from temperance.warmup.subsample_rungs import SizePilot, SubsampleRungs


@dataclass(frozen=True, kw_only=True)
class Options(SwapOptions, SizeOptions):
    """How far to heat, and whether subsamples change or give log evidence."""

    refresh: Any = option(
        0,
        "pairs of rows offered for exchange between subsamples a sweep; True: an eighth of the "
        "rows, from 1 to 64",
        refreshes,
        kind="int or bool",
    )
    evidence: bool | None = option(
        None,
        "log evidence; True adds the prior to the ladder (default: where it starts there)",
        LOG_EVIDENCE,
    )
    sweeps_per_draw: int = sweeps(2)


def prepare(call: Call) -> SubsampleRungs:
    """Rungs with fewer rows than the target."""
    given: Options = call.options
    num_rows = call.densities.num_rows
    refresh = default_refresh(num_rows) if given.refresh is True else given.refresh
    return subsample_rungs(
        call, evidence=given.evidence, refresh=refresh, scheme=given.scheme,
        swaps_per_sweep=given.swap_rounds, complete=not refresh and given.evidence is not False,
    )  # fmt: skip


METHOD = Method(
    name="spt",
    summary="parallel tempering, hot by nested subsamples",
    options=Options,
    prepare=prepare,
    stages=(SizePilot(), WarmUp(), Draw()),
    report=Report(
        (
            Draws(),
            Rungs(),
            Sizes(),
            Swaps(),
            RungEvidence(("mbar", "stepping_stones", "bridges")),
        ),
        parallel_prefixes,
    ),
    sampler=ParallelTempering,
    ladder=PrefixLadder,
    references=("vandemeent2014", "geyer1991", "syed2022", "shirts2008", "xie2011"),
)
