"""Refreshing the subsamples of parallel tempering, exactly, on the space of points and orders.

A state is an order of the rows and a point at each rung, (sigma, x_0, ..., x_{K-1}), and its law

    f(sigma, x)  proportional to  prod_k pi_k(x_k; sigma),

without a normalising constant for each sigma: those are what a uniform redraw would need. States
are numbered with the order slowest and the target's point fastest. Matrices on this space:

    within              moves and swaps of the points, given the order
    exchange            disjoint pairs of positions, each accepted or refused for itself, which is
                        right where rows are independent
    exchange_together   the same pairs in one step that is accepted or refused as a whole, which is
                        right for any likelihood

Both leave f invariant for each choice of pairs, so the choice may be random if it looks at nothing:
`level_pairs` of one rung, `every_pair`, or `pairings` of all positions. The ratio of `exchange` is
`temperance.samplers.parallel.refresh.exchange_log_ratios`, the one that the sampler uses.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from temperance.samplers.parallel.refresh import exchange_log_ratios
from temperance.testing.enumeration import JointLaw, JointMatrix, Law, Table, acceptance
from temperance.testing.subsamples import Likelihood, Order, Terms, all_orders, ladder_table

Pair = tuple[int, int]
Pairs = Sequence[Pair]
Tables = Float[np.ndarray, "orders rungs n"]
LogRatios = Callable[..., jax.Array]


def extended_law(tables: Tables) -> JointLaw:
    """f, for the ladder tables of all orders."""
    weights = np.array([_weights(table) for table in tables])
    law = np.exp(weights - weights.max())
    return (law / law.sum()).reshape(-1)


def target_marginal(law: JointLaw, num_states: int) -> Law:
    """The law of the target's point alone."""
    return law.reshape(-1, num_states).sum(axis=0)


def order_marginal(law: JointLaw, num_orders: int) -> Law:
    """The law of the order alone."""
    return law.reshape(num_orders, -1).sum(axis=1)


def within(tables: Tables, build: Callable[[Table], JointMatrix]) -> JointMatrix:
    """`build(table)` on the points of the rungs, under each order for itself."""
    num_orders, num_rungs, n = tables.shape
    block = n**num_rungs
    matrix = np.zeros((num_orders, block, num_orders, block))
    for here, table in enumerate(tables):
        matrix[here, :, here, :] = build(table)
    return matrix.reshape(num_orders * block, num_orders * block)


def level_pairs(sizes: Sequence[int], rung: int) -> list[Pair]:
    """A row that only `rung` and colder see, with one that only colder ones see."""
    below = sizes[rung - 1] if rung > 0 else 0
    return list(product(range(below, sizes[rung]), range(sizes[rung], sizes[rung + 1])))


def every_pair(num_rows: int) -> list[Pair]:
    """Any two positions."""
    return list(combinations(range(num_rows), 2))


def pairings(num_rows: int, num_pairs: int) -> Iterator[tuple[Pair, ...]]:
    """Every way to choose `num_pairs` pairs of positions with no position in common."""
    for pairs in combinations(every_pair(num_rows), num_pairs):
        if len({position for pair in pairs for position in pair}) == 2 * num_pairs:
            yield pairs


def exchange(
    terms: Terms, sizes: Sequence[int], pairs: Pairs, log_ratios: LogRatios = exchange_log_ratios
) -> JointMatrix:
    """Exchange the rows at `pairs` of positions, each accepted for itself, all at once.

    Every pair is judged by the order as it was. So f is left invariant if no two of them share a
    position, and in general not otherwise.
    """
    points = _points(terms.shape[1], len(sizes))
    chances = _acceptances(terms, points, sizes, pairs, log_ratios)
    entries = 0.0
    for pattern in product([True, False], repeat=len(pairs)):
        chance = np.where(pattern, chances, 1.0 - chances).prod(axis=-1)
        done = [pair for pair, accepted in zip(pairs, pattern, strict=True) if accepted]
        entries = entries + _reordered(sizes[-1], done, chance)
    return _at_each_point(np.asarray(entries))


def exchange_together(likelihood: Likelihood, sizes: Sequence[int], pairs: Pairs) -> JointMatrix:
    """Exchange the rows at all `pairs` of positions, or none of them."""
    orders = all_orders(sizes[-1])
    weights = np.array([_weights(ladder_table(likelihood, order, sizes)) for order in orders])
    place = {order: at for at, order in enumerate(orders)}
    there = [place[exchanged(order, pairs)] for order in orders]
    chance = acceptance(weights[there] - weights)
    entries = _reordered(sizes[-1], pairs, chance) + _reordered(sizes[-1], [], 1.0 - chance)
    return _at_each_point(entries)


def exchanged(order: Order, pairs: Pairs) -> Order:
    """The order with the rows at these positions exchanged, one pair after another."""
    rows = list(order)
    for a, b in pairs:
        rows[a], rows[b] = rows[b], rows[a]
    return tuple(rows)


def lumped(matrix: JointMatrix, labels: Sequence[Hashable]) -> Float[np.ndarray, "classes classes"]:
    """The kernel on classes of states, where it has the same probabilities for all of a class.

    `labels` name each state's class; classes are numbered as they first appear.
    """
    names = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    member = np.zeros((len(labels), len(names)))
    member[np.arange(len(labels)), [names[label] for label in labels]] = 1.0
    into = matrix @ member
    classes = (member.T @ into) / member.sum(axis=0)[:, None]
    if not np.allclose(member @ classes, into, rtol=0.0, atol=1e-12):
        raise ValueError("states of one class move to other classes with other probabilities")
    return classes


def _acceptances(
    terms: Terms,
    points: Int[np.ndarray, "points rungs"],
    sizes: Sequence[int],
    pairs: Pairs,
    log_ratios: LogRatios,
) -> Float[np.ndarray, "orders points pairs"]:
    """min(1, r) of each pair by the sampler's own function, in double precision."""
    orders = np.array(all_orders(sizes[-1]))
    first, second = np.array(pairs).T
    # (orders, points, rungs, pairs): the term of the row that stands there, at the rung's point.
    at_first, at_second = (
        terms[orders[:, None, None, at], points[None, :, :, None]] for at in (first, second)
    )
    with jax.enable_x64(True):
        one, two = jnp.asarray(first), jnp.asarray(second)
        ratios = jax.vmap(jax.vmap(lambda x, y: log_ratios(x, y, tuple(sizes), one, two)))(
            jnp.asarray(at_first), jnp.asarray(at_second)
        )
    return acceptance(np.asarray(ratios))


def _reordered(
    num_rows: int, pairs: Pairs, chance: Float[np.ndarray, "orders points"]
) -> Float[np.ndarray, "orders orders points"]:
    """The chance of every order, at every point, to have these pairs exchanged."""
    orders = all_orders(num_rows)
    place = {order: at for at, order in enumerate(orders)}
    entries = np.zeros((len(orders), *chance.shape))
    for here, order in enumerate(orders):
        entries[here, place[exchanged(order, pairs)]] = chance[here]
    return entries


def _at_each_point(entries: Float[np.ndarray, "orders orders points"]) -> JointMatrix:
    """The matrix that changes orders like this and leaves points where they are."""
    num_orders, _, num_points = entries.shape
    matrix = np.zeros((num_orders, num_points, num_orders, num_points))
    at = np.arange(num_points)
    matrix[:, at, :, at] = np.moveaxis(entries, 2, 0)
    return matrix.reshape(num_orders * num_points, num_orders * num_points)


def _points(num_states: int, num_rungs: int) -> Int[np.ndarray, "points rungs"]:
    return np.array(list(product(range(num_states), repeat=num_rungs)))


def _weights(table: Table) -> Float[np.ndarray, " points"]:
    """sum_k log pi_k(x_k) for every point of the product space."""
    num_rungs, n = table.shape
    return table[np.arange(num_rungs), _points(n, num_rungs)].sum(axis=1)
