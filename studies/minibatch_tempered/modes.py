"""Which of the fifty modes draws are in, and whether they are visited equally often.

The mode of a draw is its largest coordinate, if that is more than 1 above the next. Draws of a chain
are not independent: with N draws of which the indicators of modes are worth n_eff, the median of the
effective sizes over modes that were seen, counts are multiplied by n_eff / N before they are compared
with equal ones by chi-square. Labels are exchangeable, so equal counts are exact, whatever the rows.
"""

from typing import Any

import numpy as np
from scipy.stats import chi2

from temperance.diagnostics import effective_size

CLEAR = 1.0


def visits(draws: np.ndarray) -> dict[str, Any]:
    """Modes of draws (chain, draw, 50): how many, how evenly, how often they change."""
    ordered = np.sort(draws, axis=-1)
    clear = ordered[..., -1] - ordered[..., -2] > CLEAR
    labels = np.argmax(draws, axis=-1)
    counts = np.bincount(labels[clear], minlength=draws.shape[-1])
    seen = np.flatnonzero(counts)
    found: dict[str, Any] = {
        "num_modes": int(seen.size),
        "share_clear": float(clear.mean()),
        "num_changes": int(np.sum(labels[:, 1:] != labels[:, :-1])),
        "counts": counts.tolist(),
        "largest": float(np.median(ordered[..., -1])),
        "label_ess": float("nan"),
        "chi_square": float("nan"),
        "p_value": float("nan"),
    }
    if seen.size > 1 and draws.shape[1] >= 8:
        indicators = (labels[..., None] == seen).astype(float)
        size = float(np.nanmedian(effective_size(indicators)))
        scaled = counts * size / counts.sum()
        mean = size / counts.size
        statistic = float(np.sum((scaled - mean) ** 2) / mean)
        found |= {
            "label_ess": size,
            "chi_square": statistic,
            "p_value": float(chi2.sf(statistic, counts.size - 1)),
        }
    return found
