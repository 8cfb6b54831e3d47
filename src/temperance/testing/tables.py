"""Mixtures and cross-categorizations of tiny tables, scored one cell at a time, all states listed.

A second way to every number that `temperance.crosscat` computes, and on purpose the plain one: in
float64, from the values themselves, with no sufficient statistics and none of its formulas. The
cells of a column in one cluster come one after the other, each with its predictive density

    category    (a_x + times x was seen) / (A + n)
    real        Student's t of the posterior, whose sums are sums over the values seen
    count       negative binomial(a + sum, (b + n) / (b + n + 1))

and the rows of a partition take their seats one after the other by the Pitman-Yor predictive. By
exchangeability any order gives the same product. None and NaN are missing cells.

A partition is a tuple of labels in order of appearance, (0, 1, 0, 2): there are 1, 2, 5, 15, 52 and
203 of 1 ... 6 things. A state of a cross-categorization is the partition of the columns into views
with a partition of the rows for each view, and there are 205 of three columns on three rows.
"""

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
from scipy import special, stats

from temperance.testing.enumeration import Law, Matrix, normalised

Labels = tuple[int, ...]
Number = int | float
Value = Number | None
State = TypeVar("State", bound=Hashable)
CrossState = tuple[Labels, tuple[Labels, ...]]


@dataclass(frozen=True)
class Seating:
    """A Pitman-Yor law of partitions."""

    alpha: Number
    d: Number = 0


@dataclass(frozen=True)
class Categories:
    """A column of codes, with the Dirichlet weight of each."""

    values: tuple[Value, ...]
    weights: tuple[float, ...]

    def log_predictive(self, x: Number, seen: Sequence[Number]) -> float:
        mass = self.weights[int(x)] + sum(1 for other in seen if other == x)
        return math.log(mass / (sum(self.weights) + len(seen)))


@dataclass(frozen=True)
class Reals:
    """A column of real numbers, normal with a normal-inverse-chi-squared prior."""

    values: tuple[Value, ...]
    mu: float
    kappa: float
    nu: float
    sigma2: float

    def log_predictive(self, x: Number, seen: Sequence[Number]) -> float:
        past = np.array(seen, dtype=np.float64)
        kappa, nu = self.kappa + past.size, self.nu + past.size
        mu = (self.kappa * self.mu + past.sum()) / kappa
        # The prior as kappa values at mu, so that the squares are about one centre.
        squares = np.sum((past - mu) ** 2) + self.kappa * (self.mu - mu) ** 2
        variance = (self.nu * self.sigma2 + squares) / nu
        return float(stats.t.logpdf(x, nu, loc=mu, scale=math.sqrt(variance * (1 + 1 / kappa))))


@dataclass(frozen=True)
class Counts:
    """A column of counts, Poisson with a gamma prior of that shape and rate."""

    values: tuple[Value, ...]
    shape: float
    rate: float

    def log_predictive(self, x: Number, seen: Sequence[Number]) -> float:
        rate = self.rate + len(seen)
        total = self.shape + sum(seen)
        return float(stats.nbinom.logpmf(x, total, rate / (rate + 1.0)))


@dataclass(frozen=True)
class Joined:
    """Several columns that move together, as the two halves of a spike column do."""

    parts: tuple[Categories | Reals | Counts, ...]


Column = Categories | Reals | Counts | Joined


def log_cells(column: Column, labels: Labels) -> float:
    """Log p(column | row partition): the predictives of its cells one after the other."""
    return log_cells_in(tuple(range(len(labels))), column, in_order(labels))


@functools.lru_cache(maxsize=100_000)
def log_cells_in(order: tuple[int, ...], column: Column, labels: Labels) -> float:
    """The same with the rows in any order, which changes nothing."""
    if isinstance(column, Joined):
        return sum(log_cells_in(order, part, labels) for part in column.parts)
    seen: dict[int, list[Number]] = {}
    total = 0.0
    for row in order:
        x = column.values[row]
        if x is not None and not math.isnan(x):
            before = seen.setdefault(labels[row], [])
            total += column.log_predictive(x, before)
            before.append(x)
    return total


def log_seating(labels: Labels, seating: Seating) -> float:
    """Log probability of a partition: its members take their seats one after the other."""
    sizes: dict[int, int] = {}
    total = 0.0
    for n, label in enumerate(labels):
        if n > 0:
            new = label not in sizes
            mass = seating.alpha + seating.d * len(sizes) if new else sizes[label] - seating.d
            total += math.log(mass / (n + seating.alpha))
        sizes[label] = sizes.get(label, 0) + 1
    return total


def log_mixture(labels: Labels, columns: Sequence[Column], seating: Seating) -> float:
    """Log p(row partition, table) of a mixture."""
    return log_seating(labels, seating) + sum(log_cells(column, labels) for column in columns)


def log_crosscat(
    state: CrossState,
    columns: Sequence[Column],
    column_seating: Seating,
    row_seating: Seating,
) -> float:
    """Log p(column partition, row partition of each view, table)."""
    views, rows = state
    return (
        log_seating(views, column_seating)
        + sum(log_seating(labels, row_seating) for labels in rows)
        + sum(log_cells(columns[c], rows[view]) for c, view in enumerate(views))
    )


def partitions(n: int) -> list[Labels]:
    """Every partition of n things, labels in order of appearance."""

    def longer(labels: Labels, num: int) -> Iterator[Labels]:
        if len(labels) == n:
            yield labels
            return
        for label in range(num + 1):
            yield from longer((*labels, label), max(num, label + 1))

    return list(longer((), 0))


def crosscat_states(num_rows: int, num_columns: int) -> list[CrossState]:
    """Every column partition with every choice of a row partition for each of its views."""
    rows = partitions(num_rows)
    return [
        (views, choice)
        for views in partitions(num_columns)
        for choice in product(rows, repeat=max(views) + 1)
    ]


def in_order(labels: Iterable[int]) -> Labels:
    """The same partition with its labels in order of appearance."""
    names: dict[int, int] = {}
    return tuple(names.setdefault(int(label), len(names)) for label in labels)


def crosscat_in_order(views: Sequence[int], rows: Sequence[Iterable[int]]) -> CrossState:
    """The same state with its views, and the rows' labels in each, in order of appearance."""
    first = list(dict.fromkeys(int(view) for view in views))
    return in_order(views), tuple(in_order(rows[view]) for view in first)


def law(states: Sequence[State], log_joint: Callable[[State], float]) -> Law:
    """The posterior probability of every state."""
    return normalised(np.array([log_joint(state) for state in states]))


def transitions(
    states: Sequence[State], step: Callable[[State], Iterable[tuple[State, float]]]
) -> Matrix:
    """The matrix of a kernel that names, for a state, where it goes and with what probability."""
    index = {state: i for i, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for i, state in enumerate(states):
        for other, probability in step(state):
            matrix[i, index[other]] += probability
    off = np.abs(matrix.sum(axis=1) - 1.0).max()
    if not off < 1e-9:
        raise ValueError(f"the probabilities of a step sum to one; some are off by {off:.1e}")
    return matrix


def reseat(
    labels: Labels, row: int, log_weights: Callable[[Labels, int], Sequence[float]]
) -> list[tuple[Labels, float]]:
    """Where a Gibbs step puts one row, and with what probability.

    `log_weights(labels, row)` are the log weights of the clusters that are there without the row,
    numbered in order of appearance among the other rows, and last of a cluster of its own.
    """
    others = in_order(labels[:row] + labels[row + 1 :])
    weights = np.asarray(log_weights(labels, row), dtype=np.float64)
    if weights.shape != (max(others, default=-1) + 2,):
        raise ValueError(f"{labels} less row {row} has {weights.size} weights: one too many or few")
    probabilities = np.exp(weights - special.logsumexp(weights))
    return [
        (in_order((*others[:row], k, *others[row:])), float(p)) for k, p in enumerate(probabilities)
    ]


def mixture_gibbs(columns: Sequence[Column], seating: Seating) -> Callable[..., list[float]]:
    """Log weights of the collapsed Gibbs step by this module's own scores, for `reseat`."""

    def log_weights(labels: Labels, row: int) -> list[float]:
        others = in_order(labels[:row] + labels[row + 1 :])
        return [
            log_mixture((*others[:row], k, *others[row:]), columns, seating)
            for k in range(max(others, default=-1) + 2)
        ]

    return log_weights
