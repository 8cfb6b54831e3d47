"""Refreshes of the order of rows with one slip each, exactly; the tests reject them all."""

from collections.abc import Sequence
from itertools import product

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from temperance.samplers.parallel.refresh import exchange_log_ratios
from temperance.testing import refreshes, subsamples
from temperance.testing.enumeration import Matrix


def uniform_redraw(num_orders: int, num_points: int) -> Matrix:
    """A new order whatever the points are, as if the order were uniform under the joint law."""
    return np.kron(np.full((num_orders, num_orders), 1 / num_orders), np.eye(num_points))


def ratio_of_the_hottest_affected(
    at_first: Array, at_second: Array, sizes: tuple[int, ...], first: Array, second: Array
) -> Array:
    """Of all the rungs between the two positions only the first is asked."""
    size = jnp.asarray(sizes)[:, None]
    affected = (first[None, :] < size) & (size <= second[None, :])
    hottest = affected & (jnp.cumsum(affected, axis=0) == 1)
    return jnp.sum(jnp.where(hottest, at_second - at_first, 0.0), axis=0)


def ratio_of_shifted_rungs(
    at_first: Array, at_second: Array, sizes: tuple[int, ...], first: Array, second: Array
) -> Array:
    """Positions counted from 0 in a formula that counts from 1."""
    return exchange_log_ratios(at_first, at_second, sizes, first - 1, second - 1)


def ratio_upside_down(
    at_first: Array, at_second: Array, sizes: tuple[int, ...], first: Array, second: Array
) -> Array:
    """The row that leaves takes the place of the one that comes."""
    return exchange_log_ratios(at_second, at_first, sizes, first, second)


def ratio_at_the_targets_point(
    at_first: Array, at_second: Array, sizes: tuple[int, ...], first: Array, second: Array
) -> Array:
    """Every rung judges rows at the target's point instead of its own."""
    one, two = (jnp.broadcast_to(at[-1:], at.shape) for at in (at_first, at_second))
    return exchange_log_ratios(one, two, sizes, first, second)


def dependent_pairs_one_by_one(
    likelihood: subsamples.Likelihood, sizes: Sequence[int], pairs: refreshes.Pairs
) -> Matrix:
    """Pairs judged each for itself and all at once, where the rows are not independent."""
    num_rows = sizes[-1]
    orders = subsamples.all_orders(num_rows)
    tables = subsamples.ladder_tables(likelihood, orders, sizes)
    weights = np.array([refreshes._weights(table) for table in tables])
    entries = 0.0
    for pattern in product([True, False], repeat=len(pairs)):
        chance = np.ones_like(weights)
        for pair, accepted in zip(pairs, pattern, strict=True):
            there = [orders.index(refreshes.exchanged(order, [pair])) for order in orders]
            alone = np.exp(np.minimum(weights[there] - weights, 0.0))
            chance = chance * (alone if accepted else 1.0 - alone)
        done = [pair for pair, accepted in zip(pairs, pattern, strict=True) if accepted]
        entries = entries + refreshes._reordered(num_rows, done, chance)
    return refreshes._at_each_point(entries)
