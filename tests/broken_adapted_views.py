"""Broken twins of steps that found views on adapted partitions."""

import numpy as np

from temperance.crosscat import adapted_views


def weigh_by_the_marginal(log_weight: float, log_marginal: float) -> float:
    """The partition that a block was seated by scores as if it had been there before."""
    return log_marginal


def let_any_view_be_joined(block, inside, view_of_column):
    """Views with other columns of the set can be joined, and not be left again."""
    return adapted_views.open_views(block, np.zeros_like(inside), view_of_column)


def count_the_block_once(num, sizes, num_views, alpha, d):
    """A block has the prior weight of one column."""
    return adapted_views.log_block_weights(1, sizes, num_views, alpha, d)
