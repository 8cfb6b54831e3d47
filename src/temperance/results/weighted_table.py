"""The table of a run with weighted draws: ArviZ's knows no weights.

mean, sd, q5, q95   of the target, by the weights
mcse_mean           from the influence series, so that the chain's memory counts
ess                 independent draws of the target that would know the mean as well
r_hat               of the influence series: whether chains agree on the mean
r_hat_chance        how likely chains of one law are that far apart
"""

from typing import Any

import numpy as np

from temperance.estimates.agreement import agreement_of_means
from temperance.estimates.resampling import relative
from temperance.estimates.weighted import weighted_mean

LOW, HIGH = 0.05, 0.95


def weighted_table(tree: Any) -> Any:
    """One row for each scalar of the posterior."""
    import pandas as pd

    stats = tree["sample_stats"].dataset
    logs = stats["log_weight"].values
    apart = "log_weight_base" not in stats
    weights = relative(logs, logs.shape)
    rows = {}
    for name, array in tree["posterior"].dataset.data_vars.items():
        values = array.values
        for index in np.ndindex(*values.shape[2:]):
            label = f"{name}[{', '.join(map(str, index))}]" if index else str(name)
            series = values[(..., *index)]
            found = weighted_mean(series, logs, independent=apart)
            low, high = weighted_quantiles(series, weights, (LOW, HIGH))
            influence = weights * (series - found.value)
            agree = agreement_of_means(influence)
            enough = not apart and series.shape[1] >= 8
            rows[label] = {
                "mean": float(found.value),
                "sd": float(found.sd),
                "q5": low,
                "q95": high,
                "ess": float(found.ess),
                "mcse_mean": float(found.error),
                "r_hat": float(agree.rhat) if enough else np.nan,
                "r_hat_chance": float(agree.chance) if enough else np.nan,
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def weighted_quantiles(
    values: np.ndarray, weights: np.ndarray, levels: tuple[float, ...]
) -> list[float]:
    """Where the weights below reach each level."""
    flat, shares = np.ravel(values), np.ravel(weights)
    order = np.argsort(flat)
    reached = np.cumsum(shares[order]) / shares.sum()
    places = np.minimum(np.searchsorted(reached, levels), len(flat) - 1)
    return [float(flat[order][place]) for place in places]
