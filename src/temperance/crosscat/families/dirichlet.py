"""Categories: each cluster has probabilities of its own, with a Dirichlet prior they share.

A feature with V known values has V + 1 slots: the known ones, and one for a value never seen.
Slot v has weight a_v, A is their sum. With c_vk rows of value v in cluster k, n_k = sum_v c_vk,

    p(values | partition) = prod_k Gamma(A) / Gamma(A + n_k) prod_v Gamma(a_v + c_vk) / Gamma(a_v)
    p(next is v | cluster k) = (a_v + c_vk) / (A + n_k).

A boolean, or the question "is it the spike?", can have no third value: its last slot has weight 0.

**The grid.** A weight stands on one of 49 log-spaced points from 10^-3 / V to 10^3 / V, eight to a
decade, each equally likely. The least makes a cluster all but pure after one row; the greatest
holds the clusters to one common distribution until each has a thousand rows. It is divided by V
because many weights that are free to be large would fix their sum: with 10^5 values and weights up
to 10^3, no data would ever outweigh the 10^6 of A. log Gamma(g + c) - log Gamma(g) is tabulated for
small counts c.

**All weights at once.** The weights meet only in A. By the integral of a Beta density,

    Gamma(A) / Gamma(A + n_k) ~ integral of eta^(A - 1) (1 - eta)^(n_k - 1) d eta,

so with eta_k ~ Beta(A, n_k) drawn for each cluster, and t = - sum_k log eta_k, the weights become
independent of each other:

    p(a_v = g | t, counts) ~ exp(-g t) prod_k Gamma(g + c_vk) / Gamma(g).

Drawing eta and then every weight is a Gibbs sweep on (a, eta) and leaves p(a | counts) invariant.
Only cells that are not zero cost anything, and slots without any row share one law; so a feature of
10^5 values is swept whole. For small A a Beta variable is below the least number there is: log eta
is drawn, as log X - log(X + Y) with gamma variables X and Y, and log X as log X' + log(U) / A with
X' of shape A + 1.

**All weights up or down.** Where a feature says little of the clusters its weights are large, and
their ratios are held tightly: no weight can change its grid point alone. So the weights of all
slots that have rows are then shifted by the same number of points. Every shift that keeps them on
the grid is weighed, the present one among them, and one is drawn. The shifts of one state are those
of any other it can be shifted to, so this is a Gibbs step too.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from temperance.crosscat.compilation import compiled, inner
from temperance.crosscat.families.grid import FloatArray, draw_index, log_spaced

Counts = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8] | npt.NDArray[np.int32]

_TABLED_COUNTS = 1024


class DirichletGrids(NamedTuple):
    """Where a weight may stand; `rising[c, i]` is log Gamma(g_i + c) - log Gamma(g_i)."""

    weight: FloatArray
    rising: FloatArray


@functools.lru_cache(maxsize=256)
def grids(num_values: int) -> DirichletGrids:
    """The grid of a categorical feature with that many known values."""
    from scipy.special import gammaln

    weight = log_spaced(1e-3 / num_values, 1e3 / num_values, 49)
    counts = np.arange(_TABLED_COUNTS, dtype=np.float64)
    rising = gammaln(weight[None, :] + counts[:, None]) - gammaln(weight)[None, :]
    return DirichletGrids(weight, np.ascontiguousarray(rising))


@inner
def totals(counts: Counts, num: int) -> npt.NDArray[np.int64]:
    """Rows in each of the first `num` clusters that have a value."""
    total = np.zeros(num, dtype=np.int64)
    for v in range(counts.shape[0]):
        for k in range(num):
            total[k] += counts[v, k]
    return total


@compiled
def log_marginal(counts: Counts, num: int, weights: FloatArray) -> float:
    """Log p(values | partition, weights) of `counts[:, :num]`."""
    total_weight = 0.0
    for v in range(weights.size):
        total_weight += weights[v]
    total = 0.0
    filled = 0
    for count in totals(counts, num):
        if count > 0:
            filled += 1
            total -= math.lgamma(total_weight + count)
    total += filled * math.lgamma(total_weight)
    for v in range(weights.size):
        if weights[v] > 0.0:
            filled = 0
            for k in range(num):
                if counts[v, k] > 0:
                    filled += 1
                    total += math.lgamma(weights[v] + counts[v, k])
            total -= filled * math.lgamma(weights[v])
        else:
            for k in range(num):
                if counts[v, k] > 0:
                    return -math.inf
    return total


@inner
def draw_exposure(
    row_totals: npt.NDArray[np.int64], total_weight: float, rng: np.random.Generator
) -> float:
    """The t = - sum_k log eta_k with eta_k ~ Beta(total_weight, row_totals[k])."""
    exposure = 0.0
    for count in row_totals:
        if count > 0:
            log_x = math.log(rng.standard_gamma(total_weight + 1.0))
            log_x += math.log1p(-rng.random()) / total_weight
            log_y = math.log(rng.standard_gamma(float(count)))
            high = max(log_x, log_y)
            exposure += high - log_x + math.log1p(math.exp(-abs(log_x - log_y)))
    return exposure


@inner
def log_rising(
    counts: Counts, num: int, slot: int, grids: DirichletGrids, total: FloatArray
) -> None:
    """Adds log Gamma(g + c) - log Gamma(g), summed over clusters, to `total` of grid point g."""
    large = 0
    for k in range(num):
        count = counts[slot, k]
        if count >= grids.rising.shape[0]:
            large += 1
            for i in range(total.size):
                total[i] += math.lgamma(grids.weight[i] + count)
        elif count > 0:
            for i in range(total.size):
                total[i] += grids.rising[count, i]
    if large > 0:
        for i in range(total.size):
            total[i] -= large * math.lgamma(grids.weight[i])


@inner
def log_shift_weights(
    rising: FloatArray,
    points: npt.NDArray[np.int64],
    other_weight: float,
    row_totals: npt.NDArray[np.int64],
    grids: DirichletGrids,
) -> tuple[int, FloatArray]:
    """The lowest shift, and log weights of it and all above, of slots that stand at `points`.

    `rising` is `log_rising` of each of them, and `other_weight` the sum of all other weights.
    """
    least, most = points[0], points[0]
    for point in points:
        least, most = min(least, point), max(most, point)
    lowest = -least
    weights = np.zeros(grids.weight.size - most + least)
    for s in range(weights.size):
        total_weight = other_weight
        for v in range(points.size):
            point = points[v] + lowest + s
            total_weight += grids.weight[point]
            weights[s] += rising[v, point]
        filled = 0
        for count in row_totals:
            if count > 0:
                filled += 1
                weights[s] -= math.lgamma(total_weight + count)
        weights[s] += filled * math.lgamma(total_weight)
    return lowest, weights


@compiled
def draw_hyper(
    counts: Counts,
    num: int,
    weights: FloatArray,
    unseen: bool,
    grids: DirichletGrids,
    rng: np.random.Generator,
) -> None:
    """One sweep of `weights`, in place, given `counts[:, :num]`."""
    row_totals = totals(counts, num)
    total_weight = 0.0
    for weight in weights:
        total_weight += weight
    exposure = draw_exposure(row_totals, total_weight, rng)
    # The law of a slot without rows, summed up.
    num_points, total = grids.weight.size, 0.0
    alone = np.empty(num_points)
    for i in range(num_points):
        total += math.exp(-exposure * (grids.weight[i] - grids.weight[0]))
        alone[i] = total
    filled = np.empty(weights.size, dtype=np.int64)
    num_filled = 0
    other_weight = 0.0
    for v in range(weights.size - (not unseen)):
        num_rows = 0
        for k in range(num):
            num_rows += counts[v, k]
        if num_rows > 0:
            filled[num_filled] = v
            num_filled += 1
        else:
            pointer, i = rng.random() * total, 0
            while i < num_points - 1 and alone[i] <= pointer:
                i += 1
            weights[v] = grids.weight[i]
            other_weight += weights[v]
    if not unseen:
        weights[-1] = 0.0
    if num_filled == 0:
        return
    points = np.empty(num_filled, dtype=np.int64)
    rising = np.zeros((num_filled, num_points))
    here = np.empty(num_points)
    for j in range(num_filled):
        log_rising(counts, num, filled[j], grids, rising[j])
        for i in range(num_points):
            here[i] = rising[j, i] - exposure * grids.weight[i]
        points[j] = draw_index(here, rng)
    lowest, shifts = log_shift_weights(rising, points, other_weight, row_totals, grids)
    shift = lowest + draw_index(shifts, rng)
    for j in range(num_filled):
        weights[filled[j]] = grids.weight[points[j] + shift]


@compiled
def draw_prior(
    weights: FloatArray, unseen: bool, grids: DirichletGrids, rng: np.random.Generator
) -> None:
    """Weights before anything is seen, in place."""
    for v in range(weights.size):
        weights[v] = grids.weight[int(rng.random() * grids.weight.size)]
    if not unseen:
        weights[-1] = 0.0
