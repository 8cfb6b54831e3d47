"""Parallel tempering leaves the product of the rungs' densities invariant, all rungs at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.ladders import broken_ladder
from tests.samplers.parallel import broken_tempering as broken

from temperance._types import Key
from temperance.errors import MoveError
from temperance.ladders.geometric import GeometricLadder
from temperance.moves.combine import alternate
from temperance.moves.hmc import hmc
from temperance.moves.metropolis import Metropolis, metropolis
from temperance.moves.move import AbstractMove, Params
from temperance.samplers.parallel.tempering import ParallelState, ParallelTempering
from temperance.testing import ConstantSwaps, CurvedGamma, ResetToRung, Verdict, invariance

TARGET = CurvedGamma()
HOT, EXACT = [0.1, 0.5, 1.0], [0.0, 0.4, 1.0]


class Step(eqx.Module):
    sampler: ParallelTempering

    def __call__(self, key: Key, state: ParallelState) -> ParallelState:
        return self.sampler.step(key, state)[0]


class Product(eqx.Module):
    """One exact draw a rung."""

    ladder: GeometricLadder
    gradient: bool = eqx.field(static=True)

    def __call__(self, key: Key) -> ParallelState:
        # Any sampler's state will do: the kind of move matters only for the gradients.
        move = hmc(1) if self.gradient else metropolis()
        k = self.ladder.num_rungs
        sampler = ParallelTempering(self.ladder, move, Params(jnp.ones((k, 1)), jnp.ones((k, 2))))
        return sampler.init_replicas(TARGET.draw_rungs(key, self.ladder.betas))


def statistics(state: ParallelState) -> Array:
    """Of each rung, of what is cached there, and of pairs of rungs together."""
    x = jnp.tanh(state.points.position + jnp.array([[0.5, -0.5]]))
    cached = jnp.tanh(0.3 * state.points.components)
    coupled = [jnp.ravel(x[i] * x[j]) for i, j in [(0, 1), (1, 2), (0, 2)]]
    twisted = x[:-1, 0] * x[1:, 1]
    return jnp.concatenate([jnp.ravel(x), jnp.ravel(cached), *coupled, twisted, x.sum(axis=0)])


def sampler_of(
    kind: type[ParallelTempering],
    ladder: GeometricLadder,
    scheme: str,
    move: AbstractMove,
    size: float,
) -> ParallelTempering:
    k = ladder.num_rungs
    return kind(ladder, move, Params(jnp.full((k, 1), size), jnp.ones((k, 2))), scheme)


def verdict_on(sampler: ParallelTempering, seed: int, gradient: bool = False) -> Verdict:
    exact = sampler.ladder.draw_hottest() is not None
    draw = Product(TARGET.ladder(sampler.ladder.betas, exact=exact), gradient)
    return invariance(
        Step(sampler), draw, statistics, num_steps=11, seed=seed, num_replicates=2048,
        band=(0.2, 1.0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scheme", "exact"),
    [
        ("deo", False),
        ("seo", False),
        ("sweep", False),
        ("deo", True),
        # How the hottest rung is refreshed does not touch the scheme; both are tested above.
        pytest.param("seo", True, marks=pytest.mark.slow),
        pytest.param("sweep", True, marks=pytest.mark.slow),
    ],
)
def test_every_scheme_leaves_the_product_law_invariant(scheme: str, exact: bool, seed: int):
    ladder = TARGET.ladder(EXACT if exact else HOT, exact=exact)
    sampler = sampler_of(ParallelTempering, ladder, scheme, metropolis(), 0.9)
    verdict = verdict_on(sampler, seed)
    assert verdict.passed, verdict


def test_two_rounds_of_swaps_leave_the_product_law_invariant(seed: int):
    one = sampler_of(ParallelTempering, TARGET.ladder(HOT), "deo", metropolis(), 0.9)
    two = ParallelTempering(one.ladder, one.move, one.params, "deo", swaps_per_sweep=2)
    verdict = verdict_on(two, seed)
    assert verdict.passed, verdict


def test_gradients_travel_with_their_points(seed: int):
    sampler = sampler_of(ParallelTempering, TARGET.ladder(EXACT, exact=True), "deo", hmc(2), 0.5)
    verdict = verdict_on(sampler, seed, gradient=True)
    assert verdict.passed, verdict
    state = sampler.init(jnp.zeros(2))
    step = eqx.filter_jit(sampler.step)
    for i in range(6):
        state, _ = step(jax.random.fold_in(jax.random.key(seed), i), state)
    fresh = sampler.init_replicas(state.points.position).points
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), state.points, fresh)


TWINS = {
    "exchanges another pair": (broken.ParallelWithTheWrongPair, GeometricLadder, "deo"),
    "ratio upside down": (ParallelTempering, broken_ladder.WithIncrementsReversed, "deo"),
    "stale rounds": (broken.ParallelWithStaleRounds, GeometricLadder, "deo"),
    "stale components": (broken.ParallelWithStaleComponents, GeometricLadder, "deo"),
}


@pytest.mark.parametrize("name", TWINS)
def test_invariance_rejects_broken_swaps(name: str, seed: int):
    kind, ladder_kind, scheme = TWINS[name]
    right = TARGET.ladder(HOT)
    ladder = ladder_kind(right.hot, right.cold, right.betas, bridge=True)
    verdict = verdict_on(sampler_of(kind, ladder, scheme, metropolis(), 0.9), seed)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


def test_a_wrong_sampler_at_the_hottest_rung_is_rejected(seed: int):
    """It biases every rung, the target's marginal included."""
    right = TARGET.ladder(EXACT, exact=True)
    ladder = GeometricLadder(
        right.hot, right.cold, right.betas, bridge=True, draw_hot=lambda key: TARGET.draw(key, 0.15)
    )
    verdict = verdict_on(sampler_of(ParallelTempering, ladder, "deo", metropolis(), 0.9), seed)
    assert not verdict.lawful, verdict


def test_the_replicas_are_a_permutation_and_carry_their_heading(seed: int):
    sampler = sampler_of(ParallelTempering, TARGET.ladder(HOT), "sweep", metropolis(), 0.9)
    state = sampler.init(jnp.zeros(2))
    step = eqx.filter_jit(sampler.step)
    seen = set()
    for i in range(30):
        before = state
        state, info = step(jax.random.fold_in(jax.random.key(seed), i), state)
        replica = np.asarray(state.replica)
        assert sorted(replica) == [0, 1, 2]
        changed = (replica != np.asarray(before.replica)).any()
        assert changed == bool(info.swapped.any())
        seen.add(tuple(replica))
    assert len(seen) > 3
    assert state.parity == 30


def test_moves_that_are_not_exact_are_refused():
    class Inexact(Metropolis):
        exact: bool = eqx.field(static=True, default=False)

    with pytest.raises(MoveError, match="exact"):
        sampler_of(ParallelTempering, TARGET.ladder(HOT), "deo", Inexact((None,), "unit"), 1.0)


def test_moves_that_are_not_reversible_are_welcome():
    move = alternate(metropolis(), metropolis())
    sampler_of(ParallelTempering, TARGET.ladder(HOT), "deo", move, 1.0)


# Round trips where the law is known.


def trips(
    acceptances: list[float], scheme: str, num_chains: int, burn: int, sweeps: int, seed: int
) -> np.ndarray:
    """Round trips of each chain in `sweeps` after `burn`."""
    ladder = ConstantSwaps(jnp.asarray(acceptances))
    k = ladder.num_rungs
    sampler = ParallelTempering(
        ladder, ResetToRung(), Params(jnp.ones((k, 1)), jnp.ones((k, 1))), scheme
    )

    def chain(key: Key) -> Array:
        state = sampler.init_replicas(jnp.arange(k, dtype=float)[:, None])

        def body(state: ParallelState, i: Array) -> tuple[ParallelState, Array]:
            state, _ = sampler.step(jax.random.fold_in(key, i), state)
            return state, state.round_trips

        return jax.lax.scan(body, state, jnp.arange(burn + sweeps))[1]

    counts = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(seed), num_chains))
    return np.asarray(counts[:, -1] - counts[:, burn - 1])


def test_every_swap_is_accepted_with_its_probability(seed: int):
    acceptances = jnp.array([0.3, 0.9, 0.6])
    ladder = ConstantSwaps(acceptances)
    sampler = ParallelTempering(
        ladder, ResetToRung(), Params(jnp.ones((4, 1)), jnp.ones((4, 1))), "deo"
    )
    state = sampler.init_replicas(jnp.arange(4.0)[:, None])
    for i in range(3):
        state, info = sampler.step(jax.random.key(i), state)
        np.testing.assert_allclose(info.swap_acceptance, acceptances, rtol=1e-12)


def test_without_rejections_every_replica_makes_a_trip_in_two_k_sweeps(seed: int):
    for num_rungs in (2, 5):
        counts = trips([1.0] * (num_rungs - 1), "deo", 2, 4 * num_rungs, 6 * num_rungs, seed)
        np.testing.assert_array_equal(counts, 3 * num_rungs)


def test_round_trips_obey_the_law_of_deo_and_seo_does_not(seed: int):
    acceptances = [0.4, 0.7, 0.55, 0.8]
    rate = float(ConstantSwaps(jnp.asarray(acceptances)).rate())
    assert abs(rate - 1 / (2 + 2 * sum((1 - a) / a for a in acceptances))) < 1e-12

    def z(scheme: str) -> float:
        rates = trips(acceptances, scheme, 400, 200, 400, seed) / 400
        return (rates.mean() - rate) / (rates.std(ddof=1) / np.sqrt(rates.size))

    assert abs(z("deo")) < 4.5
    assert z("seo") < -10
