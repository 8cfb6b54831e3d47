"""Tables with the shape of the US Census of 1990: 68 categorical columns, several views, rare rows.

Columns are dealt into views. In view v a row has one of K_v clusters with mass m_vk, and given it the cells are
independent: cell c takes value x with probability p_ck(x). So the law of a row is known exactly,

    log p(row) = sum over v of log sum over k of m_vk prod over c in v of p_ck(x_c),

and a held-out score can be set beside the best that any model could have: the oracle's.

Masses are sticks of a Pitman-Yor process, largest first, and the last few clusters of a view have RARE each: rows that a small
subsample misses. p_ck is a Dirichlet draw about the column's own skewed mean, with a share NOISE of uniform mistakes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Values in each column, as many and as skewed as the published table's.
NUM_VALUES = (
    12, 12, 5, 5, 10, 6, 3, 3, 5, 2, 14, 10, 6, 6, 11, 5, 2, 3, 2, 2, 2, 2, 2, 13, 2, 3, 3, 5, 2, 13, 5, 3, 3, 9,
    2, 3, 7, 3, 4, 5, 6, 14, 3, 15, 9, 7, 2, 6, 14, 2, 7, 12, 4, 2, 2, 4, 4, 4, 7, 2, 3, 3, 3, 2, 18, 8, 3, 8,
)  # fmt: skip
# Views: their columns and their clusters.
SHAPE = ((20, 30), (14, 18), (10, 12), (8, 9), (6, 6), (5, 4), (3, 3), (2, 2))
ONE_VIEW = ((68, 30),)
CONCENTRATION, DISCOUNT = 5.0, 0.3
RARE, NUM_RARE, NOISE = 1e-4, 3, 1e-3
# Rows are drawn in blocks, each with its own stream: a short table is the beginning of a long one.
BLOCK = 1 << 16
SCORED_AT_ONCE = 1 << 13

Rows = NDArray[np.uint8]


@dataclass(frozen=True)
class View:
    """A mixture over some of the columns: `probs` has one matrix (clusters, values) for each of them."""

    columns: tuple[int, ...]
    mass: NDArray[np.float64]
    probs: tuple[NDArray[np.float64], ...]

    def log_prob(self, rows: Rows) -> NDArray[np.float64]:
        total = np.tile(np.log(self.mass), (len(rows), 1))
        for column, probs in zip(self.columns, self.probs, strict=True):
            total += np.log(probs).T[rows[:, column]]
        top = total.max(1)
        return top + np.log(np.exp(total - top[:, None]).sum(1))


@dataclass(frozen=True)
class Census:
    """The law that rows come from."""

    num_values: tuple[int, ...]
    views: tuple[View, ...]

    @property
    def names(self) -> list[str]:
        return [f"c{column:02d}" for column in range(len(self.num_values))]

    @property
    def kinds(self) -> dict[str, str]:
        return dict.fromkeys(self.names, "categorical")

    def draw(self, num_rows: int, seed: int) -> Rows:
        """Rows of the table that `seed` names, from its beginning."""
        return self._draw(num_rows, seed)[0]

    def draw_clusters(self, num_rows: int, seed: int) -> NDArray[np.int32]:
        """The clusters of the same rows, one column for each view."""
        return self._draw(num_rows, seed)[1]

    def log_prob(self, rows: Rows) -> NDArray[np.float64]:
        """The oracle: log p(row) of each row."""
        found = np.empty(len(rows))
        for start in range(0, len(rows), SCORED_AT_ONCE):
            block = rows[start : start + SCORED_AT_ONCE]
            found[start : start + len(block)] = sum(view.log_prob(block) for view in self.views)
        return found

    def _draw(self, num_rows: int, seed: int) -> tuple[Rows, NDArray[np.int32]]:
        rows = np.empty((num_rows, len(self.num_values)), np.uint8)
        clusters = np.empty((num_rows, len(self.views)), np.int32)
        for number, start in enumerate(range(0, num_rows, BLOCK)):
            rng = np.random.default_rng((seed, number))
            stop = min(num_rows, start + BLOCK)
            for v, view in enumerate(self.views):
                drawn = _invert(view.mass[None], np.zeros(BLOCK, np.int64), rng)
                clusters[start:stop, v] = drawn[: stop - start]
                for column, probs in zip(view.columns, view.probs, strict=True):
                    rows[start:stop, column] = _invert(probs, drawn, rng)[: stop - start]
        return rows, clusters


def census(
    seed: int,
    shape: Sequence[tuple[int, int]] = SHAPE,
    num_values: Sequence[int] = NUM_VALUES,
    num_rare: int = NUM_RARE,
) -> Census:
    """A census by seed, with views of `shape`: columns and clusters of each, to which `num_rare` rare ones come."""
    assert sum(columns for columns, _ in shape) == len(num_values)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(num_values))
    means = [_mean(size, rng) for size in num_values]
    views, taken = [], 0
    for num_columns, num_clusters in shape:
        columns = tuple(sorted(order[taken : taken + num_columns].tolist()))
        taken += num_columns
        mass = _sticks(num_clusters, num_rare, rng)
        views.append(View(columns, mass, tuple(_probs(means[c], len(mass), rng) for c in columns)))
    return Census(tuple(num_values), tuple(views))


def _sticks(num: int, num_rare: int, rng: np.random.Generator) -> NDArray[np.float64]:
    broken = rng.beta(1 - DISCOUNT, CONCENTRATION + DISCOUNT * np.arange(1, num + 1))
    left = np.cumprod(1 - broken)
    mass = np.sort(np.append(broken[:-1] * np.append(1.0, left[:-2]), left[-2] if num > 1 else 1))
    # Nothing but the rare ones is rarer than ten times those.
    mass = np.maximum(mass[::-1], 10 * RARE)
    return np.append(mass * (1 - num_rare * RARE) / mass.sum(), np.full(num_rare, RARE))


def _mean(num_values: int, rng: np.random.Generator) -> NDArray[np.float64]:
    mean = rng.dirichlet(np.full(num_values, 1.0)) + 0.02
    return mean / mean.sum()


def _probs(
    mean: NDArray[np.float64], num_clusters: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    # Few columns tell clusters sharply apart, many do so a little.
    precision = rng.choice([0.5, 1.5, 6.0], p=[0.4, 0.4, 0.2]) * len(mean) ** 0.5
    gammas = rng.gamma(np.tile(precision * mean, (num_clusters, 1))) + 1e-30
    return (1 - NOISE) * gammas / gammas.sum(1, keepdims=True) + NOISE / len(mean)


def _invert(
    probs: NDArray[np.float64], row: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A draw from `probs[row]` for each row: all the distribution functions, one after the other, are one search."""
    sums = np.cumsum(probs, axis=1)
    sums[:, -1] = 1.0
    ends = (np.arange(len(probs))[:, None] + np.minimum(sums, 1.0)).ravel()
    found = np.searchsorted(ends, row + rng.random(len(row)), side="right")
    num = probs.shape[1]
    return np.minimum(found - row * num, num - 1)
