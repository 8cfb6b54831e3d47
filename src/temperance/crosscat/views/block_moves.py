"""Columns found views on partitions that are made for them, alone or together.

A view that is founded on a draw of the prior (column_moves.py) almost never explains columns of
many rows. Here the partition is drawn with them in sight. Let B be a block of columns that share a
view. The rows, in some random order, take their seats one after the other by (*) of row_gibbs.py
with the columns of B alone, which has probability

    q(pi) = p(pi) p(X_B | pi) / w(pi),    w(pi) = prod_i p(x_i | the rows before it in their seats),

because each seat is drawn from its conditional law, whose normaliser is the predictive. Among other
views u and one such partition pi, with b columns in B, the block goes as one to

    view u          with weight (|u| - d) ... (|u| + b - 1 - d)       prod_(c in B) p(X_c | pi_u)
    a view on pi    with weight (alpha + d K) (1 - d) ... (b - 1 - d)  w(pi).

If B is all of its view, that view's partition is pi, and w is that of seating rows where they are.

**Which block.** A column c and a set A of columns around it are drawn without regard to the state;
B are those of A that share c's view, and views that hold others of A are left out. So the same c
and A find the same block and the same views after the step as before it.

*Why it is exact.* Let every state carry c, A, an order of the rows and, where B has company, a draw
pi of q. Founding a view on pi turns p(pi) p(X_B | pi) into q(pi) w(pi), so that given pi the
weights are the conditional law of where B is. w(pi) is an unbiased estimate of the evidence of the
block: it leaves a view that explains it worse than clusters of its own would. Columns of which none
alone has clusters, but whose values go together, can only leave together.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from temperance.crosscat.families.grid import FloatArray, draw_index
from temperance.crosscat.partitions import pitman_yor
from temperance.crosscat.partitions.column_moves import IntArray, LogMarginal, Places
from temperance.crosscat.partitions.partition import Partition
from temperance.crosscat.partitions.pitman_yor import PitmanYorGrids
from temperance.crosscat.views.clusters import no_labels
from temperance.crosscat.views.view import Ground, Hyperparameters, View

# With more rows than this, fewer blocks than columns are searched for in a sweep.
ROWS_AT_EASE = 20_000


def num_searched(num_columns: int, num_rows: int) -> int:
    """How many blocks of columns look for a view in one sweep."""
    return max(1, min(num_columns, math.ceil(num_columns * ROWS_AT_EASE / max(num_rows, 1))))


def draw_seats(view: View, order: IntArray, rng: np.random.Generator) -> float:
    """Rows take their seats in an empty view, in `order`; returns log w of where they sit."""
    return view.run(order, rng, weighed=True)


def log_seats(
    view: View,
    order: IntArray,
    labels: npt.NDArray[np.int32],
    hyper: Hyperparameters,
    rng: np.random.Generator,
) -> float:
    """Log w of a partition whose rows take their seats in `order`, which `labels` are in too.

    It is found backwards: all sit, and the last to come is the first to leave. The view is empty
    in the end.
    """
    view.seat_rows(labels, order, hyper, packed=False)
    return -view.run(-1 - order[::-1], rng, weighed=True)


def choose_block(
    view_of_column: IntArray, rng: np.random.Generator
) -> tuple[list[int], npt.NDArray[np.bool_]]:
    """The block of a step, and which columns are of the set that it was found in."""
    num = len(view_of_column)
    # From one column on average to half of all.
    share = math.exp(rng.uniform(math.log(1.0 / num), math.log(0.5))) if num > 2 else 0.5
    inside = rng.random(num) < share
    column = int(rng.integers(num))
    inside[column] = True
    return block_of(column, inside, view_of_column), inside


def block_of(column: int, inside: npt.NDArray[np.bool_], view_of_column: IntArray) -> list[int]:
    """The columns of a set that share a view with one of them."""
    return np.flatnonzero(inside & (view_of_column == view_of_column[column])).tolist()


def open_views(
    block: Sequence[int], inside: npt.NDArray[np.bool_], view_of_column: IntArray
) -> Places:
    """The views that a block may join, and their columns without it."""
    without = inside.copy()
    without[list(block)] = False
    closed = set(view_of_column[without].tolist())
    others = np.delete(view_of_column, block)
    sizes = np.bincount(others, minlength=int(view_of_column.max()) + 1)
    views = [view for view in np.flatnonzero(sizes).tolist() if view not in closed]
    return Places(tuple(views), tuple(int(sizes[view]) for view in views), ())


def log_block_weights(
    num: int, sizes: Sequence[int], num_views: int, alpha: float, d: float
) -> FloatArray:
    """Log prior weights of a block of `num` columns: of views of those sizes, then of a new one.

    `num_views` is the number of views that there are without the block.
    """
    more = np.arange(num)
    joining = [float(np.log(size + more - d).sum()) for size in sizes]
    founding = math.log(alpha + d * num_views) if num_views else 0.0
    return np.array([*joining, founding + float(np.log(more[1:] - d).sum())])


class BlockViews:
    """Views of few columns, one in use at a time and cleared after it: all share their labels."""

    def __init__(self, ground: Ground):
        self._ground = ground
        self._made: dict[tuple[int, ...], View] = {}
        self._labels = no_labels(ground.table.num_rows)

    def empty(self, block: Sequence[int], alpha: float, d: float, hyper: Hyperparameters) -> View:
        """The view of some columns; whoever lets rows in clears it again."""
        key = tuple(block)
        view = self._made.get(key)
        if view is None:
            view = View(self._ground, key, alpha, d, self._labels)
            if len(key) == 1:
                self._made[key] = view
        view.set_process(alpha, d)
        view.set_hyper(hyper)
        return view


def search_views(
    view_of_column: IntArray,
    partitions: list[Partition],
    log_marginal: LogMarginal,
    rows: IntArray,
    process: tuple[float, float],
    row_grids: PitmanYorGrids,
    block_views: BlockViews,
    hyper: Hyperparameters,
    rng: np.random.Generator,
) -> tuple[IntArray, list[Partition]]:
    """Some blocks of columns stay, join another view or found one that is made for them."""
    views, held = view_of_column.copy(), list(partitions)
    for _ in range(num_searched(len(views), len(rows))):
        block, inside = choose_block(views, rng)
        places = open_views(block, inside, views)
        order = rng.permutation(len(rows))
        whole = len(block) == int(np.count_nonzero(views == views[block[0]]))
        if whole:
            mine = held[views[block[0]]]
            view = block_views.empty(block, mine.alpha, mine.d, hyper)
            log_weight = log_seats(view, rows[order], mine.labels[order], hyper, rng)
        else:
            view = block_views.empty(block, *pitman_yor.draw_prior(row_grids, rng), hyper)
            log_weight = draw_seats(view, rows[order], rng)
            mine = view.partition(rows)
        view.clear(rows)
        num_views = len(held) - whole
        logs = log_block_weights(len(block), places.sizes, num_views, *process)
        for i, view in enumerate(places.views):
            logs[i] += sum(log_marginal(column, held[view]) for column in block)
        logs[-1] += log_weight
        views, held = put_block(block, views, held, places, draw_index(logs, rng), mine)
    return views, held


def put_block(
    block: Sequence[int],
    view_of_column: IntArray,
    partitions: Sequence[Partition],
    places: Places,
    choice: int,
    mine: Partition,
) -> tuple[IntArray, list[Partition]]:
    """The state with a block at place `choice`, views without columns closed up."""
    moved, held = view_of_column.copy(), list(partitions)
    if choice < len(places.views):
        moved[list(block)] = places.views[choice]
    else:
        moved[list(block)] = len(held)
        held.append(mine)
    kept, packed = np.unique(moved, return_inverse=True)
    return packed.astype(np.int64), [held[view] for view in kept]
