"""Swaps of rungs with paper 1's slips, as matrices; enumeration rejects them."""

from collections.abc import Sequence

import numpy as np

from temperance.testing import enumeration
from temperance.testing.enumeration import Matrix, Table


def printed_parallel_sweep(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """Paper 1's Algorithm 1 as it stands: m = 1..M, compared with m-1, exchanged with m+1.

    The paper's m = 0 is the target, here the last rung; its m + 1 at m = M does not exist.
    """
    return printed_swaps(log_densities, [*kernels[:-1], np.eye(kernels[-1].shape[0])])


def printed_swaps(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """Every rung updated, but the ratio of (m, m-1) decides the exchange of (m, m+1)."""
    matrix = enumeration.explore(kernels)
    for pair in range(1, log_densities.shape[0] - 1):
        matrix = matrix @ enumeration.swap_pair(log_densities, pair, (pair, pair - 1))
    return matrix
