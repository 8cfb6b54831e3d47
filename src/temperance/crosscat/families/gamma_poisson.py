"""Counts: each cluster is Poisson, its rate with a gamma prior of shape a and rate b.

A cluster with n values of sum s has

    p(values) = b^a / Gamma(a) * Gamma(a + s) / (b + n)^(a + s) * prod 1 / x!

and its next value is negative binomial, x with probability
Gamma(a + s + x) / (Gamma(a + s) x!) * ((b + n) / (b + n + 1))^(a + s) / (b + n + 1)^x.
The factorials are the data's alone, whatever the partition and the hyperparameters. `log_marginal`
leaves them out and `log_base` gives them. -1 is missing.

**The grid.** a is one of 25 log-spaced points from 10^-3 to 10^3, and b one of 33 from 10^-4 to
10^4 over the column's mean, both four to a decade: a / b, the rate expected of a cluster, runs
over every scale on which the data can lie. The pair is drawn jointly, because a and b go together.
With K clusters, L_j = sum_k log(b_j + n_k) and M_j = sum_k s_k log(b_j + n_k),

    log weight(i, j) = K a_i log b_j - K log Gamma(a_i) + sum_k log Gamma(a_i + s_k)
                       - a_i L_j - M_j,

so that a pair costs no more than its two points.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from temperance.crosscat.compilation import compiled, inner
from temperance.crosscat.families.grid import FloatArray, draw_index, log_spaced

IntArray = npt.NDArray[np.int64]

SHAPE, RATE = range(2)


class GammaPoissonGrids(NamedTuple):
    """Where the shape and the rate may stand."""

    shape: FloatArray
    rate: FloatArray


def grids(mean: float) -> GammaPoissonGrids:
    """The grids of a column with that mean; a mean of zero is taken as one in a thousand."""
    mean = max(mean, 1e-3)
    return GammaPoissonGrids(
        shape=log_spaced(1e-3, 1e3, 25), rate=log_spaced(1e-4 / mean, 1e4 / mean, 33)
    )


@compiled
def gather(
    cells: IntArray, place: int, labels: npt.NDArray[np.int32], rows: IntArray, num: int
) -> tuple[IntArray, IntArray]:
    """Number and sum, cluster by cluster, of column `place` in `rows`."""
    n = np.zeros(num, dtype=np.int64)
    s = np.zeros(num, dtype=np.int64)
    for i in range(rows.size):
        x = cells[rows[i], place]
        if x >= 0:
            n[labels[i]] += 1
            s[labels[i]] += x
    return n, s


@compiled
def log_base(cells: IntArray, place: int, rows: IntArray) -> float:
    """- sum of log x! over the values of column `place` in `rows`."""
    total = 0.0
    for row in rows:
        x = cells[row, place]
        if x > 1:
            total -= math.lgamma(x + 1.0)
    return total


@compiled
def log_marginal(n: IntArray, s: IntArray, num: int, hyper: FloatArray) -> float:
    """Log p(values | partition, hyper) of the first `num` clusters, less `log_base`."""
    shape, rate = hyper[0], hyper[1]
    prior = shape * math.log(rate) - math.lgamma(shape)
    total = 0.0
    for k in range(num):
        if n[k] > 0:
            total += prior + math.lgamma(shape + s[k]) - (shape + s[k]) * math.log(rate + n[k])
    return total


@inner
def log_weights(n: IntArray, s: IntArray, num: int, grids: GammaPoissonGrids) -> FloatArray:
    """Log weights of every pair of the grid, shape by rate."""
    filled = 0
    for k in range(num):
        filled += n[k] > 0
    weights = np.empty((grids.shape.size, grids.rate.size))
    for i in range(grids.shape.size):
        total = -filled * math.lgamma(grids.shape[i])
        for k in range(num):
            if n[k] > 0:
                total += math.lgamma(grids.shape[i] + s[k])
        weights[i] = total
    for j in range(grids.rate.size):
        sum_logs = -filled * math.log(grids.rate[j])
        sum_products = 0.0
        for k in range(num):
            if n[k] > 0:
                log_rate = math.log(grids.rate[j] + n[k])
                sum_logs += log_rate
                sum_products += s[k] * log_rate
        for i in range(grids.shape.size):
            weights[i, j] -= grids.shape[i] * sum_logs + sum_products
    return weights


@compiled
def draw_hyper(
    n: IntArray,
    s: IntArray,
    num: int,
    hyper: FloatArray,
    grids: GammaPoissonGrids,
    rng: np.random.Generator,
) -> None:
    """(shape, rate), in place, jointly from their conditional law."""
    i, j = divmod(draw_index(log_weights(n, s, num, grids).ravel(), rng), grids.rate.size)
    hyper[0] = grids.shape[i]
    hyper[1] = grids.rate[j]


@compiled
def draw_prior(hyper: FloatArray, grids: GammaPoissonGrids, rng: np.random.Generator) -> None:
    """Hyperparameters before anything is seen, in place."""
    hyper[0] = grids.shape[int(rng.random() * grids.shape.size)]
    hyper[1] = grids.rate[int(rng.random() * grids.rate.size)]
