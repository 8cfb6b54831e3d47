"""Nested subsamples of the rows: how many rows each rung has, and in which order rows enter.

A subsample is the first rows of an order, so that sizes that increase make subsamples that are
nested. An order is drawn without sorting, so that a fresh subsample costs less than the rows it
spares: sorting random keys takes XLA 60 ms for 200,000 rows on a CPU, twenty times a pass over
their likelihood, and a Feistel network a few passes of integer arithmetic. Write i < a^2 as a pair
of digits (l, r) in base a. One round is

    (l, r)  ->  (r, (l + f(r)) mod a),

a bijection of {0, ..., a^2 - 1} whatever the function f. With random f drawn afresh, four rounds
are hard to tell from a random permutation (Luby and Rackoff 1988); six are used. For n rows a is
the smallest base with a^2 >= n, and an index that lands at n or beyond is sent through again until
it does not (cycle walking), which leaves a bijection of {0, ..., n - 1}.

No sampler relies on all orders being equally likely. A tempered transition is exact for every law
of its subsamples that does not look at the state, and parallel tempering for every fixed order.

**Strata.** Rows carry labels, and every prefix is to hold each label's share. Slots are laid out
once: first one for each label, then always the label that is farthest behind its share. A row's
slot is drawn among those of its label.
"""

import math
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from temperance._types import Key, Numbers
from temperance.errors import ArgumentError, DataError


class SizeWarning(UserWarning):
    """Rungs that would have the same number of rows were merged."""


def checked_sizes(sizes: Numbers, num_rows: int) -> tuple[int, ...]:
    """Numbers of rows, if they can be a ladder's; shares of all rows become numbers first.

    Rungs that round to the same number of rows are merged, with a warning.
    """
    try:
        values = np.asarray(sizes, float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"sizes: wanted numbers of rows that increase, got {sizes!r}"
        ) from error
    if values.ndim != 1 or values.size < 2:
        raise ArgumentError(
            f"sizes: a ladder needs at least two rungs in one vector, got shape {values.shape}; "
            "for a single rung use method='plain'"
        )
    if not np.isfinite(values).all() or (np.diff(values) < 0).any() or values[0] < 0:
        raise ArgumentError(f"sizes must be finite and increase (rung 0 is hottest), got {values}")
    if values[-1] == 1.0 and num_rows > 1:
        values = np.where(values == 0, 0, np.maximum(1, np.round(values * num_rows)))
    if (values != np.round(values)).any():
        raise ArgumentError(
            f"sizes: wanted whole numbers of rows, or shares of them that end at 1.0, got {values}"
        )
    if values[-1] != num_rows:
        raise DataError(
            f"sizes must end at all {num_rows} rows, the target (or at 1.0, as shares of them); "
            f"got {values}"
        )
    merged = np.unique(values.astype(int))
    if merged.size < values.size:
        warn_of_merging(values.size, merged)
    if merged.size < 2:
        raise DataError(f"sizes: all rungs have {num_rows} rows; give smaller ones")
    return tuple(int(value) for value in merged)


def warn_of_merging(wanted: int, sizes: np.ndarray) -> None:
    """Say that fewer rungs are left than were asked for."""
    warnings.warn(
        f"{wanted - sizes.size} rung(s) had as many rows as a neighbour and were merged: "
        f"{sizes.size} are left, of {sizes.tolist()} rows",
        SizeWarning,
        stacklevel=4,
    )


ROUNDS = 6
# Every label is a permutation of its own in the compiled program.
MOST_LABELS = 64


class Strata(eqx.Module):
    """For each label, its rows and the slots they may take."""

    rows: tuple[Int[Array, " _"], ...]
    slots: tuple[Int[Array, " _"], ...]

    @classmethod
    def of(cls, labels: Numbers, num_rows: int) -> "Strata":
        """The strata of one label a row."""
        values = np.asarray(labels)
        if values.shape != (num_rows,):
            raise DataError(
                f"strata: wanted one label for each of the {num_rows} rows, got shape "
                f"{values.shape}"
            )
        _, label, counts = np.unique(values, return_inverse=True, return_counts=True)
        if counts.size > MOST_LABELS:
            raise DataError(
                f"strata: {counts.size} different labels, at most {MOST_LABELS} are possible; "
                "group rare ones, or cut a continuous variable into quantiles"
            )
        slots = slot_labels(counts)
        return cls(
            tuple(jnp.asarray(np.flatnonzero(label == c)) for c in range(counts.size)),
            tuple(jnp.asarray(np.flatnonzero(slots == c)) for c in range(counts.size)),
        )

    def labels(self) -> Int[Array, " n"]:
        """The label of each place, as a number."""
        count = sum(slots.shape[0] for slots in self.slots)
        labels = jnp.zeros((count,), jnp.int32)
        for number, slots in enumerate(self.slots):
            labels = labels.at[slots].set(number, unique_indices=True)
        return labels

    def reordered(self, order: Int[Array, " n"]) -> "Strata":
        """The strata of the same rows once they are in `order`."""
        place = np.argsort(np.asarray(order))
        return Strata(tuple(jnp.asarray(place[np.asarray(r)]) for r in self.rows), self.slots)


def slot_labels(counts: np.ndarray) -> np.ndarray:
    """The label of each slot, such that every prefix has its share of each label.

    The j-th of m slots of a label stands at (j - 1/2) / m of the way; the first one of each label
    comes before all others.
    """
    labels = np.repeat(np.arange(counts.size), counts)
    rank = np.concatenate([np.arange(m) for m in counts])
    place = np.where(rank == 0, -1.0, (rank + 0.5) / counts[labels])
    return labels[np.lexsort((labels, place))]


# Compiled, because a loop called by itself is compiled anew each time, once for every label.
@eqx.filter_jit
def shuffle(key: Key, num_rows: int, strata: Strata | None = None) -> Int[Array, " n"]:
    """A random order of the rows: `order[i]` is the row at place i."""
    if strata is None:
        return permutation(key, num_rows)
    order = jnp.zeros((num_rows,), jnp.int32)
    keys = jax.random.split(key, len(strata.rows))
    for one, rows, slots in zip(keys, strata.rows, strata.slots, strict=True):
        mixed = rows[permutation(one, rows.shape[0])]
        order = order.at[slots].set(mixed.astype(jnp.int32), unique_indices=True)
    return order


def permutation(key: Key, n: int, count: int | None = None) -> Int[Array, " count"]:
    """A random permutation of 0 ... n-1, or its first `count` entries."""
    base = max(2, math.isqrt(max(n - 1, 0)) + 1)
    tables = jax.random.randint(key, (ROUNDS, base), 0, base, jnp.int32)

    def encipher(index: Array) -> Array:
        left, right = index // base, index % base
        for table in tables:
            left, right = right, (left + table[right]) % base
        return left * base + right

    def walk(index: Array) -> Array:
        return jnp.where(index < n, index, encipher(index))

    first = encipher(jnp.arange(n if count is None else count, dtype=jnp.int32))
    return jax.lax.while_loop(lambda index: jnp.any(index >= n), walk, first)
