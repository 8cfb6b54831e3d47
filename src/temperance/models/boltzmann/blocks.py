"""The units of a machine in two blocks, and sums over the second for each state of the first.

With s = (a, c) the exponent is E(a) + E(c) + a'W_ac c. A table has a row for each state a and a
column for each c. What is wanted of it, a few rows at a time, is the log of each row's sum, the
mean of c in each row, and the sums of its columns. There are two ways.

*Products.* Let h = W_ca a and part the columns' units once more, c = (u, v). Then

    sum_c exp(E(c) + h'c) = sum_uv exp(h_u'u) M_uv exp(h_v'v),      M_uv = exp E(u, v),

and M is the same for every row. For all rows at once this is a product of matrices of 2^(n/4)
columns: 2^n multiplications, and some 2^(3n/4) exponentials. Row factors are scaled by
exp(-|h|_1), which is their largest value, and M by its largest entry. Everything is positive, so
that nothing cancels; what is left to fear is a sum below the smallest number. A row's sum is at
least exp(-2 |h|_1), and at least exp(min E - max E); one of them must stay above exp(-DEEPEST).

*Energies.* Otherwise every exponent is computed, and exponentiated after its row's maximum is
taken off. This is right for any weights, and takes thirty times as long.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

# exp(-600) is 1e-261: products that matter by one part in 10^20 are above 1e-281, and normal.
DEEPEST = 600.0


def signs(num_units: int) -> np.ndarray:
    """All states: in row i the signs are the bits of i, the first unit's the lowest."""
    bits = np.arange(2**num_units)[:, None] >> np.arange(num_units)
    return 2.0 * (bits & 1) - 1.0


class Sums(NamedTuple):
    """Of some rows: log of each sum, mean of the columns' units, and sums of columns.

    The sums of columns are those of the table divided by exp(`log_scale`).
    """

    log_rows: np.ndarray
    means: np.ndarray
    columns: np.ndarray
    log_scale: float


Summing: TypeAlias = Callable[[slice], Sums]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The first `num_first` units make the rows of the table, the others its columns."""

    weights: np.ndarray
    biases: np.ndarray
    num_first: int

    @cached_property
    def row_states(self) -> np.ndarray:
        return signs(self.num_first)

    @cached_property
    def column_states(self) -> np.ndarray:
        return signs(self.biases.size - self.num_first)

    @cached_property
    def row_energies(self) -> np.ndarray:
        return _exponents(self.row_states, self.weights, self.biases, slice(self.num_first))

    @cached_property
    def column_energies(self) -> np.ndarray:
        rest = slice(self.num_first, None)
        return _exponents(self.column_states, self.weights, self.biases, rest)

    def fields(self, rows: slice | np.ndarray) -> np.ndarray:
        """What the units of the rows add to the biases of the columns' units."""
        return self.row_states[rows] @ self.weights[: self.num_first, self.num_first :]

    def energies(self, rows: slice | np.ndarray) -> np.ndarray:
        """Exponents of the table's rows, without their own E(a)."""
        return self.fields(rows) @ self.column_states.T + self.column_energies

    @cached_property
    def deepest(self) -> float:
        """Minus the log of the smallest row sum that products of scaled factors may meet."""
        strongest = np.abs(self.fields(slice(None))).sum(axis=1).max(initial=0.0)
        return float(min(2.0 * strongest, np.ptp(self.column_energies)))


def by_energies(blocks: Blocks) -> Summing:
    """Sums of rows with every exponent computed: right for any weights."""

    def sums(rows: slice) -> Sums:
        table = blocks.energies(rows)
        table += blocks.row_energies[rows, None]
        tops = table.max(axis=1)
        table -= tops[:, None]
        np.exp(table, out=table)
        masses = table.sum(axis=1)
        means = (table @ blocks.column_states) / masses[:, None]
        log_scale = float(tops.max())
        columns = np.exp(tops - log_scale) @ table
        return Sums(tops + np.log(masses), means, columns, log_scale)

    return sums


def by_products(blocks: Blocks) -> Summing:
    """Sums of rows as products of matrices: for weights whose `deepest` is below DEEPEST."""
    num_columns = blocks.biases.size - blocks.num_first
    num_inner = (num_columns + 1) // 2
    inner, outer = signs(num_inner), signs(num_columns - num_inner)
    top = blocks.column_energies.max()
    matrix = np.exp(blocks.column_energies - top).reshape(len(outer), len(inner))

    def sums(rows: slice) -> Sums:
        fields = blocks.fields(rows)
        left = _factors(fields[:, :num_inner], inner)
        right = _factors(fields[:, num_inner:], outer)
        by_inner = left * (right @ matrix)
        by_outer = right * (left @ matrix.T)
        masses = by_inner.sum(axis=1)
        means = np.concatenate((by_inner @ inner, by_outer @ outer), axis=1) / masses[:, None]
        scales = blocks.row_energies[rows] + np.abs(fields).sum(axis=1) + top
        log_scale = float(scales.max())
        right *= np.exp(scales - log_scale)[:, None]
        columns = matrix * (right.T @ left)
        return Sums(scales + np.log(masses), means, columns.ravel(), log_scale)

    return sums


def _factors(fields: np.ndarray, states: np.ndarray) -> np.ndarray:
    exponents = fields @ states.T
    exponents -= np.abs(fields).sum(axis=1)[:, None]
    return np.exp(exponents, out=exponents)


def _exponents(
    states: np.ndarray, weights: np.ndarray, biases: np.ndarray, units: slice
) -> np.ndarray:
    pairs = 0.5 * np.sum((states @ weights[units, units]) * states, axis=1)
    return pairs + states @ biases[units]
