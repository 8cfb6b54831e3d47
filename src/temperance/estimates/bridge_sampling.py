"""Log Z by a bridge between a normalised density that can be drawn from and a run's draws.

With l = log p - log q, n draws of q and m effective draws of p / Z, the best bridge (Meng and Wong
1996) is the fixed point z = log Z of

    z <- z + log mean_q g1 - log mean_p g2,
    g1 = e^{l - z} / (a e^{l - z} + b),     g2 = 1 / (a e^{l - z} + b),     a = m / (m + n) = 1 - b,

with the squared error of Fruhwirth-Schnatter (2004), var(g1) / (n mean(g1)^2) + var(g2) / (m
mean(g2)^2), whose second part has the long-run variance of the run's draws, which are correlated.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from temperance.estimates.diagnostics import effective_size, standard_error
from temperance.estimates.weighted import LogRatio

ROUNDS, TOLERANCE = 500, 1e-10


def bridge_sampling(of_base: npt.ArrayLike, of_run: npt.ArrayLike) -> LogRatio:
    """Log Z from log p - log q at independent draws of q, (n,), and at a run's, (chain, draw)."""
    base, run = np.ravel(np.asarray(of_base, float)), np.asarray(of_run, float)
    size = float(effective_size(np.clip(run, -1e300, 1e300)))
    m = size if np.isfinite(size) else float(run.size)
    offset = float(logit(m / (m + len(base))))
    z = float(np.median(run))
    for _ in range(ROUNDS):
        # g1 = s(l - z + offset) / a, and g2 = s(z - l - offset) / b.
        one, two = expit(base - z + offset), expit(z - run - offset)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = float(np.log(one.mean()) - np.log(two.mean()) - offset)
        if not np.isfinite(step):
            return LogRatio(float("nan"), float("inf"))
        z += step
        if abs(step) < TOLERANCE:
            break
    one, two = expit(base - z + offset), expit(z - run - offset)
    of_draws = one.std(ddof=1) / one.mean() / np.sqrt(len(one))
    of_chains = float(standard_error(two)) / two.mean() if np.ptp(two) > 0 else 0.0
    return LogRatio(z, float(np.hypot(of_draws, of_chains)))
