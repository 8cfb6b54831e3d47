"""What a chain's course of log sigma says of its modes.

The data may be smooth with much noise (sigma about 0.5), or rough with little. A chain is in the one mode from where
log sigma rises above `HIGH`, and in the other from where it falls below `LOW`, until it crosses the other line: what
trembles at one of the lines does not count as a visit.
"""

from typing import Any

import numpy as np

from temperance.estimates.diagnostics import effective_size, standard_error

LOW, HIGH = -1.75, -0.75
BETWEEN = -1.125
# Of a chain, left out at its beginning.
DISCARD = 0.1


def side(log_sigma: np.ndarray) -> np.ndarray:
    """In which mode a chain is at each point: 1 noisy, 0 not, -1 before it has been in either."""
    seen = np.where(log_sigma > HIGH, 1, np.where(log_sigma < LOW, 0, -1))
    last = np.maximum.accumulate(np.where(seen >= 0, np.arange(seen.size), 0))
    return seen[last]


def facts(points: np.ndarray) -> dict[str, Any]:
    """What is told of one chain, from its points (log mean nu, log eta, log sigma)."""
    kept = points[int(DISCARD * len(points)) :]
    log_sigma = kept[:, 2]
    visited = side(log_sigma)
    visited = visited[visited >= 0]
    switches = int(np.abs(np.diff(visited)).sum())
    noisy = (log_sigma > BETWEEN).astype(float)
    moved = np.ptp(noisy) > 0
    return {
        "switches": switches,
        "round_trips": switches // 2,
        "noisy": float(noisy.mean()),
        "noisy_error": float(standard_error(noisy[None])) if moved else float("nan"),
        "ess_log_sigma": float(effective_size(log_sigma[None])),
        "ess_log_eta": float(effective_size(kept[None, :, 1])),
        "ess_relevance": float(effective_size(kept[None, :, 0])),
        "mean_log_sigma": float(log_sigma.mean()),
    }
