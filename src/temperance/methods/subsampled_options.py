"""What a call may say of nested subsamples, and what is wrong with it before anything runs.

`sizes` or `hottest` say how far to heat, `refresh` how many rows are exchanged in a sweep, `strata`
which rows each subsample has a share of, and `evidence` whether the prior has to be a rung.
"""

from typing import Any

import numpy as np

from temperance._types import Options
from temperance.problems.checks import check_count
from temperance.errors import ArgumentError
from temperance.ladders.prefix import depends_on_order
from temperance.problems.problem import Problem
from temperance.rows.shuffle import Strata
from temperance.rows.sizes import checked_sizes


def subsampled_options(
    problem: Problem, options: Options
) -> tuple[tuple[float, ...] | None, Options]:
    """The rungs' shares, if `sizes` are given, and the other options, checked."""
    n = problem.num_rows
    sizes, hottest, evidence = (options.get(name) for name in ("sizes", "hottest", "evidence"))
    refresh = options.get("refresh", 0)
    if evidence not in (None, True, False):
        raise ArgumentError(
            f"evidence: wanted True, False or None (where it can), got {evidence!r}"
        )
    if refresh is True:
        refresh = default_refresh(n)
    refresh = check_count("refresh", int(refresh) if refresh is False else refresh, 0)
    if 2 * refresh > n:
        raise ArgumentError(f"refresh: {refresh} pairs of rows need more than the {n} there are")
    if evidence and refresh:
        raise ArgumentError(
            "evidence and refresh: log evidence needs the subsamples to stay as they are; give one"
        )
    labels = options.get("strata")
    if labels is not None:
        labels = tuple(np.asarray(labels).tolist())
        Strata.of(labels, n)
    if (refresh or labels is not None) and depends_on_order(problem):
        raise ArgumentError(
            "refresh and strata: this likelihood depends on the order of its rows, so that their "
            "places cannot be changed; its rungs are the first rows, as they are"
        )
    own = {"refresh": refresh, "evidence": evidence, "strata": labels}
    if sizes is not None:
        if hottest is not None:
            raise ArgumentError("hottest and sizes: the first size is the hottest; give one")
        rows = np.asarray(checked_sizes(sizes, n))
        rows = np.r_[0, rows] if evidence and rows[0] > 0 else rows
        return tuple(float(share) for share in rows / n), own
    return None, own | {"hottest": _share(hottest, n)}


def default_refresh(num_rows: int) -> int:
    """Exchanges a sweep: enough to turn small subsamples over soon, for little more than a swap."""
    return max(1, min(num_rows // 2, 64, num_rows // 8))


def _share(hottest: Any, num_rows: int) -> float | None:
    """The hottest rung's share of the rows, from a share or a number of rows."""
    if hottest is None:
        return None
    if isinstance(hottest, bool) or not isinstance(hottest, int | float | np.number):
        raise ArgumentError(f"hottest: wanted a share or a number of rows, got {hottest!r}")
    share = float(hottest) if hottest < 1 else float(hottest) / num_rows
    whole = hottest < 1 or float(hottest).is_integer()
    if not (0 <= share < 1 and whole):
        raise ArgumentError(
            f"hottest: wanted a share in [0, 1) or a whole number of fewer than {num_rows} rows, "
            f"got {hottest!r}"
        )
    return share
