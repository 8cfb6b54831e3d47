"""What a view keeps of its categorical features: counts by slot and cluster, to score rows by.

For feature f with weights alpha_fv, of sum A_f, the predictive of value v in cluster k is

    (alpha_fv + c_fvk) / (A_f + n_fk),

with c the counts and n_fk the rows of the cluster whose cell is not missing. Tables hold alpha + c
itself and not its logarithm: a row's score is a product, an update writes one number, and no log or
exp is taken. A missing cell has a slot of its own whose entry is A_f + n_fk, so that its ratio is
one and no case is told apart.

Products are of four single-precision entries, then of sixteen features in double precision, then of
their common denominator `inverse`. Where there are many features each value is divided by its
frequency in all rows (`scale`, the same for all clusters), which keeps products near one. Entries
are written as weight + count from whole counts, never added to, so that they do not drift.
"""

from typing import Any, NamedTuple

import numpy as np

from temperance.crosscat.compilation import compiled, inner, reordered

GROUP = 16
U = np.uint64


class CategoricalStatistics(NamedTuple):
    """Counts of the categorical features of a view. A slot is a value of a feature."""

    place: Any  # int64[f], which columns of the family's matrix are the view's
    start: Any  # int64[f], each feature's first slot
    missing: Any  # int64[f], the slot of a missing cell
    num_full: int  # features without missing cells, which come first
    total: Any  # float64[f], A_f
    weight: Any  # float32[slots]; of the missing slot A_f
    scale: Any  # float64[slots]; of the missing slot 1
    counts: Any  # int32[slots * stride]; of the missing slot n_fk
    table: Any  # float32[slots * stride]
    inverse: Any  # float64[groups * stride]
    slots: Any  # uint64[f], of the row at hand


def categorical_statistics(
    place: Any, num_values: Any, num_full: int, frequencies: list[Any], stride: int
) -> CategoricalStatistics:
    """No row is in, and no weights are set.

    `frequencies` are those of all values but the missing one, by feature.
    """
    start = np.concatenate([[0], np.cumsum(np.asarray(num_values, np.int64) + 2)])
    total, num = int(start[-1]), len(place)
    scale = np.ones(total)
    for f in range(num):
        scale[start[f] : start[f + 1] - 1] = 1.0 / np.asarray(frequencies[f])
    return CategoricalStatistics(
        np.ascontiguousarray(place, np.int64),
        start[:-1].astype(np.int64),
        start[1:].astype(np.int64) - 1,
        num_full,
        np.zeros(num),
        np.zeros(total, np.float32),
        scale,
        np.zeros(total * stride, np.int32),
        np.zeros(total * stride, np.float32),
        np.zeros(-(-num // GROUP) * stride),
        np.zeros(num, U),
    )


@inner
def find_slots(codes: Any, group: Any, row: int) -> None:
    """The slots of a row's cells, for scoring and for updates."""
    place, start, slots = group.place, group.start, group.slots
    for f in range(U(place.shape[0])):
        slots[f] = U(start[f]) + U(codes[row, place[f]])


@reordered
def multiply_cells(group: Any, used: int, product: Any, scaled: bool) -> None:
    """Multiplies the predictives of the row's cells into `product`, by place.

    They are divided by the values' frequencies if `scaled`.
    """
    slots, scale, t, inverse = group.slots, group.scale, group.table, group.inverse
    num, lanes, step = U(slots.shape[0]), U(used), U(product.shape[0])
    first, block = U(0), U(0)
    while first < num:
        end = min(first + U(GROUP), num)
        common = 1.0
        if scaled:
            for f in range(first, end):
                common *= scale[slots[f]]
        f = first
        while f + U(8) <= end:
            a, b = slots[f] * step, slots[f + U(1)] * step
            c, d = slots[f + U(2)] * step, slots[f + U(3)] * step
            p, q = slots[f + U(4)] * step, slots[f + U(5)] * step
            r, s = slots[f + U(6)] * step, slots[f + U(7)] * step
            for k in range(lanes):
                product[k] *= np.float64(
                    (t[a + k] * t[b + k]) * (t[c + k] * t[d + k])
                ) * np.float64((t[p + k] * t[q + k]) * (t[r + k] * t[s + k]))
            f += U(8)
        while f + U(4) <= end:
            a, b = slots[f] * step, slots[f + U(1)] * step
            c, d = slots[f + U(2)] * step, slots[f + U(3)] * step
            for k in range(lanes):
                product[k] *= np.float64((t[a + k] * t[b + k]) * (t[c + k] * t[d + k]))
            f += U(4)
        while f < end:
            a = slots[f] * step
            for k in range(lanes):
                product[k] *= np.float64(t[a + k])
            f += U(1)
        at = block * step
        for k in range(lanes):
            product[k] *= inverse[at + k] * common
        block += U(1)
        first = end


@inner
def log_frequency(group: Any) -> float:
    """The log of what `multiply_cells` divides by, of the row whose slots are found."""
    found = 0.0
    for f in range(group.place.shape[0]):
        found -= np.log(group.scale[group.slots[f]])
    return found


@inner
def log_cells(group: Any, k: int, size: Any) -> float:
    """Log of `multiply_cells` at place k, for rows whose products leave the range of numbers."""
    found = 0.0
    for f in range(group.place.shape[0]):
        slot = group.slots[f]
        if slot != U(group.missing[f]):
            seen = size[k]
            if f >= group.num_full:
                seen = group.counts[group.missing[f] * size.shape[0] + k]
            above = np.float64(group.table[slot * U(size.shape[0]) + U(k)])
            found += np.log(above / (group.total[f] + seen) * group.scale[slot])
    return found


@inner
def change_counts(group: Any, k: int, size: Any, sign: int) -> None:
    """The row whose slots are found enters place k (sign 1) or leaves it (-1)."""
    slots, missing, weight, counts, table = (
        group.slots, group.missing, group.weight, group.counts, group.table
    )  # fmt: skip
    step, place, one = U(size.shape[0]), U(k), np.int32(sign)
    for f in range(U(group.num_full)):
        slot = slots[f]
        at = slot * step + place
        count = counts[at] + one
        counts[at] = count
        table[at] = weight[slot] + np.float32(count)
    for f in range(U(group.num_full), U(slots.shape[0])):
        if slots[f] != U(missing[f]):
            for slot in (slots[f], U(missing[f])):
                at = slot * step + place
                count = counts[at] + one
                counts[at] = count
                table[at] = weight[slot] + np.float32(count)
    divide_place(group, k, size)


@reordered
def divide_place(group: Any, k: int, size: Any) -> None:
    """The common denominators of place k."""
    total, missing, counts, inverse = group.total, group.missing, group.counts, group.inverse
    num, full, step = U(total.shape[0]), U(group.num_full), U(size.shape[0])
    rows = np.float64(size[k])
    first, at = U(0), U(k)
    while first < num:
        end = min(first + U(GROUP), num)
        below = 1.0
        for f in range(first, min(end, full)):
            below *= total[f] + rows
        for f in range(max(first, full), end):
            below *= total[f] + counts[U(missing[f]) * step + U(k)]
        inverse[at] = 1.0 / below
        at += step
        first = end


@compiled
def set_weights(group: Any, f: int, weights: Any) -> None:
    """New weights of the view's feature f: its known values, then those never seen.

    `refresh` makes them count.
    """
    total = 0.0
    for v in range(weights.shape[0]):
        total += weights[v]
        group.weight[group.start[f] + v] = weights[v]
    group.total[f] = total
    group.weight[group.missing[f]] = total


@compiled
def recount(codes: Any, group: Any, labels: Any, rows: Any, stride: int) -> None:
    """All counts again, of the rows that are in."""
    group.counts[:] = 0
    for row in rows:
        find_slots(codes, group, row)
        for f in range(group.place.shape[0]):
            slot, gap = group.slots[f], U(group.missing[f])
            if slot != gap:
                group.counts[slot * U(stride) + U(labels[row])] += 1
                if f >= group.num_full:
                    group.counts[gap * U(stride) + U(labels[row])] += 1


@compiled
def refresh(group: Any, size: Any) -> None:
    """Tables and denominators of all places, from counts and weights."""
    stride = size.shape[0]
    for slot in range(group.weight.shape[0]):
        for at in range(slot * stride, (slot + 1) * stride):
            group.table[at] = group.weight[slot] + np.float32(group.counts[at])
    for k in range(stride):
        divide_place(group, k, size)


def widened(group: CategoricalStatistics, stride: int, wider: int) -> CategoricalStatistics:
    """The same counts with room for more places; tables are to be refreshed."""
    slots = len(group.weight)
    counts = np.zeros((slots, wider), np.int32)
    counts[:, :stride] = group.counts.reshape(slots, stride)
    return group._replace(
        counts=counts.ravel(),
        table=np.zeros(slots * wider, np.float32),
        inverse=np.zeros(-(-len(group.place) // GROUP) * wider),
    )
