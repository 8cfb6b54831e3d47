"""Algorithm 8 with auxiliary views that are kept from one column to the next.

With fresh auxiliary partitions for every column (column_moves.py), a sweep over C columns draws m C
partitions of all rows and reads the rows as often. Here m partitions, the *pool*, are part of the
state: its law is

    p(columns, views, table) prod_{j=1}^m p(pi_j),

with pi_1 ... pi_m independent draws of the prior. A step on column c, which leaves this invariant:

1. If c is alone, choose a slot j of the pool uniformly; pi_j stands aside and pi_c takes its place.
2. Draw c's place by the weights of Algorithm 8 among the views and the m partitions.
3. Keep m in the pool. If slot i was founded and c was not alone, slot i gets a fresh draw. If c was
   alone and founded slot i other than its own, slot i gets pi_c. If c was alone and joined a view,
   slot j gets pi_c, and what stood aside is gone. Otherwise nothing changes.

*Why it is exact.* Take a c with company in view v, and slot i with partition pi. To found on pi,
with a fresh draw pi', has the flow

    (|v| - d) p(X_c | pi_v) p(pi) p(pi')  *  ((alpha + d K) / m) p(X_c | pi) / Z,

where Z is the sum of the weights. The way back starts from c alone on pi and pi' in slot i. It
chooses slot i with probability 1/m and joins v among the same places, with the same Z:

    (alpha + d K) p(X_c | pi) p(pi) p(pi')  *  (1/m) (|v| - d) p(X_c | pi_v) / Z.

The two are equal. So are the flows between two partitions a lone column may hold, with slot j and
what stands aside the same in both directions. Fresh draws are needed only where a view is founded,
and every column can be scored on a partition in one reading of the rows.
"""

from collections.abc import Callable, Sequence

import numpy as np

from temperance.crosscat.families.grid import draw_index
from temperance.crosscat.partitions import column_moves
from temperance.crosscat.partitions.column_moves import IntArray, LogMarginal, Places
from temperance.crosscat.partitions.partition import Partition

NO_SLOT = -1


def find_places(
    column: int,
    view_of_column: IntArray,
    partitions: Sequence[Partition],
    pool: Sequence[Partition],
    slot: int,
) -> Places:
    """The places of a column; its own partition stands in `slot`, if it is alone."""
    auxiliary = list(pool)
    if slot != NO_SLOT:
        auxiliary[slot] = partitions[view_of_column[column]]
    found = column_moves.find_proposals(column, view_of_column)
    return found._replace(auxiliary=tuple(auxiliary))


def is_fresh_needed(places: Places, slot: int, choice: int) -> bool:
    """Whether a view is founded by a column that leaves no partition behind."""
    return slot == NO_SLOT and choice >= len(places.views)


def update_pool(
    pool: Sequence[Partition], places: Places, slot: int, choice: int, fresh: Partition | None
) -> list[Partition]:
    """The pool after a column went to place `choice`."""
    kept = list(pool)
    founded = choice - len(places.views)
    if slot == NO_SLOT:
        if founded >= 0 and fresh is not None:
            kept[founded] = fresh
    elif founded != slot:
        kept[slot if founded < 0 else founded] = places.auxiliary[slot]
    return kept


def move_columns(
    view_of_column: IntArray,
    partitions: Sequence[Partition],
    pool: Sequence[Partition],
    log_marginal: LogMarginal,
    draw_fresh: Callable[[], Partition],
    column_alpha: float,
    column_d: float,
    rng: np.random.Generator,
) -> tuple[IntArray, list[Partition], list[Partition]]:
    """One sweep over the columns, in random order: the views, their partitions and the pool.

    A pool of fresh draws may be taken for each sweep, and thrown away after it.
    """
    views, held, pool = view_of_column.copy(), list(partitions), list(pool)
    for column in rng.permutation(views.size).tolist():
        alone = column_moves.is_alone(column, views)
        slot = int(rng.integers(len(pool))) if alone else NO_SLOT
        places = find_places(column, views, held, pool, slot)
        weights = column_moves.log_weights(
            column, places, held, log_marginal, column_alpha, column_d
        )
        choice = draw_index(weights, rng)
        fresh = draw_fresh() if is_fresh_needed(places, slot, choice) else None
        pool = update_pool(pool, places, slot, choice, fresh)
        views, held = column_moves.put(column, views, held, places, choice)
    return views, held, pool
