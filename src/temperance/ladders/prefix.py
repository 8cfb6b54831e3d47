"""Prefix ladders: hot by using fewer rows, as nested subsamples of static sizes.

The rows are put into a random order once. The subsample of size n is then the first n rows, and a
rung is

    log pi_k(x) = log p(x) + sum_{i < n_k} l_i(x),        n_0 < n_1 < ... < n_{K-1} = N,

with l_i the term of row i, log p(y_i | y_<i, x). (Paper 1, equation (9), counts m = K-1-k.) The
components are the log prior and the sums over the *blocks* of rows between neighbouring sizes;
their weights are zeros and ones. With n_0 = 0 the hottest rung is the prior itself.

A point at rung k knows the blocks up to n_k. To compare it with rung k + 1 takes

    I_k(x) = sum over the rows from n_k to n_{k+1},

and `lift` evaluates no more than these rows where they are independent. Terms that look back (a
Gaussian process) are evaluated on the longer prefix, from which every shorter one can be read.
Points carry no gradients: a gradient at one prefix says nothing cheap about another.

Sums are taken block by block and never as differences of running sums: in single precision those
are off by 0.1 nats at a million rows.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from temperance._types import Data, Key, LogDensity, Numbers, Point, Position, Scalar, Terms
from temperance.ladders.ladder import AbstractLadder, Rung, Rungs
from temperance.rows.nested_subsamples import (
    SizeWarning as SizeWarning,
    Strata,
    checked_sizes,
    shuffle,
)

# Rows on which the order of the rows is tried.
FEW_ROWS = 8


class PrefixLadder(AbstractLadder):
    """Rungs on the first `sizes[k]` rows of `data`, increasing; the last is all of them.

    `terms` may only look back. With `independent=True` the term of a row must not look at other
    rows at all, or swaps are silently biased. `log_likelihood(x, rows)`, if given, must be the sum
    of the terms: its gradient is used in their place. `draw_prior` must draw from exp(log_prior)
    exactly: it takes the place of a move where the hottest rung has no rows.
    The rows must be in random order, which `PrefixLadder.of` sees to: whatever order they are in
    the target is exact, but a subsample of sorted rows is not a heated target. Terms that look back
    and depend on the order itself, as those of a time series do, are for `ordered=True`: then the
    rungs are its beginnings, and nothing is ever shuffled.
    """

    log_prior: LogDensity
    terms: Terms
    data: Data
    sizes: tuple[int, ...] = eqx.field(static=True)
    independent: bool = eqx.field(static=True)
    log_likelihood: Callable[[Position, Data], Scalar] | None
    draw_prior: Callable[[Key], Position] | None
    strata: Strata | None
    ordered: bool = eqx.field(static=True)
    prefixes: tuple[Data, ...] | None

    def __init__(
        self,
        log_prior: LogDensity,
        terms: Terms,
        data: Data,
        sizes: Numbers,
        *,
        independent: bool = True,
        log_likelihood: Callable[[Position, Data], Scalar] | None = None,
        draw_prior: Callable[[Key], Position] | None = None,
        strata: Strata | None = None,
        ordered: bool = False,
    ):
        num_rows = np.shape(jax.tree.leaves(data)[0])[0]
        self.log_prior = log_prior
        self.terms = terms
        self.data = jax.tree.map(jnp.asarray, data)
        self.sizes = checked_sizes(sizes, num_rows)
        self.independent = independent
        self.log_likelihood = log_likelihood
        self.draw_prior = draw_prior
        self.strata = strata
        self.ordered = ordered
        self.prefixes = None

    @classmethod
    def of(
        cls, problem: Any, sizes: Numbers, *, seed: int = 0, strata: Numbers | None = None
    ) -> "PrefixLadder":
        """A ladder of a problem's positions, its rows shuffled by `seed`.

        `strata` holds a label for each row: every rung then has its share of each of them.
        """
        groups = None if strata is None else Strata.of(strata, problem.num_rows)
        ordered = depends_on_order(problem)
        order = jnp.arange(problem.num_rows)
        if not ordered:
            order = shuffle(jax.random.key(seed), problem.num_rows, groups)
        return cls(
            problem.log_prior, problem.terms, rows_at(problem.data, order), sizes,
            independent=problem.independent, log_likelihood=problem.log_likelihood,
            draw_prior=problem.draw_prior,
            strata=None if groups is None else groups.reordered(order), ordered=ordered,
        )  # fmt: skip

    @property
    def keeps_gradients(self) -> bool:
        return False

    @property
    def num_rungs(self) -> int:
        return len(self.sizes)

    @property
    def num_rows(self) -> int:
        return self.sizes[-1]

    @property
    def betas(self) -> Float[Array, " rungs"]:
        """Each rung's share of the rows."""
        return jnp.asarray(self.sizes) / self.num_rows

    @property
    def bounds(self) -> tuple[int, ...]:
        """Where the blocks begin and end."""
        return self.sizes if self.sizes[0] == 0 else (0, *self.sizes)

    def num_blocks(self, rung: int) -> int:
        """How many blocks a rung has, from the first on."""
        return self.bounds.index(self.sizes[rung])

    def num_added(self, rung: int) -> int:
        """Rows that are looked at to know a point of `rung` at `rung + 1`."""
        low, high = self.sizes[rung], self.sizes[rung + 1]
        return high - low if self.independent else high

    def densities(self) -> Sequence[LogDensity]:
        return self.log_prior, *(Block(self, i) for i in range(len(self.bounds) - 1))

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        known = 1 + self.num_blocks(int(rung))
        return jnp.asarray([1.0] * known + [0.0] * (len(self.bounds) - known))

    def at(self, rung: Rungs) -> "PrefixRung":
        rows = self._prefix(int(rung)) if self.prefixes is None else self.prefixes[int(rung)]
        return PrefixRung(self, self.weights(rung), int(rung), rows)

    def cut(self) -> "PrefixLadder":
        """The same ladder, its rungs' rows taken once for all moves that follow."""
        rungs = tuple(self._prefix(rung) for rung in range(self.num_rungs))
        return eqx.tree_at(lambda one: one.prefixes, self, rungs, is_leaf=lambda x: x is None)

    def _prefix(self, rung: int) -> Data:
        rows = rows_between(self.data, 0, self.sizes[rung])
        # Taken here, before the loops of a move, and kept from being taken again inside them.
        return rows if rung == self.num_rungs - 1 else jax.lax.optimization_barrier(rows)

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        """All blocks; gradients are never kept."""
        return self.at(self.num_rungs - 1).evaluate(position, gradient=gradient)

    def lift(self, rung: Rungs, point: Point) -> Point:
        """A point of `rung`, with the block that `rung + 1` adds to it."""
        block = self.num_blocks(int(rung))
        (value,) = self.block_sums(point.position, self.data, block, block + 1)
        return point._replace(components=point.components.at[1 + block].set(value))

    def block_sums(self, position: Position, rows: Data, first: int, last: int) -> list[Scalar]:
        """The sums of the blocks from `first` to before `last`, in one call of the terms.

        `rows` hold the blocks up to `last` at least, from the first row on.
        """
        bounds = self.bounds[first : last + 1]
        if len(bounds) < 2:
            return []
        begin = bounds[0] if self.independent else 0
        values = self.terms(position, rows_between(rows, begin, bounds[-1]))
        return [jnp.sum(values[low - begin : high - begin]) for low, high in pairwise(bounds)]

    def reordered(self, order: Int[Array, " n"]) -> "PrefixLadder":
        """The same rungs on rows in another order."""
        assert self.prefixes is None, "a ladder that is cut keeps its order"
        return eqx.tree_at(lambda ladder: ladder.data, self, rows_at(self.data, order))

    def reshuffled(self, key: Key) -> "PrefixLadder":
        """The same rungs on other subsamples, with their share of every stratum."""
        if self.ordered:
            return self
        return self.reordered(shuffle(key, self.num_rows, self.strata))

    def draw_hottest(self) -> Callable[[Key], Position] | None:
        return self.draw_prior if self.sizes[0] == 0 else None


class PrefixRung(Rung):
    """A prefix ladder at one rung: everything here costs its own rows and no others."""

    index: int = eqx.field(static=True)
    rows: Data

    @property
    def prefix(self) -> PrefixLadder:
        assert isinstance(self.ladder, PrefixLadder)
        return self.ladder

    @property
    def is_hot(self) -> bool:
        return self.index < self.prefix.num_rungs - 1

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        ladder = self.prefix
        known = ladder.num_blocks(self.index)
        prior = ladder.log_prior(position)
        sums = ladder.block_sums(position, self.rows, 0, known)
        unknown = [jnp.zeros_like(prior)] * (len(ladder.bounds) - 1 - known)
        return Point(position, jnp.stack([prior, *sums, *unknown]), None)

    def slope(self, position: Position) -> Float[Array, " d"]:
        flat, unravel = ravel_pytree(position)
        return jax.grad(lambda vector: self(unravel(vector)))(flat)

    def __call__(self, position: Position) -> Scalar:
        ladder = self.prefix
        if ladder.sizes[self.index] == 0:
            return ladder.log_prior(position)
        if ladder.log_likelihood is not None:
            return ladder.log_prior(position) + ladder.log_likelihood(position, self.rows)
        return ladder.log_prior(position) + jnp.sum(ladder.terms(position, self.rows))


class Block(eqx.Module):
    """The sum of the terms of one block, as a density of its own."""

    ladder: PrefixLadder
    number: int = eqx.field(static=True)

    def __call__(self, position: Position) -> Scalar:
        ladder, number = self.ladder, self.number
        (value,) = ladder.block_sums(position, ladder.data, number, number + 1)
        return value


def depends_on_order(problem: Any) -> bool:
    """Whether the likelihood of a few rows changes when they change places."""
    if problem.independent:
        return False
    few = min(FEW_ROWS, problem.num_rows)
    position = problem.draw_prior(jax.random.key(0))
    rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[:few], problem.data)
    back = jax.tree.map(lambda leaf: leaf[::-1], rows)
    one, two = (float(jnp.sum(problem.terms(position, some))) for some in (rows, back))
    tolerance = 1e-6 if jnp.result_type(float) == jnp.float64 else 1e-3
    return not np.isclose(one, two, rtol=tolerance, atol=tolerance, equal_nan=True)


def rows_between(data: Data, first: int, last: int) -> Data:
    """The rows from `first` to before `last`, both static."""
    return jax.tree.map(lambda rows: rows[first:last], data)


def rows_at(data: Data, order: Int[Array, " n"]) -> Data:
    """The rows in another order."""
    # Every place is a row's; to make sure of it takes XLA as long again as to copy them.
    return jax.tree.map(lambda leaf: jnp.take(jnp.asarray(leaf), order, axis=0, mode="clip"), data)
