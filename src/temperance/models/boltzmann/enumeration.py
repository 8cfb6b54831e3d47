"""All 2^n states of a Boltzmann machine: log Z_B, moments, and exact draws.

Units are parted in two blocks, and the table of states is gone through a few rows at a time
(`blocks.py`). From the log of each row's sum, the mean of the columns' units in each row and the
sums of columns follow

    log Z_B,    E[a] and E[aa'] by rows,    E[c] and E[cc'] by columns,    E[ac'] by rows,

so that no table of 2^n numbers is ever kept. Column sums carry the largest scale so far, and are
brought to a larger one when it comes.

*Draws* take a row by its share, then a column by its share in that row. They are independent.
"""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from temperance._types import Key
from temperance.models.boltzmann.blocks import DEEPEST, Blocks, Summing, by_energies, by_products
from temperance.errors import ArgumentError
from temperance.programs.progress import reporter

LARGEST = 30
# Numbers in one array at a time. These stay in the cache, and the memory needed is some 30 MB.
CHUNK = 2**18
PATIENCE = 2.0  # seconds without a bar


@dataclass(frozen=True, eq=False)
class Exact:
    """log Z_B, `mean` E[s] and `second` E[ss'] of a Boltzmann machine, and its exact sampler."""

    log_z: float
    mean: np.ndarray
    second: np.ndarray
    blocks: Blocks
    shares: np.ndarray  # of the table's rows
    places: np.ndarray  # where each of the machine's units is in the blocks

    @property
    def covariance(self) -> np.ndarray:
        return self.second - np.outer(self.mean, self.mean)

    def draw(self, key: Key | np.random.Generator | int, num: int) -> np.ndarray:
        """`num` independent exact draws of s, one in each row."""
        if num < 1:
            raise ArgumentError(f"num: wanted at least one draw, got {num}")
        rng = generator(key)
        rows = _inverse(np.cumsum(self.shares), rng.random(num))
        levels = rng.random(num)
        columns = np.empty(num, int)
        seen, which = np.unique(rows, return_inverse=True)
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(seen.size + 1))
        step = max(1, CHUNK // len(self.blocks.column_states))
        for start in range(0, seen.size, step):
            table = self.blocks.energies(seen[start : start + step])
            table = np.exp(table - table.max(axis=1, keepdims=True))
            np.cumsum(table, axis=1, out=table)
            for k, line in enumerate(table, start):
                mine = order[ends[k] : ends[k + 1]]
                columns[mine] = _inverse(line, levels[mine])
        blocks = self.blocks
        both = np.concatenate((blocks.row_states[rows], blocks.column_states[columns]), axis=1)
        return both[:, self.places]


def generator(key: Key | np.random.Generator | int) -> np.random.Generator:
    """NumPy's generator from a JAX key or a seed; a generator is used as it is."""
    if isinstance(key, jax.Array):
        words = np.asarray(jax.random.key_data(key))
        return np.random.default_rng([int(word) for word in words.ravel()])
    return np.random.default_rng(key)


def enumerate_states(
    weights: np.ndarray,
    biases: np.ndarray,
    constant: float = 0.0,
    *,
    order: np.ndarray | None = None,
    num_first: int | None = None,
    way: Callable[[Blocks], Summing] | None = None,
    progress: bool = False,
    largest: int = LARGEST,
) -> Exact:
    """Sums over the states of a machine whose weights have a diagonal of zeros.

    The result does not depend on `order`, in which the units are put, on the number `num_first` of
    those that make the rows, nor on the `way` in which rows are summed, except by rounding.
    """
    num_units = biases.size
    if num_units > largest:
        raise ArgumentError(
            f"machine: {num_units} units have 2^{num_units} states, {2.0 ** (num_units - 30):.3g} "
            f"times those of 30 units, which take about a second on one core; wanted at most "
            f"{largest} units, or largest={num_units} if you are ready to wait"
        )
    order = np.arange(num_units) if order is None else order
    blocks = Blocks(
        weights[np.ix_(order, order)],
        biases[order],
        num_units // 2 if num_first is None else num_first,
    )
    if way is None:
        way = by_products if blocks.deepest < DEEPEST else by_energies
    width = len(blocks.column_states)
    step = max(1, CHUNK // (width if way is by_energies else math.isqrt(2 * width)))
    log_rows, means, columns = _gathered(way(blocks), blocks, step, progress)

    shares = np.exp(log_rows - log_rows.max())
    log_z = float(log_rows.max() + np.log(shares.sum()))
    shares /= shares.sum()
    columns = columns / columns.sum()
    a, c = blocks.row_states, blocks.column_states
    weighted = a * shares[:, None]
    cross = weighted.T @ means
    second = np.block([[weighted.T @ a, cross], [cross.T, (c * columns[:, None]).T @ c]])
    np.fill_diagonal(second, 1.0)
    mean = np.concatenate((weighted.sum(axis=0), columns @ c))
    places = np.argsort(order)
    return Exact(
        log_z + constant, mean[places], second[np.ix_(places, places)], blocks, shares, places
    )


def _gathered(
    sums: Summing, blocks: Blocks, step: int, progress: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows' log sums and means, and columns' sums up to a factor, `step` rows at a time."""
    num_rows = len(blocks.row_states)
    log_rows = np.empty(num_rows)
    means = np.empty((num_rows, blocks.column_states.shape[1]))
    columns, log_scale = np.zeros(len(blocks.column_states)), -np.inf
    began, bar = time.monotonic(), None
    with contextlib.ExitStack() as stack:
        for start in range(0, num_rows, step):
            rows = slice(start, min(start + step, num_rows))
            found = sums(rows)
            log_rows[rows], means[rows] = found.log_rows, found.means
            larger = max(log_scale, found.log_scale)
            columns *= np.exp(log_scale - larger)
            columns += np.exp(found.log_scale - larger) * found.columns
            log_scale = larger
            if bar is None and progress and time.monotonic() - began > PATIENCE:
                bar = stack.enter_context(reporter(True))
                bar.begin("states", num_rows, rows.stop)
            if bar is not None:
                bar.update(rows.stop, "")
    return log_rows, means, columns


def _inverse(cumulative: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The places where cumulative weights pass `levels`, as shares of the whole."""
    places = np.searchsorted(cumulative, levels * cumulative[-1], side="right")
    return np.minimum(places, cumulative.size - 1)
