"""The Pitman-Yor process: a law of partitions with a strength alpha and a discount d.

A customer who comes after n others at K tables of sizes n_k

    joins table k         with probability (n_k - d)     / (n + alpha)
    sits at a new table   with probability (alpha + d K) / (n + alpha),     0 <= d < 1, alpha > -d.

The order of arrival does not matter. A partition of n into sizes n_1 ... n_K has probability

    p = prod_{i=1}^{K-1} (alpha + i d) / prod_{i=1}^{n-1} (alpha + i) * prod_k (1 - d)_{n_k - 1},

with (x)_m = x (x + 1) ... (x + m - 1). With d = 0 it is the Dirichlet process.

**A draw in constant time a customer.** Point at one of the n + alpha units of mass. An earlier
customer is n of them: join their table, unless they founded it, in which case with probability d
sit at a new one. The remaining alpha is a new table too. So new tables get d K + alpha. Where alpha
is negative the pointer never leaves the n customers, and of the d K that say "new" the share
-alpha / (d K) is drawn again.

**The grid.** alpha is one of 16 log-spaced points, 0.05 to 10: at n rows a Dirichlet process has
about alpha log(1 + n / alpha) clusters, so this is from one cluster to a hundred at a million rows,
before any data. d is one of 6, from 0 to 0.25, for numbers of clusters that grow like n^d; for a
Dirichlet process it is 0 alone. A view of few columns says little about its rows and has about as
many clusters as the prior: wider grids fill it with clusters that cost time and explain nothing.
The pair is drawn jointly. Its log weights split into what belongs to alpha, to d and to the pair,
so a draw costs one log gamma for each cluster and d, and not for each pair.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from temperance.crosscat.compilation import compiled, inner
from temperance.crosscat.families.grid import FloatArray, draw_index, log_spaced

Sizes = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

DISCOUNTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)


class PitmanYorGrids(NamedTuple):
    """Where alpha and d may stand, every pair equally likely."""

    alpha: FloatArray
    discount: FloatArray


def grids(discounts: Sequence[float] = DISCOUNTS) -> PitmanYorGrids:
    """The grid of a Pitman-Yor process; with `discounts=(0.0,)`, of a Dirichlet process."""
    return PitmanYorGrids(log_spaced(0.05, 10.0, 16), np.array(discounts, dtype=np.float64))


@inner
def log_founding(num: int, alpha: float, d: float) -> float:
    """Log of (alpha + d) (alpha + 2 d) ... (alpha + (num - 1) d)."""
    if num < 2:
        return 0.0
    if d == 0.0:
        return (num - 1) * math.log(alpha)
    if num < 32:
        total = 0.0
        for i in range(1, num):
            total += math.log(alpha + i * d)
        return total
    return (num - 1) * math.log(d) + math.lgamma(alpha / d + num) - math.lgamma(alpha / d + 1.0)


@inner
def log_joining(sizes: Sizes, num: int, d: float) -> float:
    """Sum over the first `num` tables of log (1 - d) (2 - d) ... (size - 1 - d)."""
    total = 0.0
    shared = 0
    for k in range(num):
        if sizes[k] > 1:
            shared += 1
            total += math.lgamma(sizes[k] - d)
    return total - shared * math.lgamma(1.0 - d)


@inner
def log_arriving(n: int, alpha: float) -> float:
    """Log of (alpha + 1) (alpha + 2) ... (alpha + n - 1)."""
    if n < 2:
        return 0.0
    return math.lgamma(alpha + n) - math.lgamma(alpha + 1.0)


@compiled
def log_eppf(sizes: Sizes, num: int, alpha: float, d: float) -> float:
    """Log probability of a partition into `sizes[:num]`, all of them positive."""
    n = 0
    for k in range(num):
        n += sizes[k]
    return log_founding(num, alpha, d) - log_arriving(n, alpha) + log_joining(sizes, num, d)


@inner
def log_weights(sizes: Sizes, num: int, grids: PitmanYorGrids) -> FloatArray:
    """Log probability of the sizes at every pair of the grid, alpha by d."""
    n = 0
    for k in range(num):
        n += sizes[k]
    weights = np.empty((grids.alpha.size, grids.discount.size))
    for j in range(grids.discount.size):
        weights[:, j] = log_joining(sizes, num, grids.discount[j])
    for i in range(grids.alpha.size):
        arriving = log_arriving(n, grids.alpha[i])
        for j in range(grids.discount.size):
            weights[i, j] += log_founding(num, grids.alpha[i], grids.discount[j]) - arriving
    return weights


@compiled
def draw_hyper(
    sizes: Sizes, num: int, grids: PitmanYorGrids, rng: np.random.Generator
) -> tuple[float, float]:
    """(alpha, d) given a partition into `sizes[:num]`."""
    index = draw_index(log_weights(sizes, num, grids).ravel(), rng)
    i, j = divmod(index, grids.discount.size)
    return grids.alpha[i], grids.discount[j]


@compiled
def draw_prior(grids: PitmanYorGrids, rng: np.random.Generator) -> tuple[float, float]:
    """(alpha, d) before anything is seen."""
    i = int(rng.random() * grids.alpha.size)
    j = int(rng.random() * grids.discount.size)
    return grids.alpha[i], grids.discount[j]


@compiled
def draw_partition(n: int, alpha: float, d: float, rng: np.random.Generator) -> tuple[Labels, int]:
    """Labels of n customers, in order of the tables' founding, and the number of tables."""
    labels = np.empty(n, dtype=np.int32)
    founder = np.empty(n, dtype=np.int64)
    num = 0
    for i in range(n):
        label = num
        settled = i == 0
        while not settled:
            pointer = rng.random() * (i + max(alpha, 0.0))
            settled = True
            if pointer < i:
                other = int(pointer)
                label = labels[other]
                if founder[label] == other and rng.random() < d:
                    label = num
                    if alpha < 0.0:
                        settled = rng.random() * d * num >= -alpha
        labels[i] = label
        if label == num:
            founder[num] = i
            num += 1
    return labels, num
