"""Cross-categorization with one slip each; the tests reject them all."""

import math
from collections.abc import Sequence

import numpy as np

from temperance.crosscat import columns
from temperance.crosscat.partition import Partition
from temperance.testing import tables

# Rows: the log weights of a Gibbs step


def rows_without_discount(table: Sequence[tables.Column], seating: tables.Seating):
    """Joins a cluster with its size, and founds one with alpha + d K."""

    def log_weights(labels: tables.Labels, row: int) -> list[float]:
        others = tables.in_order(labels[:row] + labels[row + 1 :])
        sizes = np.bincount(others)
        masses = [*sizes, seating.alpha + seating.d * sizes.size]
        return [math.log(mass) + _log_table(others, row, k, table) for k, mass in enumerate(masses)]

    return log_weights


def rows_with_empty_mass_of_one_table(table: Sequence[tables.Column], seating: tables.Seating):
    """Founds a cluster with mass alpha, whatever d."""

    def log_weights(labels: tables.Labels, row: int) -> list[float]:
        others = tables.in_order(labels[:row] + labels[row + 1 :])
        masses = [*(np.bincount(others) - seating.d), seating.alpha]
        return [math.log(mass) + _log_table(others, row, k, table) for k, mass in enumerate(masses)]

    return log_weights


def _log_table(others: tables.Labels, row: int, k: int, table: Sequence[tables.Column]) -> float:
    labels = (*others[:row], k, *others[row:])
    return sum(tables.log_cells(column, labels) for column in table)


# Columns: what Algorithm 8 is made of


def own_partition_forgotten(column, view_of_column, partitions, fresh) -> columns.Places:
    """The places of a column that is alone, all of them fresh."""
    return columns.find_proposals(column, view_of_column)._replace(auxiliary=tuple(fresh))


def all_fresh(column, view_of_column, num_auxiliary) -> int:
    return num_auxiliary


def mass_not_shared(sizes, num_auxiliary, alpha, d) -> np.ndarray:
    """Every auxiliary view with the whole of alpha + d K."""
    weights = columns.log_prior_weights(sizes, num_auxiliary, alpha, d)
    weights[len(sizes) :] += math.log(num_auxiliary)
    return weights


def column_discount_dropped(sizes, num_auxiliary, alpha, d) -> np.ndarray:
    return columns.log_prior_weights(sizes, num_auxiliary, alpha, 0.0)


def always_accepted(column, view_of_column, partitions, places, choice, log_marginal) -> float:
    return 0.0


def proposed_from_sizes(sizes, num_auxiliary, alpha, d) -> np.ndarray:
    """A Metropolis proposal that forgets what is left of a view when the column is out."""
    return columns.log_prior_weights([size + 1 for size in sizes], num_auxiliary, alpha, d)


# Hyperparameters


def exposure_of_one_row_more(total_weight: float, count: int) -> tuple[float, float]:
    """Beta(A + 1, n) in place of Beta(A, n)."""
    return total_weight + 1.0, float(count)


def all_at_once(conditionals: Sequence[np.ndarray]) -> np.ndarray:
    """Every coordinate drawn given the others as they were before the sweep."""
    return np.prod(conditionals, axis=0)


def partition_without_discount(n: int, alpha: float, d: float, rng: np.random.Generator):
    """Points at a customer and joins their table, founder or not."""
    labels: list[int] = []
    for i in range(n):
        pointer = rng.random() * (i + alpha)
        labels.append(labels[int(pointer)] if pointer < i else max(labels, default=-1) + 1)
    return np.array(labels, dtype=np.int32), max(labels) + 1


def moved_aside(partition: Partition) -> Partition:
    """An equal partition that is not the same object."""
    return Partition(partition.labels, partition.num, partition.alpha, partition.d)
