"""Exchanging rows between nested subsamples, exactly.

Parallel tempering on nested subsamples may not redraw them: its hot replicas are distributed given
*these* subsamples, and a uniform redraw biases the target through the swaps. But the order of the
rows may be a part of the state. On replicas x_0 ... x_{K-1} and orders sigma of the rows, take

    prod_k p(x_k) exp(sum over places i < n_k of l_{sigma_i}(x_k)),      sigma uniform a priori.

The target's rung has all rows in every order, so its marginal is the posterior and independent of
the rest. Exchanging the rows at the places a < b, chosen whatever the state, changes the rungs with
a < n_k <= b alone and is accepted with

    log r = sum over these rungs of l_{sigma_b}(x_k) - l_{sigma_a}(x_k),

which answers the question that paper 1 leaves open in its section 5. Exchanges at disjoint pairs of
places do not look at each other's rows, so many are proposed and decided side by side. Terms that
look back see every row before theirs: there all pairs are exchanged together or not at all, with
the ratio of the likelihoods of the whole subsamples. Where rows have strata, a row goes only to a
place of its own label.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from temperance._types import Key, Point
from temperance.errors import ArgumentError
from temperance.ladders.ladder import weighted
from temperance.ladders.prefix import PrefixLadder, rows_at
from temperance.moves.accept import choose, decide
from temperance.rows.nested_subsamples import permutation


def exchange_rows(
    key: Key, ladder: PrefixLadder, points: Point, num_pairs: int
) -> tuple[Point, Int[Array, " n"], Float[Array, ""]]:
    """Points on the new subsamples, which place each row comes from, and the share accepted."""
    n = ladder.num_rows
    if 2 * num_pairs > n:
        raise ArgumentError(f"refresh: {num_pairs} pairs of rows need more than the {n} there are")
    key_places, key_accept = jax.random.split(key)
    places = permutation(key_places, n, 2 * num_pairs)
    first = jnp.minimum(places[:num_pairs], places[num_pairs:])
    second = jnp.maximum(places[:num_pairs], places[num_pairs:])
    allowed = jnp.ones(first.shape, bool)
    if ladder.strata is not None:
        # Labels belong to places, so that a rule about them does not look at the state.
        labels = ladder.strata.labels()
        allowed = labels[first] == labels[second]
    exchange = _apart if ladder.independent else _together
    points, accepted = exchange(key_accept, ladder, points, first, second, allowed)
    moved = exchanged(n, first, second, accepted)
    return points, moved, jnp.mean(accepted.astype(points.components.dtype))


def exchanged(
    n: int, first: Int[Array, " pairs"], second: Int[Array, " pairs"], accepted: Array
) -> Int[Array, " n"]:
    """The place that each place's row comes from."""
    places = jnp.arange(n, dtype=jnp.int32)
    places = places.at[first].set(jnp.where(accepted, second, first), unique_indices=True)
    return places.at[second].set(jnp.where(accepted, first, second), unique_indices=True)


def exchange_log_ratios(
    at_first: Float[Array, "rungs pairs"],
    at_second: Float[Array, "rungs pairs"],
    sizes: tuple[int, ...],
    first: Int[Array, " pairs"],
    second: Int[Array, " pairs"],
) -> Float[Array, " pairs"]:
    """Log r of exchanging the rows at places `first` < `second`.

    `at_first[k, e]` is the term of the row at `first[e]` for the replica of rung k. What stands
    there for a rung that an exchange leaves alone is not looked at, and may be infinite.
    """
    rows = jnp.asarray(sizes)[:, None]
    affected = (first[None] < rows) & (rows <= second[None])
    return jnp.sum(jnp.where(affected, at_second - at_first, 0.0), axis=0)


def _apart(
    key: Key, ladder: PrefixLadder, points: Point, first: Array, second: Array, allowed: Array
) -> tuple[Point, Array]:
    """Every pair decided by itself: the rows are independent."""
    rows = rows_at(ladder.data, first), rows_at(ladder.data, second)
    at_first, at_second = jax.lax.map(
        lambda x: (ladder.terms(x, rows[0]), ladder.terms(x, rows[1])), points.position
    )
    log_ratios = exchange_log_ratios(at_first, at_second, ladder.sizes, first, second)
    accepted = allowed & decide(jax.random.uniform(key, first.shape), log_ratios).accepted
    # What each block of each replica gains: the row that enters, less the row that leaves.
    ends = np.asarray(ladder.bounds[1:])
    gained = jnp.where(accepted[None], at_second - at_first, 0.0)
    enters = _block_of(first, ends) - _block_of(second, ends)
    components = points.components.at[:, 1:].add(gained @ enters.astype(gained.dtype))
    return points._replace(components=components), accepted


def _block_of(places: Array, ends: np.ndarray) -> Int[Array, "pairs blocks"]:
    """One where the place is inside the block, zero elsewhere."""
    begins = np.concatenate([[0], ends[:-1]])
    inside = (places[:, None] >= begins[None]) & (places[:, None] < ends[None])
    return inside.astype(int)


def _together(
    key: Key, ladder: PrefixLadder, points: Point, first: Array, second: Array, allowed: Array
) -> tuple[Point, Array]:
    """All pairs or none: a term looks at every row before its own."""
    proposed = ladder.reordered(exchanged(ladder.num_rows, first, second, allowed))
    new = [
        proposed.at(k).evaluate(jax.tree.map(lambda leaf, k=k: leaf[k], points.position),
                                gradient=False).components
        for k in range(ladder.num_rungs)
    ]  # fmt: skip
    new = jnp.stack(new)
    # The target has all rows before and after: its blocks change, its density does not.
    table = ladder.weight_table()[:-1]
    change = jax.vmap(weighted)(table, new[:-1]) - jax.vmap(weighted)(table, points.components[:-1])
    accepted = decide(jax.random.uniform(key), jnp.sum(change)).accepted
    components = choose(accepted, new, points.components)
    return points._replace(components=components), accepted & allowed
