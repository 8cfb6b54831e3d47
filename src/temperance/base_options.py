"""What a call may say of the base: a name, a fit, or a density of the user's own.

prior   the prior of a Problem, or the base that a Target came with
advi    one variational fit (variational.py)
fits    the moments of several, from different starts: one for each mode that they find
"""

from typing import Any

from temperance.errors import ArgumentError, unknown_name
from temperance.fit import Fit
from temperance.methods import Method
from temperance.problem import Densities, Problem, Target
from temperance.rebased import rebased
from temperance.variational import advi, local_fits

FITTED = {"advi": advi, "fits": local_fits}
PRIOR = "prior"


def with_base(
    problem: Problem | Target,
    densities: Densities,
    method: Method,
    given: Any,
    *,
    seed: int,
    progress: bool,
    precision: str,
) -> tuple[Densities, Fit | None]:
    """The densities, heated towards the base that was asked for, and its fit if it is fitted."""
    if given is None:
        own = isinstance(problem, Target) and densities.hot is not None
        absent = densities.hot is None
        given = "fits" if absent or (method.fits_base and not own) else PRIOR
    if isinstance(given, str):
        if given not in (PRIOR, *FITTED):
            raise unknown_name("base", given, (PRIOR, *FITTED))
        if given == PRIOR:
            if densities.hot is None:
                raise ArgumentError(
                    "base: this Target has none of its own: give Target(..., base=Gaussian(mean, "
                    "covariance)), or base='fits'"
                )
            return densities, None
        fit = FITTED[given](problem, seed=seed, progress=progress, precision=precision)
        return rebased(problem, fit.base), fit
    if isinstance(given, Fit):
        return rebased(problem, given.base), given
    return rebased(problem, given), None
