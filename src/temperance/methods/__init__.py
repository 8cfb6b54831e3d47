"""The methods that `sample` knows by name: one file each, and one line here.

A method of one's own is made of the same parts, which are offered here: options and their checks,
what stages share, stages, and pieces of a report. `register` makes `sample` know it.
"""

from collections.abc import Mapping
from typing import Any

from temperance.engine.method import Call, Method, Shared
from temperance.engine.options import count, flag, number, one_of, option
from temperance.engine.run import Place, Stage
from temperance.errors import ArgumentError, unknown_name
from temperance.methods import (
    ais,
    auto,
    bdmc,
    ee,
    gibbs_ct,
    joint_ct,
    mint,
    mintee,
    plain,
    pt,
    smc,
    spt,
    st,
    stt,
    tt,
)
from temperance.methods.report.evidence import RungEvidence
from temperance.methods.report.piece import Piece, Report
from temperance.methods.report.rungs import Draws, Rungs, Sizes, Swaps
from temperance.methods.report.transitions import LeftBehind, Transitions
from temperance.methods.report.work import all_rows, parallel_prefixes, transitions_on_prefixes
from temperance.samplers.parallel.swaps import swap_pairs
from temperance.warmup.one_rung import OneRung
from temperance.warmup.power_rungs import PowerPilot, PowerRungs
from temperance.warmup.rounds import Betas, Draw, RungsSideBySide, WarmUp
from temperance.warmup.rung_options import (
    PowerOptions,
    SizeOptions,
    SwapOptions,
    check_agreement,
    need_base,
    subsample_rungs,
    sweeps,
)
from temperance.warmup.subsample_rungs import SizePilot, SubsampleRungs
from temperance.warmup.transitions import ChangeOver

__all__ = [
    "METHODS", "Betas", "Call", "ChangeOver", "Draw", "Draws", "LeftBehind", "Method", "OneRung",
    "Piece", "Place", "PowerOptions", "PowerPilot", "PowerRungs", "Report", "RungEvidence", "Rungs",
    "RungsSideBySide", "Shared", "SizeOptions", "SizePilot", "Sizes", "Stage", "SubsampleRungs",
    "SwapOptions", "Swaps", "Transitions", "WarmUp", "all_rows", "check_agreement", "count",
    "flag", "known_method", "method_like", "need_base", "number", "one_of", "option",
    "parallel_prefixes", "register", "report_of", "subsample_rungs", "swap_pairs", "sweeps",
    "transitions_on_prefixes",
]  # fmt: skip

# In the order in which they are shown.
BUILT_IN = (auto, plain, pt, spt, tt, stt, joint_ct, gibbs_ct, st, ais, bdmc, smc, mint, mintee, ee)


class Methods(dict[str, Method]):
    """Methods by name; an unknown name is an error that tells the nearest known one."""

    def __missing__(self, name: Any) -> Method:
        raise unknown_name("method", name, self)


METHODS = Methods()


def register(method: Method) -> Method:
    """Let `sample` know a method by its name, which nobody else may have."""
    if not isinstance(method, Method):
        raise ArgumentError(f"method: wanted a Method, got {method!r}")
    if method.name in METHODS:
        raise ArgumentError(
            f"method {method.name!r}: this name is taken; give another, or see METHODS for what "
            "there is"
        )
    METHODS[method.name] = method
    return method


for module in BUILT_IN:
    register(module.METHOD)


def method_like(sampler: Any) -> Method:
    """The method whose runs those of a sampler built by hand are like, for its report.

    It is the one with the most special of the types of its ladder and, among those, of the sampler;
    `plain`, whose report says what every run can say, where there is none.
    """
    ladders, samplers = type(sampler.ladder).__mro__, type(sampler).__mro__
    fitting = [
        one for one in METHODS.values()
        if one.choose is None and one.ladder in ladders and one.sampler in samplers
    ]  # fmt: skip
    return min(
        fitting,
        key=lambda one: (ladders.index(one.ladder), samplers.index(one.sampler)),
        default=plain.METHOD,
    )


def report_of(attrs: Mapping[str, Any]) -> Report:
    """The report of a saved run, by what its file says of it; else that of `plain`."""
    known = known_method(attrs)
    return (plain.METHOD if known is None else known).report


def known_method(attrs: Mapping[str, Any]) -> Method | None:
    """The method whose report a saved run has, if it is registered here."""
    name = attrs.get("report", attrs.get("method"))
    if name in METHODS:
        return METHODS[name]
    # Files of earlier versions name the class of a sampler that was built by hand.
    like = [one for one in METHODS.values() if one.sampler.__name__ == name]
    return like[0] if like else None
