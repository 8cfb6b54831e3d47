"""`auto`: looks at the problem first, then runs one of the other methods and says why.

    1. rows      many and independent: the look is at a sample of them, and a posterior with several
                 modes is heated by subsamples
    2. modes     the hunt, clouds and a reference (bases/modes.py)
    3. choice    by the table below, in this order; `tree.attrs["why"]` has the sentence

    a move that reads few rows, or remembers      that move alone
    one that needs the rows' likelihood apart     parallel tempering from the prior
    options of one method                         that method
    rows in plenty, several modes                 subsampled parallel tempering
    rows in plenty, one mode                      NUTS alone
    more modes than a mixture can hold            parallel tempering from the prior or base
    one mode, well covered, dear gradients        NUTS alone, log Z by a bridge to the reference
    anything else                                 parallel tempering from the reference

What a gradient costs is counted in multiplications of its traced program and not in seconds, so
that the choice, and with it every draw, is the same on every machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np

from temperance.bases.batch_gradients import has_gradient
from temperance.bases.hunt import Budget
from temperance.bases.modes import find_reference
from temperance.bases.reference import Reference
from temperance.engine.method import Asked, Call, Choice, Method
from temperance.errors import ArgumentError, MoveError, StartError, unknown_name
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import AbstractLadder
from temperance.methods.report.piece import Report
from temperance.methods.report.rungs import Draws
from temperance.moves.move import AbstractMove
from temperance.problems.problem import Densities, Problem, densities_of
from temperance.programs.random_streams import Run, stream
from temperance.samplers.plain import Plain
from temperance.warmup.rounds import Draw, WarmUp

PARALLEL, SUBSAMPLED, ALONE = "pt", "spt", "plain"
CANDIDATES = (PARALLEL, SUBSAMPLED, ALONE)
# Rows from which on a look is at a sample of them, and how many it takes.
TALL, SAMPLE = 20_000, 2_000
# Multiplications of a gradient above which chains alone are cheaper than rungs.
DEAR = 20_000.0
# What a reference has to be like for chains alone: the shape of the tail of its ratios, and the
# effective share of its draws.
GOOD_SHAPE, GOOD_SHARE = 0.5, 0.1
# What it must not be like for heating from it.
POOR_SHAPE, POOR_SHARE = 1.0, 0.005
# Draws of the base that may end at none of the modes that are kept.
MOST_MISSED = 0.05
# The move where widths within a mode differ by more than this.
LOCAL_STEPS, UNEVEN = "autostep", 2.5
WITHOUT_GRADIENT = "metropolis"
# Sweeps a draw, where the way from the reference to the target is short.
SHORT, SHORT_SWEEPS = 1.0, 3


@dataclass(frozen=True, kw_only=True)
class Options:
    """None of its own: options belong to the method that is chosen, and decide which it can be."""


def choose(asked: Asked, methods: Mapping[str, Method]) -> Choice:
    """A method for a problem, with its options, and why."""
    able = _able(asked.options, methods)
    move = asked.move
    if isinstance(move, AbstractMove) and (move.reads_rows or move.keeps_memory or not move.exact):
        return Choice(ALONE, move, asked.options, f"{type(move).__name__} runs alone")
    if not asked.options and isinstance(move, AbstractMove) and _wants_own_base(asked, move):
        why = f"{type(move).__name__} needs the likelihood of the rows apart"
        return Choice(PARALLEL, move, {"base": "own"}, why)
    if ALONE not in able or asked.options:
        name = next(name for name in CANDIDATES if name in able)
        return _with_reference_if_heated(asked, name)
    problem, densities, tall = asked.problem, asked.densities, False
    if isinstance(problem, Problem) and problem.independent and problem.num_rows >= TALL:
        densities, tall = sampled(problem), True
    key = stream(asked.key, Run.HUNT)
    try:
        reference = find_reference(
            problem, densities, key, progress=asked.progress, num_warmup=asked.num_warmup
        )
    except StartError:
        # A run says in detail what is wrong with its starting points.
        return Choice(ALONE, move, {}, "no draw of the prior or base has a finite density")
    modes = f"the hunt found {_count(reference.num_modes, 'mode')}"
    if tall:
        return _for_rows(asked, reference, modes)
    return _for_modes(asked, reference, modes)


def _for_modes(asked: Asked, reference: Reference, modes: str) -> Choice:
    """A problem whose modes are known, with a reference that fits them more or less well."""
    d, move, hunt = asked.densities, asked.move, reference.hunt
    smooth = has_gradient(d.whole, d.layout.dimension)
    work = Budget.of(d.whole, d.layout.dimension).work
    usual = move if smooth or move is not None else WITHOUT_GRADIENT
    good = reference.shape < GOOD_SHAPE and reference.efficiency > GOOD_SHARE
    poor = not (reference.shape < POOR_SHAPE and reference.efficiency > POOR_SHARE)
    more = not hunt.complete and hunt.num_missed > MOST_MISSED * hunt.num_draws
    crowded = more and not reference.shape < GOOD_SHAPE
    if (crowded or poor) and d.hot is not None:
        why = (
            f"{modes}{' and there are more' if crowded else ''}, which no mixture fits well: "
            f"parallel tempering from the {'base' if d.bridge else 'prior'}"
        )
        return Choice(PARALLEL, usual, {"base": "own"}, why, reference)
    if good and smooth and reference.num_modes == 1 and work > DEAR:
        why = (
            f"{modes}, the reference covers it, and a gradient takes {work:.2g} multiplications: "
            "NUTS alone from the reference, log evidence by a bridge to it"
        )
        return Choice(ALONE, "nuts" if move is None else move, {}, why, reference)
    why = f"{modes}: parallel tempering from a reference with a part for each"
    if usual is None and reference.unevenness > UNEVEN:
        usual = LOCAL_STEPS
        why += f"; widths within a mode differ by {reference.unevenness:.2g}: steps of local size"
    options: dict[str, Any] = {"base": reference}
    if reference.barrier < SHORT:
        options["sweeps_per_draw"] = SHORT_SWEEPS
    return Choice(PARALLEL, usual, options, why)


def _wants_own_base(asked: Asked, move: AbstractMove) -> bool:
    """Whether a move can do its work between the prior and the posterior, but not on a bridge."""
    whole, d = asked.densities.whole, asked.densities
    if d.hot is None or d.bridge:
        return False
    try:
        placed = move.placed(asked.problem, d.layout)
        placed.check_ladder(GeometricLadder(whole, whole, (0.0, 1.0), bridge=True))
    except MoveError:
        return True
    return False


def _able(options: Mapping[str, Any], methods: Mapping[str, Method]) -> list[str]:
    """The candidates that have all of the options that are given."""
    known = {name: _names(methods[name].options) for name in CANDIDATES}
    every = sorted(set().union(*known.values()))
    for option in options:
        if option not in every:
            raise unknown_name("option", option, every, " of method 'auto'")
    able = [name for name in CANDIDATES if set(options) <= known[name]]
    if not able:
        raise ArgumentError(
            f"options {sorted(options)}: none of the methods that 'auto' chooses from has all of "
            "them; say which method is meant, with method="
        )
    return able


def _names(options: type) -> set[str]:
    former = {one.metadata["formerly"] for one in fields(options)} - {""}
    return {one.name for one in fields(options)} | former


def _with_reference_if_heated(asked: Asked, name: str) -> Choice:
    """The method that the options ask for; heated from a reference, if nothing else is said."""
    why = f"the options {sorted(asked.options)} belong to {name}"
    options = dict(asked.options)
    if name == PARALLEL and not {"base", "min_beta", "hottest"} & set(options):
        move = asked.move
        apart = isinstance(move, AbstractMove) and _wants_own_base(asked, move)
        options["base"] = "own" if apart else "modes"
    return Choice(name, asked.move, options, why)


def _for_rows(asked: Asked, reference: Reference, modes: str) -> Choice:
    """Many independent rows, of which a sample has been looked at."""
    assert isinstance(asked.problem, Problem)
    rows = f"{asked.problem.num_rows} rows, of which {SAMPLE} were looked at: {modes}"
    if reference.num_modes > 1:
        return Choice(SUBSAMPLED, asked.move, {}, f"{rows}: tempering by subsamples")
    move = "nuts" if asked.move is None else asked.move
    return Choice(ALONE, move, {}, f"{rows}: NUTS alone")


def sampled(problem: Problem) -> Densities:
    """The densities with the likelihood of a sample of the rows, raised to make up for the rest."""
    n = problem.num_rows
    rows = np.linspace(0, n - 1, SAMPLE).astype(int)
    some = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], problem.data)
    terms, power = problem.terms, n / SAMPLE

    def raised(position: Any, data: Any) -> Any:
        return power * terms(position, data)

    smaller = Problem(problem.log_prior, raised, some, problem.draw_prior)
    return densities_of(smaller)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def prepare(call: Call) -> Any:
    """Never asked: `choose` names the method that prepares a run."""
    raise ArgumentError(f"method {call.method!r} is no method of its own: it chooses one")


METHOD = Method(
    name="auto",
    summary="looks first, then chooses one of the others and says why",
    options=Options,
    prepare=prepare,
    stages=(WarmUp(), Draw()),
    report=Report((Draws(),)),
    sampler=Plain,
    ladder=AbstractLadder,
    choose=choose,
)
