"""Broken twins of draws of partitions and of moves of columns, each in place of a function."""

import math

import numpy as np

from temperance.crosscat.partitions import auxiliary_pool, column_moves


def partition_without_discount(n: int, alpha: float, d: float, rng: np.random.Generator):
    """Points at a customer and joins their table, founder or not."""
    labels: list[int] = []
    for i in range(n):
        pointer = rng.random() * (i + alpha)
        labels.append(labels[int(pointer)] if pointer < i else max(labels, default=-1) + 1)
    return np.array(labels, dtype=np.int32), max(labels) + 1


_log_prior_weights = column_moves.log_prior_weights


def own_partition_forgotten(column, view_of_column, partitions, fresh) -> column_moves.Places:
    """The places of a column that is alone, all of them fresh."""
    return column_moves.find_proposals(column, view_of_column)._replace(auxiliary=tuple(fresh))


def all_fresh(column, view_of_column, num_auxiliary) -> int:
    return num_auxiliary


def mass_not_shared(sizes, num_auxiliary, alpha, d) -> np.ndarray:
    """Every auxiliary view with the whole of alpha + d K."""
    weights = _log_prior_weights(sizes, num_auxiliary, alpha, d)
    weights[len(sizes) :] += math.log(num_auxiliary)
    return weights


def column_discount_dropped(sizes, num_auxiliary, alpha, d) -> np.ndarray:
    return _log_prior_weights(sizes, num_auxiliary, alpha, 0.0)


def always_accepted(column, view_of_column, partitions, places, choice, log_marginal) -> float:
    return 0.0


def proposed_from_sizes(sizes, num_auxiliary, alpha, d) -> np.ndarray:
    """A Metropolis proposal that forgets what is left of a view when the column is out."""
    return _log_prior_weights([size + 1 for size in sizes], num_auxiliary, alpha, d)


_update_pool = auxiliary_pool.update_pool


def founded_slot_not_renewed(pool, places, slot, choice, fresh):
    """The partition that a view was founded on stays in the pool as well."""
    if slot == auxiliary_pool.NO_SLOT:
        return list(pool)
    return _update_pool(pool, places, slot, choice, fresh)


def own_partition_not_kept(pool, places, slot, choice, fresh):
    """What stood aside comes back, and the partition that a lone column leaves is lost."""
    if slot != auxiliary_pool.NO_SLOT:
        return list(pool)
    return _update_pool(pool, places, slot, choice, fresh)
