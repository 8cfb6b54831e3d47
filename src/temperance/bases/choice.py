"""What a call may say of the base: a name, a fit, or a density of the user's own.

own     the prior of a Problem, or the base that a Target came with; also "prior"
advi    one variational fit (advi.py)
fits    the moments of several, from different starts: one for each mode that they find; also
        "fitted"
modes   a mixture with a part for each mode that a hunt finds, and the base (modes.py)
"""

from typing import Any

from temperance._types import Key
from temperance.bases.advi import advi, local_fits
from temperance.bases.bridge import rebased
from temperance.bases.fit import Fit
from temperance.bases.modes import find_reference
from temperance.bases.reference import Reference
from temperance.problems.problem import Densities, Problem, Target

FITTED = {"advi": advi, "fits": local_fits, "fitted": local_fits}
OWN = ("own", "prior")
MODES = "modes"
NAMES = (*OWN, *FITTED, MODES)


def with_base(
    problem: Problem | Target,
    densities: Densities,
    asked: Any,
    *,
    key: Key,
    seed: int = 0,
    progress: bool = False,
    precision: str = "double",
    num_warmup: int = 1000,
) -> tuple[Densities, Fit | Reference | None]:
    """The densities, heated towards the base that was asked for, and its fit if it has one.

    A base by name is fitted here, and that is long.
    """
    if asked is None:
        return densities, None
    if asked == MODES:
        asked = find_reference(problem, densities, key, progress=progress, num_warmup=num_warmup)
    if isinstance(asked, Reference):
        return rebased(problem, asked.density), asked
    if isinstance(asked, str):
        asked = FITTED[asked](problem, seed=seed, progress=progress, precision=precision)
    if isinstance(asked, Fit):
        return rebased(problem, asked.base), asked
    return rebased(problem, asked), None
