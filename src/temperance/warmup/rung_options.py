"""Options about rungs that several methods have, and the rungs that they make."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.engine.method import Call
from temperance.engine.options import Check, count, flag, number, one_of, option
from temperance.errors import ArgumentError
from temperance.ladders.geometric import check_betas
from temperance.ladders.prefix import depends_on_order
from temperance.problems.checks import check_count
from temperance.problems.problem import Problem
from temperance.rows.nested_subsamples import Strata, checked_sizes
from temperance.samplers.parallel.swaps import SCHEMES
from temperance.warmup.subsample_rungs import SubsampleRungs

# Swaps evaluate little or nothing, so every pair of neighbours gets its turn between two moves.
SWAPS_PER_SWEEP = {"deo": 2, "seo": 2, "sweep": 1}
POWERS = "the rungs' powers, increasing to 1, kept as given (default: tuned in warm-up)"
CHOSEN = "number of rungs, 2 or more (default: chosen from the measured barrier)"


def increasing_betas(_: str, value: Any) -> tuple[float, ...]:
    """Powers that increase to 1."""
    return tuple(float(beta) for beta in check_betas(value))


def given(_: str, value: Any) -> Any:
    """Whatever is given; it is checked beside the problem."""
    return value


@dataclass(frozen=True, kw_only=True)
class PowerOptions:
    """Of rungs that are powers."""

    num_rungs: int | None = option(None, CHOSEN, count(2))
    betas: tuple[float, ...] | None = option(None, POWERS, increasing_betas)
    min_beta: float = option(
        0.0,
        "the hottest rung's power in [0, 1), where betas are not given; 0 is the prior or base",
        number("a beta in [0, 1)", lambda beta: 0 <= beta < 1),
        formerly="hottest",
    )


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """Of rungs that are nested subsamples."""

    num_rungs: int | None = option(None, CHOSEN, count(2))
    sizes: Any = option(
        None,
        "rows of each rung, increasing to all, or shares to 1.0, kept as given (default: from a "
        "pilot)",
        given,
        kind="rows or shares",
    )
    min_rows: Any = option(
        None,
        "rows of the smallest subsample, or its share in [0, 1) (default: from a pilot)",
        given,
        formerly="hottest",
        kind="int or float",
    )
    strata: Any = option(
        None,
        "a label for each row, so that every rung has its share of each label (default: none)",
        lambda _, labels: tuple(np.asarray(labels).tolist()),
        kind="labels",
    )


@dataclass(frozen=True, kw_only=True)
class SwapOptions:
    """Of swaps between rungs."""

    scheme: str = option(
        "deo", "swaps between rungs: deo, seo or sweep", one_of("swap scheme", SCHEMES)
    )
    swaps_per_sweep: int | None = option(
        None, "rounds of swaps in a sweep (default: 2; 1 for sweep)", count(1)
    )

    @property
    def swap_rounds(self) -> int:
        """Rounds of swaps in a sweep."""
        return self.swaps_per_sweep or SWAPS_PER_SWEEP[self.scheme]


def sweeps(default: int, what: str = "sweeps") -> Any:
    """The option that thins draws."""
    return option(default, f"{what} for each kept draw", count(1))


LOG_EVIDENCE: Check = flag("True, False or None (where it can)", (None, True, False))


def need_base(call: Call) -> None:
    """Raise where there is nothing to heat the target towards."""
    if call.densities.hot is None:
        raise ArgumentError(
            f"method {call.method!r} heats the target towards a base and this Target has none: "
            "give Target(..., base=Gaussian(mean, covariance)), or ask for one to be fitted: "
            "base='modes' with method 'pt', 'tt', 'ais' or 'smc', base='fits' with 'st', "
            "'gibbs-ct' or 'joint-ct'; method='plain' needs none, and heats nothing"
        )


def check_agreement(num_rungs: int | None, rungs: Any, what: str) -> None:
    """Raise if a number of rungs is given beside rungs, and is another one."""
    if num_rungs is not None and rungs is not None and len(rungs) != num_rungs:
        raise ArgumentError(f"num_rungs is {num_rungs}, but there are {len(rungs)} {what}")


def subsample_rungs(
    call: Call,
    *,
    evidence: bool | None = None,
    refresh: int = 0,
    kind: type[SubsampleRungs] = SubsampleRungs,
    **others: Any,
) -> Any:
    """The rungs of a call that leaves rows out, its options checked beside its problem.

    They have `sizes`, `min_rows`, `num_rungs` and `strata`, as SizeOptions.
    """
    problem, options = call.problem, call.options
    if not isinstance(problem, Problem):
        raise ArgumentError(
            f"method {call.method!r} leaves rows out, and a Target has none: write it as a Problem "
            "with one term for each row, or heat it by powers with method='pt' or 'tt'"
        )
    n, fewest = problem.num_rows, getattr(options, "min_rows", None)
    if 2 * refresh > n:
        raise ArgumentError(f"refresh: {refresh} pairs of rows need more than the {n} there are")
    if evidence and refresh:
        raise ArgumentError(
            "evidence and refresh: log evidence needs the subsamples to stay as they are; give one"
        )
    if options.strata is not None:
        Strata.of(options.strata, n)
    if (refresh or options.strata is not None) and depends_on_order(problem):
        raise ArgumentError(
            "refresh and strata: this likelihood depends on the order of its rows, so that their "
            "places cannot be changed; its rungs are the first rows, as they are"
        )
    betas = None
    if options.sizes is not None:
        if fewest is not None:
            raise ArgumentError("min_rows and sizes: the first size is the hottest; give one")
        rows = np.asarray(checked_sizes(options.sizes, n))
        rows = np.r_[0, rows] if evidence and rows[0] > 0 else rows
        betas = tuple(float(share) for share in rows / n)
    check_agreement(options.num_rungs, betas, "sizes")
    return kind(
        call, betas, options.num_rungs, _share(fewest, n), options.strata, evidence,
        refresh=refresh, **others,
    )  # fmt: skip


def refreshes(name: str, value: Any) -> Any:
    """A number of exchanges; True stands for some."""
    if value is True:
        return True
    return check_count(name, 0 if value is False else value, 0)


def default_refresh(num_rows: int) -> int:
    """Exchanges a sweep: enough to turn small subsamples over soon, for little more than a swap."""
    return max(1, min(num_rows // 2, 64, num_rows // 8))


def _share(fewest: Any, num_rows: int) -> float | None:
    """The hottest rung's share of the rows, from a share or a number of rows."""
    if fewest is None:
        return None
    if isinstance(fewest, bool) or not isinstance(fewest, int | float | np.number):
        raise ArgumentError(f"min_rows: wanted a share or a number of rows, got {fewest!r}")
    share = float(fewest) if fewest < 1 else float(fewest) / num_rows
    whole = fewest < 1 or float(fewest).is_integer()
    if not (0 <= share < 1 and whole):
        raise ArgumentError(
            f"min_rows: wanted a share in [0, 1) or a whole number of fewer than {num_rows} rows, "
            f"got {fewest!r}"
        )
    return share
