"""Which of the fifty modes draws are in, and whether they are visited equally often.

The mode of a draw is its largest coordinate, if that is more than 1 above the next. Labels are exchangeable, so
equal counts are exact, whatever the rows. Draws of a chain are not independent, and autocorrelations do not tell
how far they are from it: a replica of parallel tempering comes back to the target with the mode it had, until it
has been hot again. Chains are independent. With s_ck the share of mode k in chain c of C, and v_k its
variance between chains,

    n_eff = C sum_k m_k (1 - m_k) / sum_k v_k,    F = C sum_k (m_k - 1/50)^2 / sum_k v_k,    m_k = mean_c s_ck:

as many draws as all of them are worth, and a ratio that is near F with 49 and 49 (C - 1) degrees of freedom where
all modes are as likely.
"""

from typing import Any

import numpy as np
from scipy.stats import f as fisher

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
        "f_ratio": float("nan"),
        "p_value": float("nan"),
        "by_chain": [np.bincount(chain, minlength=draws.shape[-1]).tolist() for chain in labels],
    }
    shares = np.array(found["by_chain"]) / draws.shape[1]
    between = shares.var(axis=0, ddof=1).sum() if len(shares) > 1 else 0.0
    if between > 0:
        num_chains, num_modes = shares.shape
        mean = shares.mean(axis=0)
        ratio = num_chains * np.sum((mean - 1 / num_modes) ** 2) / between
        freedom = (num_modes - 1, (num_modes - 1) * (num_chains - 1))
        found |= {
            "label_ess": float(num_chains * np.sum(mean * (1 - mean)) / between),
            "f_ratio": float(ratio),
            "p_value": float(fisher.sf(ratio, *freedom)),
        }
    return found
