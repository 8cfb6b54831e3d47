"""Anneals there and back: T4, unbiased weights, subsamples, and betas by conditional ESS."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy.special import logsumexp
from tests.samplers.annealing import broken_importance as broken
from tests.samplers.test_transitions import Cycle

from temperance._types import Key
from temperance.errors import ArgumentError, MoveError
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.prefix import PrefixLadder
from temperance.ladders.spacing import anneal_rungs_for
from temperance.moves.combine import alternate
from temperance.moves.hmc import hmc
from temperance.moves.metropolis import Metropolis, metropolis
from temperance.moves.move import AbstractMove, Params
from temperance.samplers.annealing.betas import conditional_betas, log_conditional_ess
from temperance.samplers.annealing.importance import AnnealedImportance
from temperance.testing import ConjugateNormal, GaussianBridge, enumeration, heated

# -- T4 ------------------------------------------------------------------------------------------

STATES = np.arange(5)
ENERGY = 2 * np.sin(1.3 * STATES + 0.2)
LAW = enumeration.normalised(np.cos(0.9 * STATES))
BETAS = np.array([0.0, 0.2, 0.5, 1.0])
TABLE = (1 - BETAS)[:, None] * np.log(LAW) - BETAS[:, None] * ENERGY
Z, SD = 11.1477307098, 17.330310


def test_t4_there_and_back():
    kernels = [enumeration.cycle_metropolis(row) for row in TABLE[1:-1]]
    mean = heated.annealed_moment(TABLE, kernels)
    spread = np.sqrt(heated.annealed_moment(TABLE, kernels, 2.0) - mean**2)
    assert mean == pytest.approx(Z, abs=1e-10)
    assert spread == pytest.approx(SD, abs=1e-6)
    assert heated.reverse_annealed_moment(TABLE, kernels) == pytest.approx(0.0897043556, abs=1e-10)
    # Moves of the wrong rung are not unbiased, in either direction.
    shifted = [enumeration.cycle_metropolis(row) for row in TABLE[2:]]
    assert abs(heated.annealed_moment(TABLE, shifted) - Z) > 0.1
    assert abs(heated.reverse_annealed_moment(TABLE, kernels[::-1]) - 1 / Z) > 1e-3


class Five(Cycle):
    """On a cycle of five states."""

    def propose(self, key: Key, x: Array) -> Array:
        return (x + jnp.where(jax.random.bernoulli(key), 1.0, -1.0)) % 5


def on_states(kind: type[AnnealedImportance]) -> AnnealedImportance:
    def look(values: np.ndarray):
        table = jnp.asarray(values)
        return lambda x: table[x[0].astype(int)]

    def draw(key: Key) -> Array:
        return jax.random.choice(key, 5, (1,), p=jnp.asarray(LAW)).astype(float)

    def draw_target(key: Key) -> Array:
        law = jnp.asarray(enumeration.normalised(-ENERGY))
        return jax.random.choice(key, 5, (1,), p=law).astype(float)

    ladder = GeometricLadder(look(TABLE[0]), look(TABLE[-1]), BETAS, bridge=True, draw_hot=draw)
    params = Params(jnp.ones((4, 1)), jnp.ones((4, 1)))
    return kind(ladder, Five(), params, None, draw_target)


@eqx.filter_jit
def anneals(sampler: AnnealedImportance, start: Array, keys: Array) -> tuple[Array, Array]:
    state = sampler.init(start)
    found = jax.vmap(lambda k: sampler.step(k, state)[0])(keys)
    assert found.log_weight_reverse is not None
    return jnp.exp(found.log_weight), jnp.exp(found.log_weight_reverse)


def z_score(values: Array, truth: float) -> float:
    found = np.asarray(values)
    return float((found.mean() - truth) / (found.std() / np.sqrt(found.size)))


def test_weights_are_those_of_the_enumeration(seed: int):
    """On the weights themselves, whose spread is small enough for that to mean something."""
    keys = jax.random.split(jax.random.key(seed), 100_000)
    there, back = anneals(on_states(AnnealedImportance), jnp.zeros(1), keys)
    assert abs(z_score(there, Z)) < 4.5
    assert abs(z_score(back, 1 / Z)) < 4.5
    assert float(jnp.std(there)) == pytest.approx(SD, rel=0.05)
    shifted, _ = anneals(on_states(broken.ShiftedState), jnp.zeros(1), keys)
    assert abs(z_score(shifted, Z)) > 8


# -- on a continuous space -----------------------------------------------------------------------

BRIDGE = GaussianBridge(
    jnp.zeros(2), jnp.array([4.0, 2.0]), jnp.array([1.0, -0.5]), jnp.array([0.5, 1.0]), 0.8
)


def annealed(move: AbstractMove, parts: int = 1) -> AnnealedImportance:
    ladder = BRIDGE.ladder(np.linspace(0, 1, 9), exact=True)
    params = Params(jnp.full((2, parts), 0.7), jnp.ones((2, 2)))
    knots = jnp.array([0.0, 1.0])
    return AnnealedImportance(ladder, move, params, knots, lambda key: BRIDGE.draw(key, 1.0))


@pytest.mark.parametrize("name", ["hmc", "a scan"])
def test_unbiased_both_ways(name: str, seed: int):
    """A scan in a fixed order is not reversible, and is run backwards on the way back."""
    move = hmc(2) if name == "hmc" else alternate(metropolis(), hmc(1))
    sampler = annealed(move, 1 if name == "hmc" else 2)
    keys = jax.random.split(jax.random.key(seed), 20_000)
    there, back = anneals(sampler, jnp.zeros(2), keys)
    assert abs(z_score(there, np.exp(0.8))) < 4.5
    assert abs(z_score(back, np.exp(-0.8))) < 4.5
    assert float(jnp.std(there)) < 5 * np.exp(0.8)


# -- on nested subsamples ------------------------------------------------------------------------

ROWS = np.linspace(-1.0, 2.0, 12)[:, None]


def test_adding_rows_is_an_anneal_too(seed: int):
    """From no rows to all of them, with evidence known; each anneal has an order of its own."""
    # Rows so wide that the weights of the way back have a variance, and a small one.
    model = ConjugateNormal(jnp.asarray(ROWS), noise_sd=4.0)
    truth = float(model.log_normaliser(1.0))
    params = Params(jnp.full((4, 1), 0.6), jnp.ones((4, 1)))

    def sampler_on(kind: type[PrefixLadder]) -> AnnealedImportance:
        ladder = kind(
            model.hot, model.terms, ROWS, [0, 2, 5, 12], draw_prior=lambda k: model.draw(k, 0.0)
        )
        return AnnealedImportance(ladder, hmc(2), params, None, lambda k: model.draw(k, 1.0))

    @eqx.filter_jit
    def weights(sampler: AnnealedImportance, keys: Array) -> tuple[Array, Array, Array]:
        state = sampler.init(jnp.zeros(1))
        found, infos = jax.lax.map(lambda k: sampler.step(k, state), keys)
        assert found.log_weight_reverse is not None
        return found.log_weight - truth, found.log_weight_reverse + truth, infos.num_rows

    keys = jax.random.split(jax.random.key(seed), 4000)
    there, back, rows = weights(sampler_on(PrefixLadder), keys)
    assert abs(z_score(jnp.exp(there), 1.0)) < 4.5
    assert abs(z_score(jnp.exp(back), 1.0)) < 4.5
    unlifted, _, _ = weights(sampler_on(broken.UnliftedLadder), keys)
    assert abs(z_score(jnp.exp(unlifted), 1.0)) > 8
    # There: 2 rows, then 3 evaluations on 2 and 3 more rows, 3 on 5 and 7 more. Back: all 12 rows,
    # then moves on 5 and on 2.
    assert np.unique(np.asarray(rows)) == pytest.approx([2 + 6 + 3 + 15 + 7 + 12 + 15 + 7 + 6 + 3])


# -- betas ---------------------------------------------------------------------------------------


def test_conditional_effective_size():
    tilts, logs = jnp.array([0.0, 1.0, 2.0]), jnp.log(jnp.array([0.2, 0.5, 0.3]))
    w, v = np.array([0.2, 0.5, 0.3]), np.exp(0.4 * np.arange(3))
    wanted = (w @ v) ** 2 / (w @ v**2)
    found = jnp.exp(log_conditional_ess(jnp.asarray(0.4), tilts, logs + 3.0))
    assert float(found) == pytest.approx(wanted, rel=1e-12)
    assert broken.unconditional_ess(v) != pytest.approx(wanted, rel=1e-3)


def test_betas_by_conditional_ess(key: Key):
    ladder = BRIDGE.ladder([0.0, 1.0], exact=True)
    params = Params(jnp.full((2, 1), 0.7), jnp.ones((2, 2)))
    few = conditional_betas(key, ladder, hmc(2), params, 0.8, 500)
    many = conditional_betas(key, ladder, hmc(2), params, 0.98, 500)
    for betas in (few, many):
        assert betas[0] == 0
        assert betas[-1] == 1
        assert (np.diff(betas) > 0).all()
    assert 3 <= len(few) < len(many) < 40
    # Each step but the last costs what it may: here for the first, on fresh draws of the base.
    draws = jax.vmap(lambda k: BRIDGE.draw(k, 0.0))(jax.random.split(key, 20_000))
    tilts = jax.vmap(lambda x: BRIDGE.cold(x) - BRIDGE.hot(x))(draws)
    share = jnp.exp(log_conditional_ess(jnp.asarray(few[1]), tilts, jnp.zeros(20_000)))
    assert float(share) == pytest.approx(0.8, abs=0.05)


def test_more_barrier_more_rungs():
    assert anneal_rungs_for(0.0) == 32
    assert anneal_rungs_for(5.0) == 401
    assert anneal_rungs_for(1e9) == 4096


# -- what it refuses -----------------------------------------------------------------------------


def test_what_an_anneal_cannot_do():
    params = Params(jnp.ones((2, 1)), jnp.ones((2, 2)))
    with pytest.raises(ArgumentError, match="exact draw of the hottest rung"):
        AnnealedImportance(BRIDGE.ladder([0.1, 1.0]), metropolis(), params)
    ladder = BRIDGE.ladder([0.0, 1.0], exact=True)

    class Inexact(Metropolis):
        exact: bool = eqx.field(static=True, default=False)

    with pytest.raises(MoveError, match="exact"):
        AnnealedImportance(ladder, Inexact((None,), "unit"), params)


def test_the_weights_of_the_draws_give_the_target(seed: int):
    sampler = annealed(hmc(2))
    keys = jax.random.split(jax.random.key(seed), 20_000)
    state = sampler.init(jnp.zeros(2))
    found = jax.jit(jax.vmap(lambda k: sampler.step(k, state)[0]))(keys)
    logs = np.asarray(found.log_weight)
    shares = np.exp(logs - logsumexp(logs))
    mean = shares @ np.asarray(found.position)
    error = np.sqrt((shares**2) @ (np.asarray(found.position) - mean) ** 2)
    assert (np.abs(mean - np.asarray(BRIDGE.mean)) < 4.5 * error).all()
    # Without their weights the draws are of something else.
    flat = np.asarray(found.position).mean(axis=0)
    assert (np.abs(flat - np.asarray(BRIDGE.mean)) > 4.5 * error).any()
