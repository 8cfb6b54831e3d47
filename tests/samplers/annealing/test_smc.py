"""Sequential Monte Carlo as it runs: unbiased where it must be, adaptive within a bound, refused.

What is summed over all outcomes is in `test_smc_enumeration.py`; here the sampler draws.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy import stats
from tests.moves.fast_slow import fast_slow_rung as fast_slow
from tests.samplers.annealing import broken_smc as broken
from tests.samplers.annealing.test_smc_enumeration import (
    BETAS as POWERS_BETAS,
    LIKELIHOOD,
    POWERS,
    PRIOR,
    SIZES,
    TERMS,
    cycles,
)
from tests.samplers.test_transitions import Cycle, TableLadder

from temperance._types import Key
from temperance.engine.islands import (
    IslandEvidence,
    finished,
    init_islands,
    island_evidence,
    run_islands,
    step_islands,
)
from temperance.errors import ArgumentError, MoveError, UnknownNameError
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.prefix import PrefixLadder
from temperance.moves.combine import alternate
from temperance.moves.fast_slow.ensemble import ensemble
from temperance.moves.hmc import hmc
from temperance.moves.metropolis import Metropolis, metropolis
from temperance.moves.minibatch.mint import mint
from temperance.moves.move import AbstractMove, Params
from temperance.samplers.annealing.particles import ParticleState, conditional_share, next_beta
from temperance.samplers.annealing.resampling import SCHEMES, ancestors_at
from temperance.samplers.annealing.smc import SequentialMonteCarlo
from temperance.testing import ConjugateNormal, GaussianBridge, particles

Z = float(np.exp(POWERS[-1]).sum())
TARGET = np.exp(POWERS[-1]) / Z

# -- on a finite space, where the moments of Z-hat are known ---------------------------------------


class Three(Cycle):
    """On a cycle of three states."""

    def propose(self, key: Key, x: Array) -> Array:
        return (x + jnp.where(jax.random.bernoulli(key), 1.0, -1.0)) % 3


def draw_state(key: Key) -> Array:
    return jax.random.choice(key, 3, (1,), p=jnp.asarray(PRIOR)).astype(float)


def look(values: np.ndarray) -> Callable[[Array], Array]:
    table = jnp.asarray(values)
    return lambda x: table[x[0].astype(int)]


FIXED = Params(jnp.ones((4, 1)), jnp.ones((4, 1)))
ON_POWERS = GeometricLadder(
    look(np.log(PRIOR)), look(LIKELIHOOD), POWERS_BETAS, draw_hot=draw_state
)


def states(num: int, kind: broken.Kind = SequentialMonteCarlo, **options: Any):
    return kind(ON_POWERS, Three(), num, params=FIXED, **({"num_moves": 1} | options))


def constants(sampler: SequentialMonteCarlo, seed: int, num: int) -> tuple[np.ndarray, np.ndarray]:
    """Z-hat of many islands, and what each gives to every state of the target."""
    state, _ = run_islands(sampler, jax.random.key(seed), num)
    found = np.exp(np.asarray(state.log_z))
    place = np.asarray(state.points.position)[..., 0].astype(int)
    weights = np.exp(np.asarray(state.log_weights))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-10)
    shares = np.stack([(weights * (place == x)).sum(axis=1) for x in range(3)], axis=1)
    return found, found[:, None] * shares


def z_score(values: np.ndarray, truth: float) -> float:
    return float((values.mean() - truth) / (values.std() / np.sqrt(values.size)))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_particles_have_the_moments_of_the_enumeration(scheme: str, seed: int):
    """Of Z-hat itself, whose spread is small enough for the test to mean something."""
    wanted = particles.moments(POWERS, cycles(POWERS), 3, particles.resampled(scheme, 3))
    found, target = constants(states(3, resampling=scheme), seed, 30_000)
    assert abs(z_score(found, wanted.mean)) < 4.5
    assert abs(z_score(found**2, wanted.square)) < 4.5
    for x in range(3):
        assert abs(z_score(target[:, x], Z * TARGET[x])) < 4.5


def test_chains_have_them_too(seed: int):
    resample = particles.resampled("systematic", 2)
    wanted = particles.moments(POWERS, cycles(POWERS), 4, resample, length=2)
    sampler = states(4, num_ancestors=2, num_moves=None)
    found, target = constants(sampler, seed, 30_000)
    assert abs(z_score(found, wanted.mean)) < 4.5
    assert abs(z_score(found**2, wanted.square)) < 4.5
    assert abs(z_score(target[:, 1], Z * TARGET[1])) < 4.5


def test_without_resampling_every_time(seed: int):
    found, target = constants(states(3, resample_below=0.93), seed, 30_000)
    assert abs(z_score(found, Z)) < 4.5
    assert abs(z_score(target[:, 2], Z * TARGET[2])) < 4.5


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (broken.WeightsNotReset, {}),
        (broken.MeanOfLogs, {}),
        (broken.FixedOffset, {}),
        (broken.WeighedAfterMoves, {}),
        (broken.LastStatesWeighedByAll, {"num_ancestors": 2, "num_moves": None}),
        (broken.StartsNotResampled, {"num_ancestors": 2, "num_moves": None}),
    ],
)
def test_slips_are_rejected(kind: broken.Kind, options: dict[str, Any], seed: int):
    found, target = constants(states(4, kind, **options), seed, 30_000)
    scores = [z_score(target[:, x], Z * TARGET[x]) for x in range(3)]
    assert max(map(abs, [z_score(found, Z), *scores])) > 8


# -- on growing prefixes ---------------------------------------------------------------------------


def terms(x: Array, rows: Array) -> Array:
    return rows[:, x[0].astype(int)]


def on_rows(kind: type[PrefixLadder], **options: Any) -> SequentialMonteCarlo:
    ladder = kind(look(np.log(PRIOR)), terms, TERMS, SIZES, draw_prior=draw_state)
    return SequentialMonteCarlo(ladder, Three(), 4, params=FIXED, **options)


@pytest.mark.parametrize("options", [{"num_moves": 1}, {"num_ancestors": 2}], ids=str)
def test_prefixes_are_unbiased_whatever_the_order_of_the_rows(options: dict[str, Any], seed: int):
    target = PRIOR * np.exp(TERMS.sum(axis=0))
    found, shares = constants(on_rows(PrefixLadder, **options), seed, 3000)
    assert abs(z_score(found, target.sum())) < 4.5
    for x in range(3):
        assert abs(z_score(shares[:, x], target[x])) < 4.5


def test_increments_of_the_wrong_rows_are_rejected(seed: int):
    target = PRIOR * np.exp(TERMS.sum(axis=0))
    slipped, _ = constants(on_rows(broken.OneRowLate, num_moves=1), seed, 3000)
    assert abs(z_score(slipped, target.sum())) > 8


def test_rows_are_counted_and_each_island_has_its_own_order(seed: int):
    state, info = run_islands(on_rows(PrefixLadder, num_moves=2), jax.random.key(seed), 6)
    np.testing.assert_allclose(info.beta, np.tile([[0.25], [0.5], [1.0]], 6))
    # Four particles: one row looked at, then two moves on it; one more; then two more and all four.
    assert info.num_rows[:, 0].tolist() == [4 * (1 + 2), 4 * (1 + 4), 4 * (2 + 8)]
    assert info.num_evaluations[:, 0].tolist() == [8, 8, 8]
    assert state.order is not None
    assert len({tuple(order) for order in np.asarray(state.order).tolist()}) > 1
    ladder = PrefixLadder(
        look(np.log(PRIOR)), terms, TERMS, SIZES, draw_prior=draw_state, ordered=True
    )
    sampler = SequentialMonteCarlo(ladder, Three(), 4, num_moves=1)
    assert sampler.init(jax.random.key(seed)).order is None


def test_evidence_of_prefixes_with_everything_adaptive(seed: int):
    model = ConjugateNormal(jnp.linspace(-1.0, 2.0, 40)[:, None])
    ladder = PrefixLadder.of(model.problem(), [0, 5, 15, 40])
    sampler = SequentialMonteCarlo(ladder, hmc(2), 200)
    state, _ = run_islands(sampler, jax.random.key(seed), 40)
    ratios = np.exp(np.asarray(state.log_z) - float(model.log_normaliser(1.0)))
    assert abs(ratios.mean() - 1) < 4.5 * ratios.std() / np.sqrt(40) + BOUND
    assert ratios.std() < 0.5


# -- adaptive, on powers ---------------------------------------------------------------------------

BRIDGE = GaussianBridge(
    jnp.zeros(2), jnp.array([4.0, 2.0]), jnp.array([1.0, -0.5]), jnp.array([0.05, 0.1]), 0.8
)
ENDS = BRIDGE.ladder([0.0, 1.0], exact=True)
# What is adaptive biases Z-hat by a multiple of 1 / N; with these 200 particles it may be by 2 %.
BOUND = 0.02


def adaptive(
    move: AbstractMove | None = None, num: int = 200, kind: broken.Kind = SequentialMonteCarlo,
    **options: Any,
) -> SequentialMonteCarlo:  # fmt: skip
    return kind(ENDS, hmc(3) if move is None else move, num, **({"conditional_ess": 0.5} | options))


def gaps(state: ParticleState) -> tuple[np.ndarray, np.ndarray]:
    """Of Z-hat and of the first two moments of particles weighted by it; and standard errors."""
    ratios = np.exp(np.asarray(state.log_z) - 0.8)
    weights = ratios[:, None, None] * np.exp(np.asarray(state.log_weights))[..., None]
    x = np.asarray(state.points.position)
    exact = np.r_[1.0, BRIDGE.mean, BRIDGE.mean**2 + BRIDGE.var]
    moments = [(weights * x**power).sum(axis=1) for power in (1, 2)]
    each = np.concatenate([ratios[:, None], *moments], axis=1) / exact
    return each.mean(axis=0) - 1, each.std(axis=0) / np.sqrt(len(each))


@pytest.mark.parametrize(
    ("move", "num", "options"),
    [
        (hmc(3, metric="dense"), 200, {}),
        (alternate(metropolis(), hmc(1)), 200, {"resampling": "stratified"}),
        (metropolis(metric="dense"), 200, {"resample_below": 0.6, "conditional_ess": 0.8}),
        (metropolis(), 1000, {"num_ancestors": 25}),
    ],
    ids=["hmc", "scan", "not resampled every time", "waste-free"],
)
def test_adaptive_within_its_bound(
    move: AbstractMove, num: int, options: dict[str, Any], seed: int
):
    state, info = run_islands(adaptive(move, num, **options), jax.random.key(seed), 200)
    gap, error = gaps(state)
    assert (error < BOUND).all()
    assert (np.abs(gap) < 4.5 * error + BOUND).all()
    assert (np.asarray(info.acceptance)[np.asarray(info.moving)] > 0.1).all()


@pytest.mark.parametrize("kind", [broken.MeanOfLogs, broken.WeighedAfterMoves])
def test_adaptive_slips_are_beyond_the_bound(kind: broken.Kind, seed: int):
    state, _ = run_islands(adaptive(kind=kind), jax.random.key(seed), 200)
    gap, error = gaps(state)
    assert (np.abs(gap) > 8 * error + BOUND).any()


def test_each_beta_costs_what_it_may(key: Key):
    tilts = 3 * jax.random.normal(key, (500,))
    logs = jax.nn.log_softmax(jnp.sin(jnp.arange(500.0)))
    beta = next_beta(jnp.asarray(0.1), tilts, logs, 0.7)
    assert 0.1 < float(beta) < 1
    assert float(conditional_share(logs, (beta - 0.1) * tilts)) == pytest.approx(0.7, abs=1e-9)
    assert broken.ess_for_conditional(logs, (beta - 0.1) * tilts) != pytest.approx(0.7, abs=0.01)
    assert float(next_beta(jnp.asarray(0.1), 1e-3 * tilts, logs, 0.7)) == 1.0


def test_particles_that_are_impossible(key: Key):
    """They have no weight from the first step on, and where all are so Z-hat is zero at once."""

    def run(limit: float) -> tuple[ParticleState, Any]:
        def cold(x: Array) -> Array:
            return jnp.where(x[0] > limit, -0.5 * x[0] ** 2, -jnp.inf)

        ladder = GeometricLadder(
            lambda x: -0.5 * x[0] ** 2 - 0.5 * jnp.log(2 * jnp.pi), cold, [0.0, 1.0],
            draw_hot=lambda k: jax.random.normal(k, (1,)),
        )  # fmt: skip
        sampler = SequentialMonteCarlo(ladder, metropolis(), 300, conditional_ess=0.5)
        return run_islands(sampler, key, 20)

    state, _ = run(1.0)
    truth = np.sqrt(0.5) * stats.norm.sf(np.sqrt(2))
    ratios = np.exp(np.asarray(state.log_z)) / truth
    assert abs(ratios.mean() - 1) < 4.5 * ratios.std() / np.sqrt(20) + BOUND
    assert float(jnp.min(state.points.position)) > 1
    state, info = run(60.0)
    assert np.isneginf(state.log_z).all()
    assert info.beta.shape[0] == 1


# -- what adapts ----------------------------------------------------------------------------------


def test_moves_go_on_until_the_start_is_forgotten(seed: int):
    state, info = run_islands(adaptive(metropolis(), 400), jax.random.key(seed), 8)
    moving = np.asarray(info.moving)
    # Now and then chance makes it look as if the correlation had stopped falling.
    left = np.asarray(info.correlation)[moving]
    assert (left < 0.1).mean() > 0.8
    assert left.max() < 0.3
    moves = np.asarray(info.num_moves)[moving]
    assert moves.min() > 3
    assert moves.max() < 40
    # The step sizes have come to what they aim at, and the scales are the target's.
    assert np.asarray(info.acceptance)[-1].mean() == pytest.approx(0.234, abs=0.05)
    scales = np.sqrt(np.asarray(BRIDGE.var))
    np.testing.assert_allclose(np.asarray(state.params.factor).mean(axis=0), scales, rtol=0.2)
    few, told = run_islands(adaptive(metropolis(), most_moves=2), jax.random.key(seed), 8)
    assert np.asarray(told.num_moves).max() == 2
    assert finished(few)


MODES, SHARE, WIDE = 5.0, 0.3, 36.0


def two_modes(x: Array) -> Array:
    def mode(center: float) -> Array:
        return -0.5 * jnp.sum((x - center) ** 2) - jnp.log(2 * jnp.pi)

    return jnp.logaddexp(np.log(SHARE) + mode(-MODES), np.log(1 - SHARE) + mode(MODES))


BIMODAL = GeometricLadder(
    lambda x: -0.5 * jnp.sum(x**2) / WIDE - jnp.log(2 * jnp.pi * WIDE), two_modes, [0.0, 1.0],
    bridge=True, draw_hot=lambda key: np.sqrt(WIDE) * jax.random.normal(key, (2,)),
)  # fmt: skip


def test_two_modes_have_their_weights_and_do_not_take_all_moves(seed: int):
    """No number of moves makes a particle forget its mode; they stop where they gain no more."""
    sampler = SequentialMonteCarlo(BIMODAL, hmc(3), 500, conditional_ess=0.5)
    state, info = run_islands(sampler, jax.random.key(seed), 40)
    last = np.asarray(state.num_steps) - 1, np.arange(40)
    assert np.median(np.asarray(info.num_moves)[last]) < 10
    assert np.asarray(info.num_moves).max() < sampler.most_moves
    # By the correlation alone they would have gone on to the last.
    assert (np.asarray(info.correlation)[last] > 0.5).all()
    ratios = np.exp(np.asarray(state.log_z))
    assert abs(ratios.mean() - 1) < 4.5 * ratios.std() / np.sqrt(40) + BOUND
    low = (np.asarray(state.points.position).sum(axis=2) < 0).mean(axis=1) * ratios
    error = low.std() / np.sqrt(40)
    assert error < 0.02
    assert abs(low.mean() - SHARE) < 4.5 * error + BOUND


def test_who_is_left_of_the_first(seed: int):
    state, info = run_islands(adaptive(num=100), jax.random.key(seed), 5)
    origin = np.asarray(state.origin)
    left = [np.unique(one).size for one in origin]
    last = np.asarray(info.num_moves > 0).sum(axis=0) - 1
    assert np.asarray(info.num_origins)[last, np.arange(5)].tolist() == left
    assert all(1 < one < 60 for one in left)


def test_what_a_move_remembers_does_not_outlive_a_temperature(key: Key):
    """An ensemble's members are of one temperature, and prepared anew at the next."""
    ladder = fast_slow.LADDER.with_betas([fast_slow.BETA, 1.0])
    draws = jax.vmap(jax.vmap(fast_slow.draw))(jax.random.split(key, (30, 100)))
    move = ensemble("level", 4, "exchangeable", "jointly")
    sampler = SequentialMonteCarlo(ladder, move, 100, conditional_ess=0.8)
    state = init_islands(sampler, key, 30, draws)
    assert (np.asarray(state.beta) == fast_slow.BETA).all()
    while not finished(state):
        state, _ = step_islands(sampler, key, state)
    assert state.points.memory is None
    ends = np.array([fast_slow.RATES, fast_slow.PRECISIONS])
    rate, precision = ends[:, 1] / (ends @ [1 - fast_slow.BETA, fast_slow.BETA])
    ratios = np.exp(np.asarray(state.log_z)) * rate**2 * precision
    assert abs(ratios.mean() - 1) < 4.5 * ratios.std() / np.sqrt(30) + BOUND


# -- islands ---------------------------------------------------------------------------------------


def same(one: Any, two: Any) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def test_an_island_does_not_know_how_many_there_are(key: Key):
    sampler = adaptive(metropolis(), 24, conditional_ess=0.9)
    many, infos = run_islands(sampler, key, 8)
    three, told = run_islands(sampler, key, 3)
    assert same(jax.tree.map(lambda leaf: leaf[:3], many), three)
    steps = told.beta.shape[0]
    assert same(jax.tree.map(lambda leaf: leaf[:steps, :3], infos), told)
    again, _ = run_islands(sampler, key, 8)
    assert same(many, again)
    # Some are at the target before others, and wait.
    assert len(set(np.asarray(many.num_steps).tolist())) > 1
    waiting = ~np.asarray(infos.moving)
    assert waiting.any()
    assert (np.asarray(infos.num_evaluations)[waiting] == 0).all()
    np.testing.assert_allclose(infos.log_z_step.sum(axis=0), many.log_z, rtol=1e-12)


def test_a_run_may_be_left_at_any_temperature(key: Key):
    """The state and the key are all there is to carry on with."""
    sampler = adaptive(metropolis(), 64)
    state, _ = run_islands(sampler, key, 2)
    key_start, key_steps = jax.random.split(key)
    now = init_islands(sampler, key_start, 2)
    while not finished(now):
        now = jax.tree.map(jnp.asarray, jax.device_get(now))
        now, _ = step_islands(sampler, key_steps, now)
    assert same(state, now)
    after, info = step_islands(sampler, key_steps, now)
    assert same(after, now)
    assert not np.asarray(info.moving).any()


def coverage(estimate: Callable[[np.ndarray], IslandEvidence], num: int, spread: float) -> float:
    """How often 1.96 errors hold log Z, where Z-hat is log-normal."""
    logs = np.random.default_rng(3).normal(-0.5 * spread**2, spread, (4000, num))
    found = [estimate(one) for one in logs]
    return float(np.mean([abs(one.value) < 1.96 * one.error for one in found]))


@pytest.mark.parametrize("num", [3, 8])
def test_intervals_of_log_z_hold_it(num: int):
    assert coverage(island_evidence, num, 0.3) == pytest.approx(0.95, abs=0.015)
    assert coverage(broken.evidence_not_widened, num, 0.3) < 0.92
    assert coverage(broken.evidence_of_mean_logs, num, 1.0) < 0.9


def test_the_bias_of_a_log_of_a_mean():
    logs = np.random.default_rng(4).normal(-0.5 * 0.5**2, 0.5, (8_000, 6))
    found = [island_evidence(one) for one in logs]
    values, biases = (np.array([getattr(one, name) for one in found]) for name in ("value", "bias"))
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean()) < 4.5 * error + 0.002
    assert (values - biases).mean() < -0.015
    assert island_evidence([1.5]) == IslandEvidence(1.5, np.inf, 0.0)
    # One island that holds nearly all of the mean leaves an error as large as its lead.
    assert island_evidence([0.0, 0.0, 0.0, 20.0]).error > 10
    assert island_evidence([-np.inf, -np.inf, 0.0]).error == np.inf


# -- what it refuses -------------------------------------------------------------------------------


class Inexact(Metropolis):
    exact: bool = eqx.field(static=True, default=False)


@pytest.mark.parametrize(
    ("error", "match", "options"),
    [
        (UnknownNameError, "did you mean 'systematic'", {"resampling": "sistematic"}),
        (ArgumentError, "num_particles", {"num_particles": 1}),
        (ArgumentError, "num_moves", {"num_moves": 0}),
        (ArgumentError, "most_moves", {"most_moves": 0}),
        (ArgumentError, "conditional_ess", {"conditional_ess": 1.0}),
        (ArgumentError, "correlation", {"correlation": 0.0}),
        (ArgumentError, "resample_below", {"resample_below": 0.0}),
        (ArgumentError, "does not divide", {"num_ancestors": 7}),
        (ArgumentError, "never move", {"num_ancestors": 20}),
        (ArgumentError, "length already", {"num_ancestors": 5, "num_moves": 3}),
        (ArgumentError, "every step resamples", {"num_ancestors": 5, "resample_below": 0.5}),
        (MoveError, "exact", {"move": Inexact((None,), "unit")}),
        (MoveError, "reads a few rows", {"move": mint(batch_size=3)}),
        (
            ArgumentError,
            "GeometricLadder alone",
            {"ladder": TableLadder(jnp.zeros(3), jnp.ones(2)), "conditional_ess": 0.5},
        ),
    ],
)
def test_what_it_refuses(error: type[Exception], match: str, options: dict[str, Any]):
    good = {"ladder": ENDS, "move": metropolis(), "num_particles": 20}
    with pytest.raises(error, match=match):
        SequentialMonteCarlo(**(good | options))


def test_it_begins_with_exact_draws(key: Key):
    bare = SequentialMonteCarlo(BRIDGE.ladder([0.0, 1.0]), metropolis(), 20)
    with pytest.raises(ArgumentError, match="positions="):
        bare.init(key)
    draws = jax.vmap(lambda k: BRIDGE.draw(k, 0.0))(jax.random.split(key, 40)).reshape(2, 20, 2)
    state = init_islands(bare, key, 2, draws)
    assert np.array_equal(state.points.position, draws)
    assert bare.snapshot(jax.tree.map(lambda leaf: leaf[0], state))["lp"].shape == (20,)


def test_places_at_the_very_ends():
    logs = jnp.log(jnp.array([0.0, 0.25, 0.5, 0.25, 0.0]))
    places = jnp.array([0.0, 0.25, 0.75, 1.0])
    assert ancestors_at(places, logs).tolist() == [1, 2, 3, 3]


def test_too_many_temperatures(key: Key):
    with pytest.raises(ArgumentError, match="after 2 temperatures"):
        run_islands(adaptive(conditional_ess=0.9), key, 2, most_temperatures=2)
