"""Moves of columns between views.

A view v is a set of columns with one partition pi_v of the rows. Columns fall into views by a
Pitman-Yor process (alpha, d) and pi_v by another, with an alpha and d of its own, which v carries
with pi_v. Let column c be taken out; K views remain, view v with |v| columns. If c was alone its
view is gone, and pi_c denotes what its partition was.

**Algorithm 8.** m auxiliary views stand ready to be founded: fresh draws of (alpha, d) and of a
partition of the rows that are present, from their prior. If c was alone, pi_c is the first of them
and m - 1 are fresh. Then c goes to

    view v           with weight (|v| - d)           p(X_c | pi_v)
    auxiliary view   with weight ((alpha + d K) / m) p(X_c | pi_aux).

*Why it is exact.* Give every state m auxiliary partitions, independent draws of the prior. Before
the draw, the law of (state, auxiliaries) is a product; the weights are its conditional law of where
c is, given the m partitions and those of the other views: founding an auxiliary view has the mass
(alpha + d K) / m each, because any of the m could have been the one founded. For a c that was alone
the partition it holds is one of the m. With m fresh ones in its place the step back to where c came
from has another probability, and the law is off: by 0.13, 0.06 and 0.04 in total variation with
m = 1, 2 and 3 on a table of three rows and three columns.

**Metropolis.** Propose a view from the Pitman-Yor predictive: v with probability
(|v| - d) / (C - 1 + alpha), or a view founded on a fresh partition. That is the prior of c's place
given all else, so a proposal is accepted with p(X_c | pi_new) / p(X_c | pi_c), at most one.

Both need p(X_c | pi) only (column_marginals.py).
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from temperance.crosscat.families.grid import FloatArray, draw_index
from temperance.crosscat.partitions.partition import Partition, draw_partition
from temperance.crosscat.partitions.pitman_yor import PitmanYorGrids

IntArray = npt.NDArray[np.int64]
LogMarginal = Callable[[int, Partition], float]
Kernel = Literal["algorithm 8", "metropolis"]


class Places(NamedTuple):
    """Where a column can go: views that are there without it, then partitions to found one on."""

    views: tuple[int, ...]
    sizes: tuple[int, ...]
    auxiliary: tuple[Partition, ...]


def is_alone(column: int, view_of_column: IntArray) -> bool:
    """Whether no other column is in its view."""
    return bool(np.count_nonzero(view_of_column == view_of_column[column]) == 1)


def num_fresh(column: int, view_of_column: IntArray, num_auxiliary: int) -> int:
    """How many of the auxiliary partitions Algorithm 8 has to draw."""
    return num_auxiliary - is_alone(column, view_of_column)


def find_proposals(column: int, view_of_column: IntArray) -> Places:
    """The places of a Metropolis step, before a partition is drawn to found a view on."""
    sizes = np.bincount(np.delete(view_of_column, column))
    views = tuple(int(view) for view in np.flatnonzero(sizes))
    return Places(views, tuple(int(sizes[view]) for view in views), ())


def find_places(
    column: int,
    view_of_column: IntArray,
    partitions: Sequence[Partition],
    fresh: Sequence[Partition],
) -> Places:
    """The places of Algorithm 8; a column that is alone finds its own partition first."""
    alone = is_alone(column, view_of_column)
    reused = (partitions[view_of_column[column]],) if alone else ()
    return find_proposals(column, view_of_column)._replace(auxiliary=(*reused, *fresh))


def log_prior_weights(
    sizes: Sequence[int], num_auxiliary: int, alpha: float, d: float
) -> FloatArray:
    """Log of |v| - d for every view, then of (alpha + d K) / m for every auxiliary one."""
    founding = alpha + d * len(sizes) if sizes else 1.0
    joining = [math.log(size - d) for size in sizes]
    return np.array(joining + [math.log(founding / num_auxiliary)] * num_auxiliary)


def log_weights(
    column: int,
    places: Places,
    partitions: Sequence[Partition],
    log_marginal: LogMarginal,
    alpha: float,
    d: float,
) -> FloatArray:
    """Log weights of Algorithm 8, of the views and then of the auxiliary partitions."""
    scores = [log_marginal(column, partitions[view]) for view in places.views]
    scores += [log_marginal(column, partition) for partition in places.auxiliary]
    return log_prior_weights(places.sizes, len(places.auxiliary), alpha, d) + np.array(scores)


def put(
    column: int,
    view_of_column: IntArray,
    partitions: Sequence[Partition],
    places: Places,
    choice: int,
) -> tuple[IntArray, list[Partition]]:
    """The state with `column` at place `choice`, views without columns closed up."""
    moved = view_of_column.copy()
    held = list(partitions)
    if choice < len(places.views):
        moved[column] = places.views[choice]
    else:
        moved[column] = len(held)
        held.append(places.auxiliary[choice - len(places.views)])
    kept, packed = np.unique(moved, return_inverse=True)
    return packed.astype(np.int64), [held[view] for view in kept]


def log_acceptance(
    column: int,
    view_of_column: IntArray,
    partitions: Sequence[Partition],
    places: Places,
    choice: int,
    log_marginal: LogMarginal,
) -> float:
    """Log of min(1, p(X_c | proposed) / p(X_c | current))."""
    current = partitions[view_of_column[column]]
    if choice < len(places.views):
        proposed = partitions[places.views[choice]]
    else:
        proposed = places.auxiliary[choice - len(places.views)]
    if proposed is current:
        return 0.0
    return min(0.0, log_marginal(column, proposed) - log_marginal(column, current))


def move_columns(
    view_of_column: IntArray,
    partitions: Sequence[Partition],
    log_marginal: LogMarginal,
    num_rows: int,
    column_alpha: float,
    column_d: float,
    row_grids: PitmanYorGrids,
    rng: np.random.Generator,
    num_auxiliary: int = 2,
    kernel: Kernel = "algorithm 8",
) -> tuple[IntArray, list[Partition]]:
    """One sweep over the columns, in random order.

    `log_marginal(column, partition)` is log p(X_c | pi) over the rows that are present, of all the
    features of the column together.
    """
    views, held = np.asarray(view_of_column, dtype=np.int64).copy(), list(partitions)

    def draw_fresh(num: int) -> list[Partition]:
        return [draw_partition(num_rows, row_grids, rng) for _ in range(num)]

    for column in rng.permutation(views.size).tolist():
        if kernel == "algorithm 8":
            fresh = draw_fresh(num_fresh(column, views, num_auxiliary))
            places = find_places(column, views, held, fresh)
            weights = log_weights(column, places, held, log_marginal, column_alpha, column_d)
            choice = draw_index(weights, rng)
        else:
            places = find_proposals(column, views)
            weights = log_prior_weights(places.sizes, 1, column_alpha, column_d)
            choice = draw_index(weights, rng)
            if choice == len(places.views):
                places = places._replace(auxiliary=tuple(draw_fresh(1)))
            log_ratio = log_acceptance(column, views, held, places, choice, log_marginal)
            if math.log1p(-rng.random()) > log_ratio:
                continue
        views, held = put(column, views, held, places, choice)
    return views, held
