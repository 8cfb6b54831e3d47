"""What a state of a fitted model says about a new row, in the form that questions are asked of.

A state partitions the columns into views and, in each view, the rows into clusters. A new row joins
cluster k of a view with probability (n_k - d) / (n + alpha), or a cluster of its own with
probability (alpha + d K) / (n + alpha). Given its cluster in each view, its cells are independent,
and each has the predictive law of its column in that cluster:

    log p(row | state) = sum over views v of
        log sum over k of exp(log_mass[k] + sum over columns c in v of log p_c(cell | k)).

Arrays with an axis of clusters have K + 1 entries there: the K clusters, then the new one. A
missing cell has no factor. Real columns are in standardised units, (x - centre) / scale, so that a
density in the user's units has one more factor of 1 / scale.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CategoricalPredictive(NamedTuple):
    """Probabilities of values by cluster, for categorical and boolean columns.

    Attributes:
        log_probs: [K + 1, V + 1], the V known values in the schema's order, then "a value never
            seen", which is -inf for a boolean column.
    """

    log_probs: NDArray[np.float64]


class RealPredictive(NamedTuple):
    """Student's t by cluster, each [K + 1], in standardised units."""

    loc: NDArray[np.float64]
    scale: NDArray[np.float64]
    df: NDArray[np.float64]


class CountPredictive(NamedTuple):
    """The gamma law of the rate by cluster, each [K + 1]: counts are negative binomial."""

    shape: NDArray[np.float64]
    rate: NDArray[np.float64]


class SpikePredictive(NamedTuple):
    """One value with a probability of its own, and Student's t for all others.

    Attributes:
        log_probs: [K + 1, 2], not the spike, then the spike.
        real: The law of a cell that is not the spike.
    """

    log_probs: NDArray[np.float64]
    real: RealPredictive


Predictive = CategoricalPredictive | RealPredictive | CountPredictive | SpikePredictive


class ViewPredictive(NamedTuple):
    """A view: columns that share one partition of the rows.

    Attributes:
        columns: The user's columns in this view, by their index in the schema.
        log_mass: [K + 1], the log probability of each cluster before any cell is known.
        predictives: One for each of `columns`.
        assignments: [N] int32, the cluster of each training row, in the user's order of rows.
    """

    columns: tuple[int, ...]
    log_mass: NDArray[np.float64]
    predictives: tuple[Predictive, ...]
    assignments: NDArray[np.int32]


class StatePredictive(NamedTuple):
    """One draw from the posterior: its views, and the log joint density of the draw."""

    views: tuple[ViewPredictive, ...]
    log_joint: float
