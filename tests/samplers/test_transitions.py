"""Tempered transitions: exact on powers of T1, invariant with JAX, and rejected as printed.

On the subsamples of T1 they are in `tests/samplers/test_subsampled_enumeration.py`.
"""

from collections.abc import Sequence

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from scipy import stats
from tests.samplers import broken_transitions as broken
from tests.samplers.parallel.test_swaps import POWERS

from temperance._types import Key, LogDensity, Point
from temperance.errors import MoveError
from temperance.ladders.ladder import AbstractLadder, AbstractUniformLadder, Rung, Rungs
from temperance.moves.accept import acceptance_of
from temperance.moves.blackjax import from_blackjax
from temperance.moves.combine import alternate, repeat
from temperance.moves.hmc import hmc
from temperance.moves.metropolis import Metropolis, metropolis
from temperance.moves.move import AbstractMove, Info, Params
from temperance.samplers.transitions import TemperedTransitions, TransitionState
from temperance.testing import CurvedGamma, GaussianBridge, enumeration, invariance, reversibility
from temperance.testing.enumeration import Matrix


def test_the_right_kernel_on_powers_of_t1():
    law = enumeration.normalised(POWERS[-1])
    kernels = [enumeration.cycle_metropolis(row) for row in POWERS]
    assert enumeration.defect(enumeration.tempered_transition(POWERS, kernels), law) < 1e-14
    # One exact draw at the hottest rung in place of its two moves.
    exact = [np.tile(enumeration.normalised(POWERS[0]), (4, 1)), *kernels[1:]]
    assert enumeration.defect(enumeration.tempered_transition(POWERS, exact), law) < 1e-14


# A scan in a fixed order: along the pairs 01, 23 and then along 12, 30.

STEEP = np.array([0.3, 1.0])[:, None] * 2 * POWERS[-1]


def along_pairs(offset: int, row: np.ndarray) -> Matrix:
    proposal = np.zeros((4, 4))
    proposal[np.arange(4), (((np.arange(4) - offset) % 4 ^ 1) + offset) % 4] = 1.0
    return enumeration.metropolis(proposal, row)


def test_a_scan_in_fixed_order_must_be_reversed_on_the_way_down():
    law = enumeration.normalised(STEEP[-1])
    one, two = (along_pairs(offset, STEEP[0]) for offset in (0, 1))
    lying = enumeration.transition(STEEP, [one @ two], [one @ two])
    honest = enumeration.transition(STEEP, [one @ two], [two @ one])
    assert enumeration.defect(lying, law) > 1e-2
    assert enumeration.defect(honest, law) < 1e-14


# The JAX sampler on a finite space, against the exact matrix.


class TableLadder(AbstractUniformLadder):
    """Powers of a table; a position is a state's number."""

    table: Float[Array, " states"]
    betas: Float[Array, " rungs"]

    @property
    def num_rungs(self) -> int:
        return self.betas.shape[0]

    def densities(self) -> Sequence[LogDensity]:
        return [lambda x: self.table[x[0].astype(int)]]

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        return self.betas[rung][None]


class Cycle(AbstractMove):
    """`enumeration.cycle_metropolis` in JAX."""

    step_sizes: tuple[float | None, ...] = eqx.field(static=True, default=(1.0,))
    metric: str = eqx.field(static=True, default="unit")
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(0.5,))
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    def step(
        self,
        key: Key,
        point: Point,
        rung: Rung,
        params: Params,
    ) -> tuple[Point, Info]:
        key_propose, key_accept = jax.random.split(key)
        proposal = rung.evaluate(self.propose(key_propose, point.position), gradient=False)
        acceptance, log_ratio = acceptance_of(rung.log_density(proposal) - rung.log_density(point))
        accepted = jnp.log(jax.random.uniform(key_accept)) < log_ratio
        kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, point)
        return kept, Info(acceptance[None], accepted, jnp.asarray(False), jnp.asarray(1))

    def propose(self, key: Key, x: Array) -> Array:
        return (x + jnp.where(jax.random.bernoulli(key), 1.0, -1.0)) % 4


class AlongPairs(Cycle):
    """`along_pairs` in JAX."""

    offset: int = eqx.field(static=True, default=0)

    def propose(self, key: Key, x: Array) -> Array:
        shifted = (x.astype(int) - self.offset) % 4
        return ((shifted ^ 1) + self.offset) % 4.0


def frequencies(kind: type[TemperedTransitions], num_draws: int, seed: int) -> np.ndarray:
    """Where one step from state 0 ends, over independent replicates."""
    ladder = TableLadder(jnp.asarray(POWERS[-1]), jnp.array([0.2, 0.5, 1.0]))
    sampler = kind(ladder, Cycle(), Params(jnp.ones((3, 1)), jnp.ones((3, 1))))
    start = sampler.init(jnp.zeros(1))
    keys = jax.random.split(jax.random.key(seed), num_draws)
    ends = jax.jit(jax.vmap(lambda k: sampler.step(k, start)[0].point.position[0]))(keys)
    return np.bincount(np.asarray(ends).astype(int), minlength=4)


def test_one_step_has_the_probabilities_of_the_exact_matrix(seed: int):
    kernels = [enumeration.cycle_metropolis(row) for row in POWERS]
    matrix = kernels[-1] @ enumeration.single_top_transition(POWERS, kernels)
    counts = frequencies(TemperedTransitions, 20_000, seed)
    assert stats.chisquare(counts, 20_000 * matrix[0]).pvalue > 1e-5
    printed = frequencies(broken.PrintedTransitions, 20_000, seed)
    assert stats.chisquare(printed, 20_000 * matrix[0]).pvalue < 1e-5


# On a continuous space, by invariance.

# Mild enough that a fair share of transitions is accepted.
TARGET = CurvedGamma(rates=(1.0, 2.0), precisions=(1.0, 2.5))


class Step(eqx.Module):
    sampler: TemperedTransitions

    def __call__(self, key: Key, state: TransitionState) -> TransitionState:
        return self.sampler.step(key, state)[0]


class Exact(eqx.Module):
    ladder: AbstractLadder
    gradient: bool = eqx.field(static=True)

    def __call__(self, key: Key) -> TransitionState:
        point = self.ladder.evaluate(TARGET.draw(key, 1.0), gradient=self.gradient)
        return TransitionState(point)


def statistics(state: TransitionState) -> Array:
    u, v = jnp.tanh(state.point.position + jnp.array([0.9, -0.5]))
    cached = jnp.tanh(state.point.components)
    return jnp.concatenate([jnp.stack([u, v, u * v, u**2, v**2]), cached])


def sampler_of(
    kind: type[TemperedTransitions],
    betas: list[float],
    move: AbstractMove,
    exact: bool,
    size: float,
) -> TemperedTransitions:
    ladder = TARGET.ladder(betas, exact=exact)
    k = len(betas)
    return kind(ladder, move, Params(jnp.full((k, 1), size), jnp.ones((k, 2))))


CASES = {
    "metropolis": ([0.1, 0.4, 1.0], metropolis(), False, 1.0),
    "metropolis, exact hottest": ([0.0, 0.4, 1.0], metropolis(), True, 1.0),
    "two rungs, exact hottest": ([0.0, 1.0], metropolis(), True, 1.0),
    "hmc": ([0.2, 1.0], hmc(2), False, 0.6),
}


@pytest.mark.parametrize("name", CASES)
def test_transitions_leave_the_target_invariant(name: str, seed: int):
    betas, move, exact, size = CASES[name]
    sampler = sampler_of(TemperedTransitions, betas, move, exact, size)
    start = Exact(sampler.ladder, move.uses_gradient)
    verdict = invariance(Step(sampler), start, statistics, num_steps=10, seed=seed)
    assert verdict.passed, verdict


def test_most_transitions_are_accepted_on_an_easy_ladder(seed: int):
    """The invariance above is not that of the ordinary move alone."""
    sampler = sampler_of(TemperedTransitions, *CASES["metropolis, exact hottest"])
    start = Exact(sampler.ladder, False)

    def acceptance(key: Key) -> Array:
        return sampler.step(key, start(jax.random.fold_in(key, 1)))[1].transition_acceptance

    mean = float(
        jnp.mean(jax.jit(jax.vmap(acceptance))(jax.random.split(jax.random.key(seed), 500)))
    )
    assert 0.2 < mean < 0.95


def test_invariance_rejects_the_printed_order(seed: int):
    sampler = sampler_of(broken.PrintedTransitions, [0.1, 0.4, 1.0], metropolis(), False, 1.0)
    start = Exact(sampler.ladder, False)
    verdict = invariance(Step(sampler), start, statistics, num_steps=10, seed=seed)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


@pytest.mark.slow
def test_a_scan_that_lies_about_reversibility_biases_transitions(seed: int):
    """Which is why a move that says it is not reversible is run backwards on the way down."""
    ladder = TableLadder(jnp.asarray(STEEP[-1]), jnp.array([0.3, 1.0]))
    law = jnp.asarray(enumeration.normalised(STEEP[-1]))

    def exact(key: Key) -> TransitionState:
        x = jax.random.choice(key, 4, (1,), p=law).astype(float)
        return TransitionState(ladder.evaluate(x, gradient=False))

    def states(state: TransitionState) -> Array:
        return (state.point.position == jnp.arange(4)).astype(float)

    def verdict(move: AbstractMove, parts: int):
        params = Params(jnp.ones((2, parts)), jnp.ones((2, 1)))
        step = Step(TemperedTransitions(ladder, move, params))
        return invariance(step, exact, states, seed=seed, num_replicates=2**16)

    scan = broken.AlternateThatLies(
        AlongPairs(offset=0), AlongPairs(offset=1), (1.0, 1.0), "unit", (0.5, 0.5), True, False
    )
    lying = verdict(scan, 2)
    assert lying.moving, lying
    assert not lying.lawful, lying
    honest = verdict(repeat(Cycle(), 2), 1)
    assert honest.passed, honest
    # The same scan, run backwards on the way down.
    reversed_scan = verdict(alternate(AlongPairs(offset=0), AlongPairs(offset=1)), 2)
    assert reversed_scan.passed, reversed_scan


def test_a_transition_is_reversible(seed: int):
    """Without the ordinary move before it, a transition satisfies detailed balance."""
    bridge = GaussianBridge(jnp.zeros(1), 4 * jnp.ones(1), jnp.ones(1), jnp.ones(1))
    ladder = bridge.ladder([0.0, 0.5, 1.0], exact=True)

    class OnlyTransition(TemperedTransitions):
        def _move(
            self,
            ladder: AbstractLadder,
            key: Key,
            point: Point,
            rung: Rungs,
            back: bool = False,
        ) -> tuple[Point, Info]:
            moved, info = super()._move(ladder, key, point, rung, back)
            if isinstance(rung, int) and rung == self.num_rungs - 1:
                return point, info
            return moved, info

    sampler = OnlyTransition(ladder, metropolis(), Params(jnp.ones((3, 1)), jnp.ones((3, 1))))

    def exact(key: Key) -> TransitionState:
        return sampler.init(bridge.draw(key, 1.0))

    def moments(state: TransitionState) -> Array:
        x = state.point.position[0] - 1
        return jnp.stack([x, x**2 - 1, jnp.tanh(x + 1)])

    verdict = reversibility(Step(sampler), exact, moments, seed=seed)
    assert verdict.passed, verdict


def test_moves_that_cannot_be_run_backwards_are_refused():
    ladder = TARGET.ladder([0.1, 1.0])
    params = Params(jnp.ones((2, 2)), jnp.ones((2, 2)))
    with pytest.raises(MoveError, match="reversal"):
        TemperedTransitions(ladder, from_blackjax(blackjax.hmc, reversible=False), params)

    class Inexact(Metropolis):
        exact: bool = eqx.field(static=True, default=False)

    with pytest.raises(MoveError, match="exact"):
        TemperedTransitions(ladder, Inexact((None,), "unit"), params)
