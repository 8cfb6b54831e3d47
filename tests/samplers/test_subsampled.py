"""Parallel tempering and tempered transitions on nested subsamples leave their laws invariant."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.samplers import broken_subsampled as broken
from tests.shared.subsampled_rows import draw_rungs, make_ladder, make_rows, order_law

from temperance._types import Key
from temperance.errors import ArgumentError
from temperance.ladders.prefix import PrefixLadder
from temperance.moves.combine import alternate
from temperance.moves.hmc import hmc
from temperance.moves.mala import mala
from temperance.moves.metropolis import metropolis
from temperance.moves.move import AbstractMove, Params
from temperance.rows.nested_subsamples import Strata, shuffle
from temperance.samplers.parallel.tempering import ParallelState, ParallelTempering
from temperance.samplers.transitions import TemperedTransitions, TransitionState
from temperance.testing import Verdict, invariance

SIZES, SHARED = (1, 4, 12), 0.6


class Step(eqx.Module):
    sampler: ParallelTempering | TemperedTransitions

    def __call__(self, key: Key, state: ParallelState | TransitionState):
        return self.sampler.step(key, state)[0]


class Product(eqx.Module):
    """One exact draw a rung; where rows change places, an exact draw of their order too."""

    sampler: ParallelTempering
    shared: float = eqx.field(static=True)

    def __call__(self, key: Key) -> ParallelState:
        ladder = self.sampler.ladder
        assert isinstance(ladder, PrefixLadder)
        key_order, key_rungs = jax.random.split(key)
        state = self.sampler.init(jnp.zeros(2))
        order = jnp.arange(ladder.num_rows)
        if state.order is not None:
            orders, weights = order_law(ladder, self.shared)
            which = jax.random.choice(key_order, len(orders), p=jnp.asarray(weights))
            order = jnp.asarray(orders, jnp.int32)[which]
        x = draw_rungs(key_rungs, ladder.reordered(order), self.shared)
        at = broken.placed(ladder, state._replace(points=state.points._replace(position=x)), order)
        return at if state.order is not None else at._replace(order=None)


def statistics(state: ParallelState) -> Array:
    """Of each rung, of what is cached of it, of rungs together, and of the order of the rows."""
    x = jnp.tanh(state.points.position - jnp.array([[0.6, -0.4]]))
    k = x.shape[0]
    table = make_ladder(SIZES if state.order is None else (1, 3, 4)).weight_table()
    known = jnp.tanh(0.1 * jnp.sum(table * state.points.components, axis=1) + 2.0)
    coupled = [x[i, 0] * x[j, 1] for i in range(k) for j in range(k) if i != j]
    parts = [jnp.ravel(x), known, jnp.stack(coupled), x.sum(axis=0)]
    if state.order is not None:
        first = (state.order[0] == jnp.arange(4)).astype(float)
        last = (state.order[3] == jnp.arange(4)).astype(float)
        parts += [first, first * x[0, 0], last * x[1, 1], first * known[0], last * known[1]]
    return jnp.concatenate(parts)


def parallel(
    kind: type[ParallelTempering] = ParallelTempering,
    ladder: PrefixLadder | None = None,
    move: AbstractMove | None = None,
    size: float = 0.8,
    **options,
) -> ParallelTempering:
    ladder = make_ladder(SIZES) if ladder is None else ladder
    move = metropolis() if move is None else move
    k, parts = ladder.num_rungs, len(move.step_sizes)
    return kind(ladder, move, Params(jnp.full((k, parts), size), jnp.ones((k, 2))), **options)


def verdict_on(sampler: ParallelTempering, seed: int, shared: float = 0.0) -> Verdict:
    # A row of four is seldom the one that is exchanged.
    least = 0.02 if sampler.refresh else 0.1
    exact = Product(ParallelTempering(make_ladder(sampler.ladder.sizes, shared), sampler.move,
                                      sampler.params, refresh=sampler.refresh), shared)  # fmt: skip
    return invariance(
        Step(sampler), exact, statistics, num_steps=9, seed=seed, num_replicates=2048,
        band=(least, 1.0),
    )  # fmt: skip


CASES = {
    "deo": {},
    "sweep": {"scheme": "sweep"},
    "two rounds of seo": {"scheme": "seo", "swaps_per_sweep": 2},
    "position hmc": {"move": hmc(2), "size": 0.4},
    "mala": {"move": mala(), "size": 0.5},
}


@pytest.mark.parametrize("name", CASES)
def test_swaps_of_subsamples_leave_the_product_law_invariant(name: str, seed: int):
    verdict = verdict_on(parallel(**CASES[name]), seed)
    assert verdict.passed, verdict


def test_so_do_swaps_of_rows_that_look_back(seed: int):
    verdict = verdict_on(parallel(ladder=make_ladder(SIZES, SHARED)), seed, SHARED)
    assert verdict.passed, verdict


def test_a_prior_as_the_hottest_rung_is_drawn(seed: int):
    ladder = make_ladder((0, 3, 9))
    verdict = invariance(
        Step(parallel(ladder=ladder)), Product(parallel(ladder=ladder), 0.0),
        lambda s: jnp.ravel(jnp.tanh(s.points.position)), num_steps=9, seed=seed,
        num_replicates=2048, band=(0.1, 1.0),
    )  # fmt: skip
    assert verdict.passed, verdict


def broken_ladder(kind: type[PrefixLadder], shared: float) -> PrefixLadder:
    right = make_ladder(SIZES, shared)
    return kind(right.log_prior, right.terms, right.data, right.sizes, independent=shared == 0)


TWINS = {
    "not lifted": (
        lambda: parallel(ladder=broken_ladder(broken.LadderThatForgetsToLift, 0.0)),
        0.0,
    ),
    "swapped unlifted": (lambda: parallel(broken.ParallelThatSwapsUnlifted), 0.0),
    "taken for independent": (
        lambda: parallel(ladder=broken_ladder(broken.LadderThatTakesRowsForIndependent, SHARED)),
        SHARED,
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_invariance_rejects_broken_subsamples(name: str, seed: int):
    make, shared = TWINS[name]
    verdict = verdict_on(make(), seed, shared)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


# Refreshes: four rows in three rungs, so that all 24 orders can be drawn from exactly.


@pytest.mark.parametrize(
    ("shared", "pairs"),
    [
        pytest.param(0.0, 1, marks=pytest.mark.slow),
        (0.0, 2),
        (SHARED, 1),
        pytest.param(SHARED, 2, marks=pytest.mark.slow),
    ],
)
def test_exchanging_rows_leaves_the_law_of_replicas_and_order_invariant(
    shared: float, pairs: int, seed: int
):
    sampler = parallel(ladder=make_ladder((1, 3, 4), shared), refresh=pairs)
    verdict = verdict_on(sampler, seed, shared)
    assert verdict.passed, verdict


@pytest.mark.parametrize("kind", [broken.ParallelWithANaiveRedraw, broken.ParallelWithStaleBlocks])
def test_invariance_rejects_broken_refreshes(kind: type[ParallelTempering], seed: int):
    verdict = verdict_on(parallel(kind, make_ladder((1, 3, 4)), refresh=2), seed)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


@pytest.mark.parametrize("shared", [pytest.param(0.0, marks=pytest.mark.slow), SHARED])
def test_after_a_refresh_points_know_their_new_rows(shared: float, seed: int):
    ladder = make_ladder((2, 5, 12), shared)
    sampler = parallel(ladder=ladder, refresh=3)
    state = sampler.init(jnp.zeros(2))
    step = eqx.filter_jit(sampler.step)
    for i in range(6):
        state, _ = step(jax.random.fold_in(jax.random.key(seed), i), state)
    np.testing.assert_array_equal(np.sort(state.order), np.arange(12))
    assert not np.array_equal(state.order, np.arange(12))
    fresh = broken.placed(ladder, state, state.order)
    table = ladder.weight_table()
    np.testing.assert_allclose(
        table * state.points.components, table * fresh.points.components, rtol=1e-11
    )


@pytest.mark.parametrize("shared", [0.0, SHARED])
def test_strata_keep_their_places_under_exchanges(shared: float, seed: int):
    labels = np.arange(12) % 3
    ladder = make_ladder((3, 6, 12), shared)
    strata = Strata.of(labels, 12)
    ladder = eqx.tree_at(
        lambda one: one.strata, ladder, strata, is_leaf=lambda leaf: leaf is None
    ).reordered(jnp.asarray(shuffle(jax.random.key(seed), 12, strata)))
    by_place = np.asarray(strata.labels())
    rows = [tuple(row) for row in np.asarray(make_rows(12))]
    sampler = parallel(ladder=ladder, refresh=5)
    state = sampler.init(jnp.zeros(2))
    step = eqx.filter_jit(sampler.step)
    for i in range(8):
        state, _ = step(jax.random.fold_in(jax.random.key(seed), i), state)
    now = [labels[rows.index(tuple(row))] for row in np.asarray(ladder.data[state.order])]
    np.testing.assert_array_equal(now, by_place)
    assert not np.array_equal(state.order, np.arange(12))


def test_what_cannot_be_refreshed_is_refused():
    with pytest.raises(ArgumentError, match="does not telescope"):
        parallel(refresh=1, complete=True)
    ladder = make_ladder(SIZES, SHARED)
    ordered = PrefixLadder(
        ladder.log_prior, ladder.terms, ladder.data, SIZES, independent=False, ordered=True
    )
    with pytest.raises(ArgumentError, match="order of the rows"):
        parallel(ladder=ordered, refresh=1)


# Tempered transitions


class Exact(eqx.Module):
    ladder: PrefixLadder
    shared: float = eqx.field(static=True)

    def __call__(self, key: Key) -> TransitionState:
        x = draw_rungs(key, self.ladder, self.shared)[-1]
        return TransitionState(self.ladder.evaluate(x, gradient=False))


def of_target(state: TransitionState) -> Array:
    u, v = jnp.tanh(2 * (state.point.position - jnp.array([0.6, -0.4])))
    density = jnp.tanh(0.1 * jnp.sum(state.point.components) + 2.0)
    return jnp.stack([u, v, u * v, u**2, v**2, density])


def transitions(
    kind: type[TemperedTransitions], move: AbstractMove, size: float, shared: float = 0.0
) -> TemperedTransitions:
    parts = len(move.step_sizes)
    return kind(
        make_ladder(SIZES, shared), move, Params(jnp.full((3, parts), size), jnp.ones((3, 2)))
    )


def transition_verdict(sampler: TemperedTransitions, seed: int, shared: float = 0.0) -> Verdict:
    return invariance(
        Step(sampler), Exact(make_ladder(SIZES, shared), shared), of_target, num_steps=9,
        seed=seed, num_replicates=4096,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("move", "size", "shared"),
    [
        (metropolis(), 0.8, 0.0),
        pytest.param(metropolis(), 0.8, SHARED, marks=pytest.mark.slow),
        pytest.param(hmc(2), 0.4, 0.0, marks=pytest.mark.slow),
        (alternate(metropolis(), mala()), 0.6, 0.0),
    ],
)
def test_transitions_on_fresh_subsamples_leave_the_target_invariant(
    move: AbstractMove, size: float, shared: float, seed: int
):
    sampler = transitions(TemperedTransitions, move, size, shared)
    verdict = transition_verdict(sampler, seed, shared)
    assert verdict.passed, verdict


def test_many_of_them_are_accepted(seed: int):
    sampler = transitions(TemperedTransitions, metropolis(), 0.8)
    exact = Exact(make_ladder(SIZES), 0.0)

    def acceptance(key: Key) -> Array:
        return sampler.step(key, exact(jax.random.fold_in(key, 1)))[1].transition_acceptance

    keys = jax.random.split(jax.random.key(seed), 500)
    assert 0.1 < float(jnp.mean(jax.jit(jax.vmap(acceptance))(keys))) < 0.95


@pytest.mark.parametrize(
    "kind", [broken.TransitionsOnOtherRowsDownwards, broken.TransitionsDownThePrintedWay]
)
def test_invariance_rejects_broken_transitions(kind: type[TemperedTransitions], seed: int):
    verdict = transition_verdict(transitions(kind, metropolis(), 0.8), seed)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict
