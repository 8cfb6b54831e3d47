"""Tempering by subsampling on a finite space: nested subsamples, and the kernels they make.

Rows 0 ... N-1 have a likelihood in each of the states 0 ... n-1. An *order* of the rows nests the
subsamples: the rung of size m sees the first m rows of the order. Sizes increase, the last is N:

    log pi_k(x) = log p(x) + L(first n_k rows of the order, x),     L = a sum of l_i if independent

Orders with the same subsamples at every rung are one *family*. Every family stands for the same
number of orders, the product of the factorials of n_0, n_1 - n_0, ..., so that a uniform order is a
uniform family. `sine_terms` is a table without luck or symmetry to try a kernel on.

    SPT   one family, kept: `enumeration.parallel_sweep` on its `ladder_table`
    STT   a new family for each transition: the `mixture` of the families' kernels, which leaves
          the posterior invariant because each of them does and the choice looks at nothing
"""

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
from jaxtyping import Float

from temperance.testing import enumeration
from temperance.testing.enumeration import Law, Matrix, Table

Order = tuple[int, ...]
Family = tuple[frozenset[int], ...]
Terms = Float[np.ndarray, "rows n"]
Likelihood = Callable[[Order], Float[np.ndarray, " n"]]
Build = Callable[[Table, Sequence[Matrix]], Matrix]


def sine_terms(num_rows: int, num_states: int, scale: float) -> Terms:
    """Log likelihoods l_i(x) = scale * sin(1.7 i + 2.3 x + 0.5) of rows i in states x."""
    i, x = np.ogrid[:num_rows, :num_states]
    return scale * np.sin(1.7 * i + 2.3 * x + 0.5)


def independent(terms: Terms) -> Likelihood:
    """The log likelihood of independent rows: the sum of their terms."""
    return lambda rows: terms[list(rows)].sum(axis=0)


def family_of(order: Order, sizes: Sequence[int]) -> Family:
    """The subsamples of an order, from the smallest to all rows."""
    return tuple(frozenset(order[:size]) for size in sizes)


def all_orders(num_rows: int) -> list[Order]:
    """Every order of the rows."""
    return list(permutations(range(num_rows)))


def families(sizes: Sequence[int]) -> list[Order]:
    """One order for each family of subsamples of these sizes; the last is the number of rows."""
    found = {family_of(order, sizes): order for order in reversed(all_orders(sizes[-1]))}
    return sorted(found.values())


def ladder_table(
    likelihood: Likelihood,
    order: Order,
    sizes: Sequence[int],
    log_prior: Float[np.ndarray, " n"] | None = None,
) -> Table:
    """The log density of every rung under one order; a prior that is not given is uniform."""
    table = np.stack([likelihood(order[:size]) for size in sizes])
    return table if log_prior is None else table + log_prior


def ladder_tables(
    likelihood: Likelihood,
    orders: Sequence[Order],
    sizes: Sequence[int],
    log_prior: Float[np.ndarray, " n"] | None = None,
) -> Float[np.ndarray, "orders rungs n"]:
    """`ladder_table` for each of several orders."""
    return np.stack([ladder_table(likelihood, order, sizes, log_prior) for order in orders])


def mixture(
    tables: Float[np.ndarray, "orders rungs n"],
    build: Build = enumeration.tempered_transition,
    kernel: Callable[[Float[np.ndarray, " n"]], Matrix] = enumeration.cycle_metropolis,
) -> Matrix:
    """`build(table, kernels)`, averaged over ladders that are equally likely.

    On the tables of all `families` and with a tempered transition as `build`, subsampled tempered
    transitions. `kernel` makes the move at a rung from its log density.
    """
    return np.mean([build(table, [kernel(row) for row in table]) for table in tables], axis=0)


def posterior(table: Table) -> Law:
    """The law of the target, the last rung of a ladder."""
    return enumeration.normalised(table[-1])
