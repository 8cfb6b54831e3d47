"""`mint`: the posterior to the power 1/T, from a few rows a step (paper 2)."""

from dataclasses import dataclass, fields, replace
from typing import Any

from temperance.engine.method import Call, Method
from temperance.engine.options import option
from temperance.errors import ArgumentError
from temperance.ladders.row_sums import RowLadder
from temperance.methods.report.batches import Batches
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws
from temperance.moves.minibatch.batch_law import implied_beta
from temperance.moves.minibatch.mint import mint
from temperance.problems.problem import Problem
from temperance.samplers.plain import Plain
from temperance.warmup.one_rung import OneRung
from temperance.warmup.rounds import Draw, WarmUp
from temperance.warmup.rung_options import given, sweeps

MOST_BY_DEFAULT = 100


@dataclass(frozen=True, kw_only=True)
class Options:
    """Those of the move `mint`, which checks them."""

    batch_size: int | None = option(
        None,
        f"rows of a batch, 2 or more (default: {MOST_BY_DEFAULT}, or all if there are fewer)",
        given,
    )
    alpha: float = option(0.5, "T = n / batch_size^alpha", given)
    noise: str = option(
        "penalty",
        "what is done about a batch's noise: penalty, common (nothing) or pseudo-marginal",
        given,
    )
    temper_prior: bool = option(True, "temper the prior too, or the likelihood alone")
    replace: bool = option(False, "draw batches with replacement")
    most_rows: int | None = option(
        None, "rows that a batch may grow to where it is too noisy (penalty; default: all)", given
    )
    corrected: bool = option(
        False, "take the first order of the tilt out of the law (pseudo-marginal)"
    )
    exchange: int = option(
        0, "rows offered for exchange a step, in place of a fresh batch (pseudo-marginal)", given
    )
    sweeps_per_draw: int = sweeps(1, "steps")


def prepare(call: Call) -> OneRung:
    """One rung, which its move sees through batches; `call.move` is what proposes."""
    problem = call.problem
    if not isinstance(problem, Problem):
        raise ArgumentError(
            "method 'mint' looks at a few rows a step, and a Target has none: write it as a "
            "Problem with one term for each row"
        )
    told: dict[str, Any] = {one.name: getattr(call.options, one.name) for one in fields(Options)}
    del told["sweeps_per_draw"]
    if told["batch_size"] is None:
        told["batch_size"] = min(MOST_BY_DEFAULT, problem.num_rows)
    move = mint(call.move, **told)
    implied_beta(problem.num_rows, told["batch_size"], told["alpha"])
    return OneRung(replace(call, move=move))


METHOD = Method(
    name="mint",
    summary="mini-batch tempered Metropolis: the posterior to the power 1/T from few rows a step",
    options=Options,
    prepare=prepare,
    stages=(WarmUp(), Draw()),
    report=Report((Draws(), Batches())),
    sampler=Plain,
    ladder=RowLadder,
    references=("li2017", "ceperley1999"),
    move="metropolis",
    reads_rows=True,
)
