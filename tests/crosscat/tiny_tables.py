"""Tables of three to five rows with every family and missing cells, as both sides read them."""

import numpy as np

from temperance.crosscat.families import dirichlet, gamma_poisson, normal
from temperance.crosscat.partitions import column_marginals
from temperance.crosscat.partitions.partition import Partition
from temperance.testing import tables

# The values of each column, its hyperparameters, and None where a cell is missing.
CATEGORIES = tables.Categories((0, 1, None, 0, 2), (0.4, 1.5, 0.7, 0.2))
BOOLEANS = tables.Categories((1, 1, 0, None, 0), (0.3, 0.9, 0.0))
REALS = tables.Reals((-0.4, None, 1.3, 1.1, -0.2), 0.3, 0.5, 1.5, 0.4)
COUNTS = tables.Counts((0, 7, 1, None, 5), 0.8, 0.25)
SPIKE = tables.Joined(
    (
        tables.Categories((0, 1, 0, 1, 0), (0.5, 0.6, 0.0)),
        tables.Reals((0.9, None, -0.7, None, 0.8), 0.0, 0.2, 3.0, 0.3),
    )
)
ALL = (CATEGORIES, BOOLEANS, REALS, COUNTS, SPIKE)


def first_rows(column: tables.Column, num: int) -> tables.Column:
    """The column on its first rows."""
    if isinstance(column, tables.Joined):
        return tables.Joined(tuple(first_rows(part, num) for part in column.parts))
    kept = {**vars(column), "values": column.values[:num]}
    return type(column)(**kept)


def compiled_log_marginal(column: tables.Column, labels: np.ndarray, num: int) -> float:
    """The same number by the package's sufficient statistics, all rows present."""
    if isinstance(column, tables.Joined):
        return sum(compiled_log_marginal(part, labels, num) for part in column.parts)
    labels = np.asarray(labels, dtype=np.int32)
    rows = np.arange(labels.size)
    if isinstance(column, tables.Categories):
        num_values = len(column.weights) - 1
        codes = [num_values + 1 if x is None else x for x in column.values[: labels.size]]
        cells = np.array(codes, dtype=np.uint8)[:, None]
        start = np.zeros(1, np.int64)
        counts = column_marginals.gather_all(cells, start, labels, rows, num_values + 2, num)
        return dirichlet.log_marginal(counts[:-1], num, np.array(column.weights))
    if isinstance(column, tables.Reals):
        values = [np.nan if x is None else x for x in column.values[: labels.size]]
        stats = normal.gather(np.array(values)[:, None], 0, labels, rows, num)
        hyper = np.array([column.mu, column.kappa, column.nu, column.sigma2])
        return normal.log_marginal(*stats, num, hyper)
    values = [-1 if x is None else x for x in column.values[: labels.size]]
    cells = np.array(values, dtype=np.int64)[:, None]
    stats = gamma_poisson.gather(cells, 0, labels, rows, num)
    hyper = np.array([column.shape, column.rate])
    base = gamma_poisson.log_base(cells, 0, rows)
    return gamma_poisson.log_marginal(*stats, num, hyper) + base


def as_partition(labels: tables.Labels, alpha: float = 1.0, d: float = 0.0) -> Partition:
    return Partition(np.array(labels, dtype=np.int32), max(labels) + 1, alpha, d)
