"""What a run is worth: the paper's R-hat and effective size, and those of ArviZ beside them.

`draws` are (chain, draw, d). Every figure is the median over dimensions, as in the paper; the least
effective size is kept too, because a posterior is known as well as its worst direction.
"""

import numpy as np

from temperance.estimates.diagnostics import effective_size, ess_between, rhat_between, rhat_live

CURVE_POINTS = 40
FEWEST_DRAWS = 4


def worth(draws: np.ndarray) -> dict[str, float]:
    """Effective sizes and R-hats of draws from which the burn-in is gone."""
    if draws.shape[1] < FEWEST_DRAWS:
        names = ("ess_between", "ess", "least_ess", "rhat_between", "rhat")
        return dict.fromkeys(names, float("nan"))
    sizes = effective_size(draws)
    return {
        "ess_between": _median(ess_between(draws)),
        "ess": _median(sizes),
        "least_ess": float(np.min(sizes)),
        "rhat_between": _median(rhat_between(draws)),
        "rhat": _median(rhat_live(draws)),
    }


def curve(draws: np.ndarray, thin: int) -> list[list[float]]:
    """The paper's figure 2: sweeps so far, and the median R-hat of the second half of them."""
    ends = np.unique(np.geomspace(8, max(8, draws.shape[1]), CURVE_POINTS).astype(int))
    return [
        [int(n) * thin, _median(rhat_between(draws[:, n // 2 : n]))]
        for n in ends
        if n <= draws.shape[1]
    ]


def _median(values: np.ndarray) -> float:
    return float(np.median(values))
