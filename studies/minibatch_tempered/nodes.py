"""Many rows of one number as few weighted nodes.

Rows fall into bins of width h. Each bin becomes two nodes with weights whose sums of 1, x, x^2 and x^3
are those of its rows (Gauss's rule for two points): with mean m, standard deviation s and skewness g,

    x_+- = m + s (g +- r) / 2,   w_+- = count (1 -+ g / r) / 2,      r = sqrt(g^2 + 4).

A sum over rows of a smooth f is then the weighted sum over nodes up to n h^4 max|f''''| / 384 at most, a
bound in which h is small: 10^6 rows, h = 0.02 and |f''''| < 1 give 4e-4, and errors of bins cancel.
"""

import numpy as np


def nodes_of(rows: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights that stand for `rows`."""
    bins = np.floor(rows / width).astype(int)
    bins -= bins.min()
    count = np.bincount(bins).astype(float)
    kept = count > 0
    count = count[kept]
    mean = np.bincount(bins, rows)[kept] / count
    place = np.cumsum(kept)[bins] - 1
    away = rows - mean[place]
    second, third = (np.bincount(place, away**k) / count for k in (2, 3))
    spread = np.sqrt(second)
    # A bin of equal rows is one node twice.
    skew = np.divide(third, spread**3, out=np.zeros_like(third), where=spread > 1e-12 * width)
    root = np.sqrt(skew**2 + 4)
    nodes = mean + 0.5 * spread * np.stack([skew + root, skew - root])
    weights = 0.5 * count * np.stack([1 - skew / root, 1 + skew / root])
    return nodes.ravel(), weights.ravel()
