"""Why the paper's Table 2 cannot be a reference: what its own settings imply.

**Temperatures.** T_k = n / m_k^alpha with alpha = 0.995 gives every T_k that is printed.

**Noise.** The energy of a batch is -n times its mean term. With s the standard deviation of the terms,

    sd = n s sqrt((1 - m / n) / m),

beside rings of width H_{k+1} - H_k = 10 T_k. Where the noise is wider than the rings, a ring says nothing.

**Tails.** Near a mode of a regular posterior in d dimensions h - h_min is Gamma(d / 2) at T = 1: the chance of
h > H_6 there is that of a Gamma law beyond H_6 - H_0. What the table has in its last ring is noise, or a
chain that is not at the posterior.

**The hottest row** is what noise makes of h = h_min + T Gamma(d / 2): the shares of rings of
h + N(0, sd^2), beside those that are printed and those without noise.
"""

from typing import Any

import numpy as np
from fifty_problem import NUM_COMPONENTS, TRUE_TOP, data
from printed import TABLE_2
from scipy.special import gammaln, logsumexp

ALPHA = 0.995
RING = 10.0


def term_spread(num_rows: int) -> float:
    """The standard deviation of a row's term at the parameters that the data were drawn with."""
    rows = data(num_rows)
    theta = np.zeros(NUM_COMPONENTS)
    theta[0] = TRUE_TOP
    return float(np.std(logsumexp(-0.5 * (rows[:, None] - theta) ** 2, axis=1)))


def reasons(num_rows: int, num_draws: int = 200_000) -> dict[str, Any]:
    """Every figure of the argument."""
    sizes = np.array([row.batch for row in TABLE_2])
    # The coldest chain of the table is the posterior itself.
    heats = np.where(sizes == num_rows, 1.0, num_rows / sizes**ALPHA)
    spread = term_spread(num_rows)
    noise = num_rows * spread * np.sqrt((1 - sizes / num_rows) / sizes)
    widths = RING * heats
    levels = np.cumsum(widths[:-1])
    generator = np.random.default_rng(0)
    quiet = heats[-1] * generator.gamma(NUM_COMPONENTS / 2, size=num_draws)
    loud = quiet + noise[-1] * generator.normal(size=num_draws)
    return {
        "temperatures": heats.tolist(),
        "term_spread": spread,
        "noise": noise.tolist(),
        "widths": widths.tolist(),
        "whole_ladder": float(levels[-1]),
        "log10_tail": log_tail(float(levels[-1]), NUM_COMPONENTS // 2) / float(np.log(10)),
        "rings_without_noise": _shares(quiet, levels),
        "rings_with_noise": _shares(loud, levels),
    }


def log_tail(level: float, shape: int) -> float:
    """Log P(Gamma(shape) > level) = -level + log sum_{k < shape} level^k / k!."""
    k = np.arange(shape)
    return float(logsumexp(k * np.log(level) - gammaln(k + 1)) - level)


def _shares(energies: np.ndarray, levels: np.ndarray) -> list[float]:
    """Percentages in each ring, of energies counted from H_0."""
    rings = np.bincount(np.searchsorted(levels, energies, side="right"), minlength=len(levels) + 1)
    return (100 * rings / rings.sum()).tolist()
