"""Broken twins of the Gibbs step on rows, as log weights for `tables.reseat`."""

import math
from collections.abc import Sequence

import numpy as np

from temperance.testing import tables


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
