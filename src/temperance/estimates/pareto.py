"""How heavy a tail is: the shape k of a generalised Pareto distribution fitted to it.

The mean of ratios whose largest values follow a tail of shape k has a variance for k < 1/2, and is
reliable in practice for k < 0.7 (Vehtari, Simpson, Gelman, Yao and Gabry 2024). The fit is that of
Zhang and Stephens (2009): a posterior mean over the one parameter b of the profile likelihood, with
k = mean log(1 - b x), and the weak prior of Vehtari et al., which is worth ten values at one half.
"""

import numpy as np
import numpy.typing as npt

# Values in the tail: a fifth of all, or three roots of their number.
SHARE, ROOTS, FEWEST = 0.2, 3.0, 5


def tail_shape(log_values: npt.ArrayLike) -> float:
    """The shape k of the upper tail of exp(`log_values`); NaN with fewer than 25 of them."""
    logs = np.sort(np.asarray(log_values, float)[np.isfinite(log_values)])
    n = len(logs)
    size = int(min(SHARE * n, ROOTS * np.sqrt(n)))
    if size < FEWEST:
        return float("nan")
    tail = np.exp(logs[-size:] - logs[-1]) - np.exp(logs[-size - 1] - logs[-1])
    if tail[-1] <= 0:
        return -float("inf")
    return _shape(tail)


def _shape(x: np.ndarray) -> float:
    n = len(x)
    count = 30 + int(np.sqrt(n))
    quarter = max(x[int(n / 4 + 0.5) - 1], np.finfo(float).tiny)
    b = 1 - np.sqrt(count / (np.arange(1, count + 1) - 0.5))
    b = b / (3 * quarter) + 1 / x[-1]
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    likelihood = n * (np.log(-b / k) - k - 1)
    weights = 1 / np.exp(likelihood - likelihood[:, None]).sum(axis=1)
    keep = weights >= 10 * np.finfo(float).eps
    mean = np.sum(b[keep] * weights[keep]) / weights[keep].sum()
    shape = np.log1p(-mean * x).mean()
    return float((shape * n + 5) / (n + 10))
