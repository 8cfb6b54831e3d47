"""What a call may say of the base: a name, a fit, or a density of the user's own.

prior   the prior of a Problem, or the base that a Target came with
advi    one variational fit (advi.py)
fits    the moments of several, from different starts: one for each mode that they find
"""

from typing import Any

from temperance.bases.advi import advi, local_fits
from temperance.bases.bridge import rebased
from temperance.bases.fit import Fit
from temperance.problems.problem import Densities, Problem, Target

FITTED = {"advi": advi, "fits": local_fits}
PRIOR = "prior"


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
