"""Islands of particles: independent runs side by side, and log Z of them together.

Each island adapts by itself and has keys of its own, made of its number and its temperature, so
that its draws do not depend on how many others run; one that has come to the target waits there.

With I unbiased estimates Z-hat_i,

    log Z  ~  L = log mean_i Z-hat_i,           L_(j) = the same without island j.

The log of a mean is too low by half its relative variance on average; the jackknife takes that off,

    value = I L - (I - 1) mean_j L_(j),         error^2 = (I - 1) / I sum_j (L_(j) - mean L_(j))^2,

and its error goes on growing with the spread of the log Z-hat_i where a relative standard deviation
cannot exceed one, which is where a single island holds nearly all of the mean. The spread of so few
estimates is itself poorly estimated: the error is widened by the quantile of Student's law with
I - 1 degrees of freedom over the normal one, so that 1.96 of it on both sides are a 95 % interval.
A mode that no island has visited is not in the error either.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import PyTree
from scipy.special import stdtrit

from temperance._types import Key, Keys, Position
from temperance.engine.loop import chain_keys
from temperance.errors import ArgumentError
from temperance.ladders.ladder import AbstractUniformLadder
from temperance.samplers.annealing.particles import ParticleInfo, ParticleState
from temperance.samplers.annealing.smc import SequentialMonteCarlo

MOST_TEMPERATURES = 2**12


class IslandEvidence(NamedTuple):
    """log Z; 1.96 of `error` on both sides are a 95 % interval. `bias` was added to log mean Z."""

    value: float
    error: float
    bias: float


def init_islands(
    sampler: SequentialMonteCarlo, key: Key, num_islands: int, positions: Position | None = None
) -> ParticleState:
    """Islands at the hottest rung; `positions`, if given, lead with (island, particle)."""
    keys = chain_keys(key, num_islands, jnp.array(0))
    return _init(sampler, keys, positions)


def step_islands(
    sampler: SequentialMonteCarlo, key: Key, state: ParticleState
) -> tuple[ParticleState, ParticleInfo]:
    """The next temperature of every island; `key` is the same at every temperature."""
    # Islands that are still on their way have all taken as many steps.
    num_steps = jnp.max(state.num_steps)
    keys = chain_keys(key, state.beta.shape[0], num_steps)
    uniform = isinstance(sampler.ladder, AbstractUniformLadder)
    return _step(sampler, keys, state, None if uniform else int(num_steps))


def finished(state: ParticleState) -> bool:
    """Whether every island is at the target."""
    return bool(np.all(np.asarray(state.beta) >= 1))


def run_islands(
    sampler: SequentialMonteCarlo,
    key: Key,
    num_islands: int,
    most_temperatures: int = MOST_TEMPERATURES,
) -> tuple[ParticleState, ParticleInfo]:
    """From the hottest rung to the target; infos lead with (temperature, island)."""
    key_start, key_steps = jax.random.split(key)
    state = init_islands(sampler, key_start, num_islands)
    infos = []
    while not finished(state):
        if len(infos) == most_temperatures:
            raise ArgumentError(
                f"conditional_ess: after {most_temperatures} temperatures an island is at beta = "
                f"{float(jnp.min(state.beta)):.3g}: give a smaller one, or a base that is nearer "
                "to the target"
            )
        state, info = step_islands(sampler, key_steps, state)
        infos.append(info)
    return state, jax.tree.map(lambda *leaves: jnp.stack(leaves), *infos)


def island_evidence(log_z: npt.ArrayLike) -> IslandEvidence:
    """Log Z from the log Z-hat of independent islands; of one alone the error is not known."""
    logs = np.asarray(log_z, float)
    num = logs.size
    mean = float(np.logaddexp.reduce(logs) - np.log(num))
    if num < 2 or not np.isfinite(mean):
        return IslandEvidence(mean, np.inf, 0.0)
    without = np.where(np.eye(num, dtype=bool), -np.inf, logs[None])
    others = np.logaddexp.reduce(without, axis=1) - np.log(num - 1)
    if not np.isfinite(others).all():
        return IslandEvidence(mean, np.inf, 0.0)
    bias = (num - 1) * (mean - float(others.mean()))
    error = np.sqrt((num - 1) / num * np.sum((others - others.mean()) ** 2))
    widened = stdtrit(num - 1, 0.975) / stdtrit(np.inf, 0.975)
    return IslandEvidence(mean + bias, float(error * widened), bias)


@eqx.filter_jit
def _init(sampler: SequentialMonteCarlo, keys: Keys, positions: Position | None) -> ParticleState:
    if positions is None:
        return _each(sampler, lambda k: sampler.init(k), keys)
    return _each(sampler, sampler.init, keys, positions)


@eqx.filter_jit
def _step(
    sampler: SequentialMonteCarlo, keys: Keys, state: ParticleState, rung: int | None
) -> tuple[ParticleState, ParticleInfo]:
    return _each(sampler, lambda k, s: sampler.step(k, s, rung), keys, state)


def _each(sampler: SequentialMonteCarlo, function: Callable[..., Any], *args: PyTree) -> Any:
    """`function` of every island: at once, or one after another where decisions are made."""
    if sampler.move.branches or not isinstance(sampler.ladder, AbstractUniformLadder):
        return jax.lax.map(lambda each: function(*each), args)
    return jax.vmap(function)(*args)
