"""What a call may say of a run that travels the temperatures, checked before anything runs.

Nothing here needs the base itself, which may have to be fitted first: only whether there is a
bridge to the target from it.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from temperance._types import Key, Options, Position
from temperance.problems.checks import check_count, is_number
from temperance.ladders.joint import JointLadder
from temperance.errors import ArgumentError, MoveError
from temperance.ladders.geometric import GeometricLadder, check_betas
from temperance.problems.layout import DrawVector, Layout
from temperance.moves.move import AbstractMove, refuse_few_rows
from temperance.problems.problem import Densities, Problem, Target
from temperance.methods.subsampled_options import subsampled_options

LEAST_SHARE = 0.01
BY_ROWS = ("sizes", "strata", "by_rows")


def travel_options(
    problem: Problem | Target, name: str, layout: Layout, options: Options
) -> tuple[tuple[float, ...] | None, int | None, Options]:
    """The betas and the number of rungs of warm-up's ladder, and what else a plan is told."""
    log_zeta = options.get("log_zeta")
    if log_zeta is not None and not (is_number(log_zeta) and abs(log_zeta) < 1e300):
        raise ArgumentError(f"log_zeta: wanted a number or None, got {log_zeta!r}")
    own: Options = {"log_zeta": None if log_zeta is None else float(log_zeta)}
    if name in ("joint-ct", "gibbs-ct"):
        return None, None, own
    if name == "st":
        betas = _betas(options)
        if betas is not None and betas[0] != 0:
            raise ArgumentError(f"betas: they have to begin at 0, the base; got {betas[0]}")
        return betas, _num_rungs(options, betas), own
    own["draw_target"] = _draw_target(name, layout, options)
    if any(given(options.get(option)) for option in BY_ROWS):
        betas, num_rungs, rows = _by_rows(problem, name, options)
        return betas, num_rungs, own | rows
    betas = _betas(options)
    if betas is not None and betas[0] != 0:
        raise ArgumentError(f"betas: an anneal begins at 0, the base; got {betas[0]}")
    num_rungs = _num_rungs(options, betas)
    own["anneal"] = num_rungs if betas is None else betas
    share = options.get("conditional_ess")
    if share is not None and not (is_number(share) and LEAST_SHARE <= share < 1):
        raise ArgumentError(
            f"conditional_ess: wanted a share from {LEAST_SHARE} to below 1, such as 0.99, got "
            f"{share!r}"
        )
    if share is not None and own["anneal"] is not None:
        raise ArgumentError(
            "conditional_ess chooses an anneal's betas and their number: give it alone, or "
            "num_rungs or betas"
        )
    own["conditional_ess"] = None if share is None else float(share)
    return None, None, own


def check_travelling_move(
    name: str, move: AbstractMove, densities: Densities, bridge: bool
) -> None:
    """Raise where the samplers of warm-up and of the draws would refuse the move."""
    refuse_few_rows(move)
    if not move.exact:
        raise MoveError(
            f"method {name!r} needs an exact move, since the bias of one temperature spreads to "
            f"all of them, and {move} is not"
        )
    hot = densities.whole if densities.hot is None else densities.hot
    move.check_ladder(GeometricLadder(hot, densities.cold, (0.0, 1.0), bridge=bridge))
    if name == "joint-ct":
        move.check_ladder(JointLadder(hot, densities.cold, jnp.zeros(()), bridge))


def _by_rows(
    problem: Problem | Target, name: str, options: Options
) -> tuple[tuple[float, ...] | None, int | None, Options]:
    """The same of an anneal that adds rows: it begins at the prior, with none."""
    if not isinstance(problem, Problem):
        raise ArgumentError(
            f"method {name!r} with sizes or by_rows adds rows as it goes, and a Target has none: "
            "write it as a Problem with one term for each row"
        )
    for other in ("betas", "conditional_ess", "base"):
        if options.get(other) is not None:
            raise ArgumentError(f"{other}: it belongs to powers, and not to subsamples; leave it")
    told = {name: options[name] for name in ("sizes", "strata") if name in options}
    betas, own = subsampled_options(problem, told | {"evidence": True})
    return betas, _num_rungs(options, betas), own | {"by_rows": True}


def _draw_target(name: str, layout: Layout, options: Options) -> Callable[[Key], Any] | None:
    if name != "bdmc":
        return None
    exact = options.get("exact")
    if exact is None:
        raise ArgumentError(
            "exact: a reverse anneal begins with an exact draw of the target. Give a function of a "
            "key that makes one, or the one position that the data were simulated with"
        )
    if not callable(exact):
        layout.ravel(exact)  # says what is wrong with it
        return DrawVector(Constant(jax.tree.map(jnp.asarray, exact)), layout)
    try:
        shape = jax.eval_shape(exact, jax.random.key(0))
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise ArgumentError(f"exact: it fails on a random key: {error}") from error
    if Layout.of(shape) != layout:
        raise ArgumentError(
            f"exact: its draws have leaves {Layout.of(shape).names} of shapes "
            f"{Layout.of(shape).shapes}, and positions have {layout.names} of {layout.shapes}"
        )
    return DrawVector(exact, layout)


class Constant(eqx.Module):
    """One position, whatever the key: the one that a model's data were simulated with."""

    position: Position

    def __call__(self, key: Key) -> Position:
        return self.position


def _betas(options: Options) -> tuple[float, ...] | None:
    betas = options.get("betas")
    return None if betas is None else tuple(float(beta) for beta in check_betas(betas))


def _num_rungs(options: Options, betas: tuple[float, ...] | None) -> int | None:
    given = options.get("num_rungs")
    if given is None:
        return None
    count = check_count("num_rungs", given, 2)
    if betas is not None and len(betas) != count:
        raise ArgumentError(f"num_rungs is {count}, but there are {len(betas)} rungs given")
    return count


def given(value: Any) -> bool:
    """Whether an option says anything."""
    return value is not None and value is not False
