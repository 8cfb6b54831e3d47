"""What a call may say of the base: a name, a fit, or a density of the user's own.

prior   the prior of a Problem, or the base that a Target came with
advi    one variational fit (variational.py)
fits    the moments of several, from different starts: one for each mode that they find
"""

from typing import Any

from temperance.errors import ArgumentError, unknown_name
from temperance.bases.fit import Fit
from temperance.methods.methods import Method
from temperance.problems.problem import Densities, Problem, Target
from temperance.bases.bridge import rebased
from temperance.bases.advi import advi, local_fits

FITTED = {"advi": advi, "fits": local_fits}
PRIOR = "prior"


def base_asked(problem: Problem | Target, densities: Densities, method: Method, given: Any) -> Any:
    """The base that a call wants fitted, by name, or brings; None for the densities' own."""
    if given is None:
        comes_with = isinstance(problem, Target) or method.base != "fitted"
        return None if comes_with and densities.hot is not None else "fits"
    if not isinstance(given, str):
        return given
    if given not in (PRIOR, *FITTED):
        raise unknown_name("base", given, (PRIOR, *FITTED))
    if given != PRIOR:
        return given
    if densities.hot is None:
        raise ArgumentError(
            "base: this Target has none of its own: give Target(..., base=Gaussian(mean, "
            "covariance)), or base='fits'"
        )
    return None


def with_base(
    problem: Problem | Target,
    densities: Densities,
    asked: Any,
    *,
    seed: int,
    progress: bool,
    precision: str,
) -> tuple[Densities, Fit | None]:
    """The densities, heated towards the base that was asked for, and its fit if it has one.

    A base by name is fitted here, and that is long.
    """
    if asked is None:
        return densities, None
    if isinstance(asked, str):
        asked = FITTED[asked](problem, seed=seed, progress=progress, precision=precision)
    if isinstance(asked, Fit):
        return rebased(problem, asked.base), asked
    return rebased(problem, asked), None
