"""Which row enters or leaves next: subsample annealing, and its two baselines.

A strategy is a list of steps (row_gibbs.py), made before any of them is followed, because which
rows come and go never depends on where they sit.

**Anneal.** For n = 1 ... N a row enters, and then E(n) times a row leaves and another enters (a
*churn*): the subsample grows and is stirred all the while. n / N is the inverse temperature.

    linear         E(n) = T - 1, so that T N rows enter in all, as in the paper
    accelerating   E(n) = T sqrt(4000 / n), at most 4 n: beyond the N rows that enter once, about
                   2 T sqrt(4000 N) do so, which grows like the square root of N

E is of any size; its fractions are carried over to the next row. *Who* leaves and enters is a
matter of

    window   a ring of all rows in random order: the oldest leaves, the next on the ring enters
    random   a row drawn from those that are in leaves, one drawn from all that are out enters, as
             in the paper

and `metropolis` and `weighted` are exact at every size (exact_churn.py), at the price of scoring
more rows. At n = N all put back the row they took out, which is a step of Gibbs sampling.

**Strata.** If rows fall into strata, each has a ring of its own. The ring that has the fewest rows
in lets the next one in, so that rare strata are in from the start; a churn is of one ring, chosen
with probability proportional to its rows that are in. At n = N nothing is different.

**Sequential.** E(n) = 0 until all rows are in, then T - 1 churns for each row. **Prior** begins
with all rows seated by a draw of the prior, then has T churns for each row.

**Turnover.** Each time that n churns have been made since the last one, hyperparameters are due,
and columns every fourth time (run.py): in the window every row has then been replaced.

**At the end** all rows are in, and each is taken out and put back at least once more, by default
twice: the last row to enter would else be the only one that has seen all the others. On four rows
anneals with no last sweep or with one can be told from the posterior, and with two they cannot.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from temperance.crosscat.compilation import compiled, inner
from temperance.errors import ArgumentError, unknown_name

STRATEGIES = ("anneal", "sequential", "prior")
SCHEDULES = ("accelerating", "linear")
CHURNS = ("window", "random", "metropolis", "weighted")
REFERENCE_ROWS, MOST_TURNOVERS = 4000.0, 4.0


class Schedule(NamedTuple):
    """How many churns there are after each row, and of which kind."""

    strategy: str = "anneal"
    passes: float = 20.0
    schedule: str = "accelerating"
    churn: str = "window"
    final_sweeps: float = 2.0

    def check(self) -> None:
        """Says what is wrong, if anything is."""
        for name, known in (
            ("strategy", STRATEGIES), ("schedule", SCHEDULES), ("churn", CHURNS),
        ):  # fmt: skip
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        if not (math.isfinite(self.passes) and self.passes >= 1):
            raise ArgumentError(f"passes: wanted a number of at least 1, got {self.passes}")
        if not (math.isfinite(self.final_sweeps) and self.final_sweeps >= 1):
            raise ArgumentError(
                f"final_sweeps: wanted at least 1, without which the last rows to enter are not "
                f"draws from the posterior, got {self.final_sweeps}"
            )

    def churns(self, num_rows: int) -> np.ndarray:
        """E(n) for n = 1 ... N, and for the end: sweeps of all rows are churns at n = N."""
        n = np.arange(1, num_rows + 1, dtype=np.float64)
        if self.strategy == "anneal":
            found = np.full(num_rows, self.passes - 1.0)
            if self.schedule == "accelerating":
                found = np.minimum(self.passes * np.sqrt(REFERENCE_ROWS / n), MOST_TURNOVERS * n)
            found[-1] = 0.0
            at_end = 0.0
        else:
            found = np.zeros(num_rows)
            at_end = (self.passes - (self.strategy == "sequential")) * num_rows
        found[-1] += max(at_end, math.ceil(self.final_sweeps * num_rows))
        return found


class Window(NamedTuple):
    """Where a run stands: the rings of rows, one for each stratum, and how far it is on them.

    Without strata there is one ring of all rows.
    """

    order: Any  # int64[N], ring after ring
    begins: Any  # int64[S + 1], where each ring begins in `order`
    inside: Any  # int64[S], rows that are in
    oldest: Any  # int64[S], the oldest of them
    churned: Any  # int64[1], churns since the last turnover
    owed: Any  # float64[1], churns still to make at this size

    @property
    def num_in(self) -> int:
        return int(self.inside.sum())


def new_window(num_rows: int, rng: np.random.Generator, strata: np.ndarray | None = None) -> Window:
    """No row is in. `strata` says of each row which ring it is on."""
    order = rng.permutation(num_rows)
    begins = np.array([0, num_rows], np.int64)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
        _, sizes = np.unique(strata, return_counts=True)
        begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    inside, oldest = np.zeros((2, len(begins) - 1), np.int64)
    return Window(order, begins, inside, oldest, np.zeros(1, np.int64), np.zeros(1))


def fill(window: Window, owed: float) -> None:
    """All rows are in, as the prior's strategy begins."""
    window.inside[:] = np.diff(window.begins)
    window.owed[0] = owed


def rows_in(window: Window) -> np.ndarray:
    """The rows that are in, in increasing order."""
    found = []
    for ring, (num, oldest) in enumerate(zip(window.inside, window.oldest, strict=True)):
        begin, end = window.begins[ring : ring + 2]
        found.append(window.order[begin + np.arange(oldest, oldest + num) % (end - begin)])
    return np.sort(np.concatenate(found))


@compiled
def next_steps(
    window: Any, churns: Any, random: bool, most: int, rng: Any
) -> tuple[Any, bool, bool]:
    """The next steps, at most `most`, up to the next turnover or to the last row's entry.

    Returns them, whether the rows have turned over, and whether the schedule has come to its end.
    """
    inside, churned, owed = window.inside, window.churned, window.owed
    total, num_in = window.order.shape[0], inside[0]
    for ring in range(1, inside.shape[0]):
        num_in += inside[ring]
    steps = np.empty(most, np.int64)
    num = 0
    while num + 2 <= most:
        if owed[0] >= 1.0:
            owed[0] -= 1.0
            ring = _ring_to_churn(inside, num_in, rng)
            steps[num] = -1 - _take_out(window, ring, random, rng)
            steps[num + 1] = _let_in(window, ring, random, rng)
            num += 2
            churned[0] += 1
            if churned[0] >= num_in:
                churned[0] = 0
                return steps[:num], True, False
        elif num_in < total:
            steps[num] = _let_in(window, _ring_to_grow(window), random, rng)
            num += 1
            num_in += 1
            owed[0] += churns[num_in - 1]
            if num_in == total:
                return steps[:num], False, False
        else:
            return steps[:num], False, True
    return steps[:num], False, False


@inner
def _ring_to_grow(window: Any) -> int:
    """The ring with the fewest rows in, of those that have more."""
    chosen, fewest = 0, window.order.shape[0] + 1
    for ring in range(window.inside.shape[0]):
        num = window.inside[ring]
        if num < window.begins[ring + 1] - window.begins[ring] and num < fewest:
            chosen, fewest = ring, num
    return chosen


@inner
def _ring_to_churn(inside: Any, num_in: int, rng: Any) -> int:
    """A ring, with probability proportional to its rows that are in."""
    if inside.shape[0] == 1:
        return 0
    left = int(rng.random() * num_in)
    ring = 0
    while left >= inside[ring]:
        left -= inside[ring]
        ring += 1
    return ring


@inner
def _take_out(window: Any, ring: int, random: bool, rng: Any) -> int:
    """The oldest row of a ring, or any row of it that is in, leaves."""
    begin = window.begins[ring]
    size, num = window.begins[ring + 1] - begin, window.inside[ring]
    if random:
        _exchange(window, ring, int(rng.random() * num), 0)
    row = window.order[begin + window.oldest[ring]]
    window.oldest[ring] = (window.oldest[ring] + 1) % size
    window.inside[ring] -= 1
    return row


@inner
def _let_in(window: Any, ring: int, random: bool, rng: Any) -> int:
    """The next row of a ring, or any row of it that is out, enters."""
    begin = window.begins[ring]
    size, num = window.begins[ring + 1] - begin, window.inside[ring]
    if random:
        _exchange(window, ring, num + int(rng.random() * (size - num)), num)
    window.inside[ring] += 1
    return window.order[begin + (window.oldest[ring] + num) % size]


@inner
def _exchange(window: Any, ring: int, i: int, j: int) -> None:
    """Two rows change places, counted from the ring's oldest."""
    begin, order = window.begins[ring], window.order
    size, oldest = window.begins[ring + 1] - begin, window.oldest[ring]
    i, j = begin + (oldest + i) % size, begin + (oldest + j) % size
    order[i], order[j] = order[j], order[i]
