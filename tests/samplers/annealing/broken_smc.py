"""Broken twins of sequential Monte Carlo, each named after its slip: as sums, and as samplers."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.special import logsumexp

from temperance._types import Key, Point
from temperance.engine.islands import IslandEvidence
from temperance.ladders.ladder import Rungs
from temperance.ladders.prefix import PrefixLadder, rows_between
from temperance.samplers.annealing.particles import (
    ParticleInfo,
    ParticleState,
    effective_share,
    reweighted,
)
from temperance.samplers.annealing.resampling import ancestors_at
from temperance.samplers.annealing.smc import SequentialMonteCarlo
from temperance.testing import particles
from temperance.testing.enumeration import Matrix, Table, normalised
from temperance.testing.particles import Outcome, Resample, States, Weights

# Sums over all outcomes


def weights_not_reset(scheme: str, num: int) -> Resample:
    """Ancestors drawn by their weights, which they keep."""
    right = particles.resampled(scheme, num)

    def outcomes(weights: Weights) -> list[Outcome]:
        found = []
        for chance, ancestors, _ in right(weights):
            kept = np.asarray(weights)[list(ancestors)]
            found.append((chance, ancestors, tuple((kept / kept.sum()).tolist())))
        return found

    return outcomes


def mean_of_logs(log_weights: np.ndarray, increments: np.ndarray) -> tuple[np.ndarray, float]:
    """The constant takes the mean of log v in place of the log of the mean of v."""
    after, _ = particles.weigh(log_weights, increments)
    return after, float(np.exp(log_weights) @ increments)


def fixed_offset(num: int) -> Resample:
    """Systematic resampling with an offset of 1/2, always."""

    def outcomes(weights: Weights) -> list[Outcome]:
        places = (jnp.arange(num) + 0.5) / num
        ancestors = ancestors_at(places, jnp.log(jnp.asarray(weights)))
        return [(1.0, tuple(np.asarray(ancestors).tolist()), (1 / num,) * num)]

    return outcomes


def weighed_by_all(num_particles: int) -> particles.Weigh:
    """Means over fewer particles than there should be, divided by the number that should be."""

    def weigh(log_weights: np.ndarray, increments: np.ndarray) -> tuple[np.ndarray, float]:
        after, log_ratio = particles.weigh(log_weights, increments)
        return after, log_ratio + float(np.log(len(log_weights) / num_particles))

    return weigh


def last_states(chains: list[States]) -> States:
    """The last state of each chain and no other."""
    return chains[-1]


def no_first_states(chains: list[States]) -> States:
    """All states but the first."""
    return sum(chains[1:], ())


def moved_first(table: Table, kernels: list[Matrix]) -> tuple[Table, list[Matrix]]:
    """Moves at the next temperature first, and then its weights, at the new positions."""
    moved = np.log(normalised(table[0]) @ kernels[0])
    still = np.eye(table.shape[1])
    return moved + table - table[0] + np.log(np.exp(table[0]).sum()), [*kernels[1:], still]


def one_row_late(terms: np.ndarray, order: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """Log likelihoods of prefixes, where each increment begins and ends one row too early."""
    early = [max(size - 1, 0) for size in sizes]
    return np.stack([terms[list(order[:size])].sum(axis=0) for size in early])


# Samplers


class WeightsNotReset(SequentialMonteCarlo):
    """Particles keep their ancestors' weights."""

    def resample(self, key: Key, log_weights: Array) -> tuple[Array, Array]:
        ancestors, _ = super().resample(key, log_weights)
        kept = log_weights[ancestors]
        return ancestors, kept - jax.scipy.special.logsumexp(kept)


class MeanOfLogs(SequentialMonteCarlo):
    """The constant takes the mean of log v."""

    def weigh(self, log_weights: Array, increments: Array) -> tuple[Array, Array]:
        after, _ = super().weigh(log_weights, increments)
        return after, jnp.sum(jnp.exp(log_weights) * increments)


class FixedOffset(SequentialMonteCarlo):
    """Systematic resampling with an offset of 1/2, always."""

    def resample(self, key: Key, log_weights: Array) -> tuple[Array, Array]:
        num = self.num_ancestors or self.num_particles
        places = (jnp.arange(num) + 0.5) / num
        return ancestors_at(places, log_weights), jnp.full((num,), -np.log(num))


class LastStatesWeighedByAll(SequentialMonteCarlo):
    """Waste-free with the last states alone, and weights as if all were there."""

    def weigh(self, log_weights: Array, increments: Array) -> tuple[Array, Array]:
        assert self.num_ancestors is not None
        last = jnp.arange(self.num_particles) >= self.num_particles - self.num_ancestors
        logs = log_weights + increments
        return super().weigh(log_weights, increments)[0], jax.scipy.special.logsumexp(
            jnp.where(last, logs, -jnp.inf)
        )


class StartsNotResampled(SequentialMonteCarlo):
    """Waste-free chains whose first states are the first particles, not the ancestors."""

    def _advance(
        self, key: Key, state: ParticleState, rung: Rungs
    ) -> tuple[ParticleState, ParticleInfo]:
        num = self.num_ancestors
        after, info = super()._advance(key, state, rung)
        points = jax.tree.map(
            lambda new, old: new.at[:num].set(old[:num]), after.points, state.points
        )
        return after._replace(points=points), info


class WeighedAfterMoves(SequentialMonteCarlo):
    """Increments at the positions after the moves at the new temperature."""

    def _advance(
        self, key: Key, state: ParticleState, rung: Rungs
    ) -> tuple[ParticleState, ParticleInfo]:
        key_moves, key_then = jax.random.split(key)
        following = self.next_temperature(state, rung)
        moved = self.spread(
            key_moves, following.points, following.rung,
            self._params_at(state.params, following, state.log_weights, rung), state.log_weights,
        )  # fmt: skip
        return super()._advance(key_then, state._replace(points=moved.points), rung)


class OneRowLate(PrefixLadder):
    """The block that a rung adds begins and ends one row too early."""

    def lift(self, rung: Rungs, point: Point) -> Point:
        block = self.num_blocks(int(rung))
        low, high = self.bounds[block], self.bounds[block + 1]
        rows = rows_between(self.data, max(low - 1, 0), high - 1)
        value = jnp.sum(self.terms(point.position, rows))
        return point._replace(components=point.components.at[1 + block].set(value))


# Temperatures and evidence


def ess_for_conditional(log_weights: Array, increments: Array) -> float:
    """The effective share of the weights after the step in place of the step's own."""
    after, _ = reweighted(log_weights, increments)
    return float(effective_share(after))


def evidence_of_mean_logs(log_z: np.ndarray) -> IslandEvidence:
    """The mean of the logs, with its standard error."""
    return IslandEvidence(float(log_z.mean()), float(log_z.std(ddof=1) / np.sqrt(log_z.size)), 0.0)


def evidence_not_widened(log_z: np.ndarray) -> IslandEvidence:
    """The log of the mean and its linearised error, as if their spread were known."""
    mean = float(logsumexp(log_z) - np.log(log_z.size))
    ratios = np.exp(log_z - mean)
    return IslandEvidence(mean, float(ratios.std(ddof=1) / np.sqrt(log_z.size)), 0.0)


Kind = Callable[..., SequentialMonteCarlo]
