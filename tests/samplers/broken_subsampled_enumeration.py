"""Tempered transitions on subsamples with one slip each, as matrices; tests reject them.

Algorithm 1 of paper 1 as it stands is in `tests/samplers/parallel/broken_swaps.py`; like
Algorithm 2, which is here, it is wrong on any ladder.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from temperance.testing import enumeration
from temperance.testing.enumeration import Matrix, Table


def printed_transition(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """Paper 1's order of kernels on the way down, with the product of the ratios."""
    return enumeration.transition(log_densities, list(kernels[-2::-1]), list(kernels[1:]))


def printed_transition_with_sum(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """The printed order, and the ratios added as printed."""
    return enumeration.transition(
        log_densities, list(kernels[-2::-1]), list(kernels[1:]), sum_of_ratios
    )


def transition_with_sum(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """The right order, with the ratios added as printed."""
    hotter = list(kernels[:-1])
    return enumeration.transition(log_densities, hotter[::-1], hotter, sum_of_ratios)


def sum_of_ratios(log_ratios: list[np.ndarray]) -> np.ndarray:
    """min(1, sum rho), where a product is meant."""
    return np.minimum(1.0, np.sum(np.broadcast_arrays(*map(np.exp, log_ratios)), axis=0))


def scan_not_reversed(table: Table, kernels: Sequence[Matrix]) -> Matrix:
    """Moves that are not reversible, run down in the order they were run up."""
    return enumeration.tempered_transition(table, kernels)


def scan_reversed_around_one_top(table: Table, kernels: Sequence[Matrix]) -> Matrix:
    """Reversed on the way down, but one move at the top has no way down to be reversed on."""
    back = [
        enumeration.reversal(kernel, enumeration.normalised(row))
        for kernel, row in zip(kernels, table, strict=True)
    ]
    descend = [np.eye(table.shape[1]), *back[1:-1]]
    return enumeration.transition(table, list(kernels[-2::-1]), descend)


def rows_redrawn_at_the_top(
    tables: np.ndarray, kernel: Callable[[np.ndarray], Matrix] = enumeration.cycle_metropolis
) -> Matrix:
    """Climbs through one family of subsamples and comes down through another."""
    steps = tables.shape[1] - 1
    moves = [[kernel(row) for row in table[:-1]] for table in tables]

    def one(up: int, down: int) -> Matrix:
        kept: list[np.ndarray] = []

        def keep(log_ratios: list[np.ndarray]) -> np.ndarray:
            kept.extend(log_ratios)
            return enumeration.product_of_ratios(log_ratios)

        climb, descend = moves[up][::-1], moves[down]
        enumeration.transition(tables[down], climb, descend, keep)
        return enumeration.transition(
            tables[up], climb, descend,
            lambda ratios: enumeration.product_of_ratios(ratios[:steps] + kept[steps:]),
        )  # fmt: skip

    return np.mean([one(*both) for both in product(range(len(tables)), repeat=2)], axis=0)
