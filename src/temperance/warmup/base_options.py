"""Options of chains that travel the temperatures, and the base that they heat towards."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp

from temperance.bases.choice import NAMES, OWN, with_base
from temperance.bases.reference import Reference
from temperance.engine.method import Call
from temperance.engine.options import number, option
from temperance.errors import ArgumentError, MoveError, unknown_name
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.joint import JointLadder
from temperance.ladders.spacing import rungs_for
from temperance.moves.move import refuse_few_rows
from temperance.problems.problem import Target
from temperance.programs.random_streams import Run, stream
from temperance.warmup.rung_options import given


@dataclass(frozen=True, kw_only=True)
class BaseOptions:
    """What to heat towards."""

    base: Any = option(
        None,
        "what to heat towards: own (a Problem's prior, a Target's base), modes, fitted, advi, a "
        "Fit, or a density with draw(key) (default: own; fitted in continuous tempering of a "
        "Problem, and where a Target has no base)",
        given,
        traced=True,
        kind="str, Fit or density",
    )


@dataclass(frozen=True, kw_only=True)
class ZetaOptions:
    """The log ratio of constants."""

    log_zeta: float | None = option(
        None,
        "a guess of log Z that is kept (default: learnt in warm-up)",
        number("a number or None", lambda value: abs(value) < 1e300),
    )


def with_base_asked(
    call: Call, *, fitted: bool = False, joint: bool = False
) -> tuple[Call, float | None]:
    """The call, heated towards the base it asks for, and the fit's guess of log Z if there is one.

    `fitted` says that a Problem's prior is too far from its target, so that by default a base is
    fitted. Every check stands before the fit, which may take longer than the run itself.
    """
    base = _base_asked(call, fitted)
    check_move(call, bridge=call.densities.bridge or base is not None, joint=joint)
    key = stream(call.key, Run.HUNT)
    densities, fit = with_base(
        call.problem, call.densities, base, key=key, num_warmup=call.num_warmup, **call.fitting
    )
    if isinstance(fit, Reference):
        call = replace(call, reference=fit, from_reference=True)
    call = replace(call, densities=densities)
    return call, None if fit is None else float(fit.log_zeta)


def rungs_wanted(
    call: Call,
    num_rungs: int | None,
    betas: tuple[float, ...] | None,
    rule: Callable[[float], int] = rungs_for,
) -> int | None:
    """The number of rungs that was asked for or, of a reference, what its draws say of the way.

    None where a pilot has to find out.
    """
    if num_rungs is not None or betas is not None or not call.from_reference:
        return num_rungs
    return rule(call.reference.barrier)


def _base_asked(call: Call, fitted: bool) -> Any:
    """The base that a call wants fitted, by name, or brings; None for the densities' own."""
    asked, own = call.options.base, call.densities.hot is not None
    if asked is None:
        comes_with = isinstance(call.problem, Target) or not fitted
        return None if comes_with and own else "fits"
    if not isinstance(asked, str):
        return asked
    if asked not in NAMES:
        raise unknown_name("base", asked, NAMES)
    if asked not in OWN:
        return asked
    if not own:
        raise ArgumentError(
            "base: this Target has none of its own: give Target(..., base=Gaussian(mean, "
            "covariance)), or base='modes'"
        )
    return None


def check_move(call: Call, *, bridge: bool, joint: bool = False) -> None:
    """Raise where the samplers of warm-up and of the draws would refuse the move."""
    move, densities = call.move, call.densities
    refuse_few_rows(move)
    if not move.exact:
        raise MoveError(
            f"method {call.method!r} needs an exact move, since the bias of one temperature "
            f"spreads to all of them, and {move} is not"
        )
    hot = densities.whole if densities.hot is None else densities.hot
    move.check_ladder(GeometricLadder(hot, densities.cold, (0.0, 1.0), bridge=bridge))
    if joint:
        move.check_ladder(JointLadder(hot, densities.cold, jnp.zeros(()), bridge))
