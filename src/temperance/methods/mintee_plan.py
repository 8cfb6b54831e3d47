"""What a run of MINTEE does: each rung, from the hottest on, is tuned and then fills its rings.

    quench   a few descents on mini-batches find a low energy, from which temperatures and levels
             follow as for the equi-energy sampler. The key is fixed, as that of every pilot
    warm     rounds at one rung, in which its move is tuned while it jumps into the rings above
    fill     the same rung with its move settled, its states going to its own rings
    draw     after the target's own warm-up: the target alone, with the rings above it frozen

A rung starts where the one above it ended, and no rung ever costs more than its own batches.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, PyTree

from temperance._types import Key, Options
from temperance.samplers.equi_energy.batch_energies import batch_sizes
from temperance.rows.batches import Batches
from temperance.problems.checks import starting_points
from temperance.ladders.energies import rungs_for_heat
from temperance.methods.equi_energy_plan import (
    BURN_IN,
    MOST_RUNGS,
    EquiEnergyPlan,
    Filled,
    betas_of,
    log_densities,
)
from temperance.moves.move import Params
from temperance.methods.plan import STARTS, initial_params, start_chains
from temperance.ladders.row_sums import Rows, rows_alone
from temperance.samplers.equi_energy.all_rungs import EquiEnergyInfo
from temperance.samplers.equi_energy.minibatch_rung import MinibatchRung
from temperance.ladders.spacing import RUNG_COUNTS
from temperance.engine.stage import Stage
from temperance.warmup.adaptation import Adaptation, begin, learn_factor, rounds

# Descents on batches: how many steps, of how many rows, and how far a step goes at first, in
# standard deviations of the starts.
QUENCH_STEPS, QUENCH_ROWS, QUENCH_RATE = 1000, 1000, 0.05
PILOT = Stage("pilot", 0, 0, (0.5, 1.0))


class Tuning(NamedTuple):
    """What a rung's warm-up carries: what it learns, and what other rungs have left."""

    adaptation: Adaptation
    filled: Filled

    def params(self, learning: Bool[Array, ""] | bool = False) -> Params:
        """This rung's, with an axis of one."""
        return self.adaptation.params(learning)

    def after(self, sampler: MinibatchRung, state: PyTree, info: EquiEnergyInfo) -> "Tuning":
        """What is known after one more step of every chain."""
        return self._replace(adaptation=self.adaptation.after(sampler, state, info))


@dataclass(frozen=True)
class MinteePlan(EquiEnergyPlan):
    """How to make the stages of one call; a stage of warm-up counts its rung and its round."""

    alpha: float = 0.5
    batch_sizes: tuple[int, ...] | None = None

    def own(self) -> Options:
        return super().own() | {"alpha": self.alpha, "batch_sizes": self.batch_sizes}

    @cached_property
    def rows(self) -> Rows:
        return rows_alone(self.problem, self.densities).rows

    def rung(self, stage: Stage) -> int:
        """The rung that a stage is about."""
        if stage.kind == "warm":
            return stage.index // len(rounds(self.num_warmup))
        return stage.index if stage.kind == "fill" else len(stage.betas) - 1

    def sampler(self, stage: Stage, params: Params) -> MinibatchRung:
        heat = [1.0 / beta for beta in stage.betas]
        return MinibatchRung(
            self.rows, self.ladder(stage), self.move, params,
            jnp.asarray(int(BURN_IN * self.num_fill)),
            self.batch_sizes or batch_sizes(self.rows.num_rows, heat, self.alpha),
            self.rung(stage), self.jump_probability,
            self.capacity or self._capacity(len(stage.betas)),
            fills=stage.kind == "fill", tuning=stage.kind == "warm",
        )  # fmt: skip

    # -- stages --------------------------------------------------------------------------------

    def first(self) -> tuple[Stage, PyTree]:
        lowest, count = self._quenched, self.num_rungs
        if count is None and self.betas is None:
            hottest = float(self._heat(lowest, 2)[0])
            wanted = rungs_for_heat(hottest, self.densities.layout.dimension)
            counts = (*RUNG_COUNTS, MOST_RUNGS)
            count = next(k for k in counts if k >= min(wanted, MOST_RUNGS))
        heat = self._heat(lowest, count or 2)
        stage = Stage("warm", 0, rounds(self.num_warmup)[0], betas_of(heat), lowest=lowest)
        stage = self._levelled(stage)
        starts = self._starts(stage)
        params = initial_params(self.move, starts)
        filled = self._unfilled(stage, _repeated(params, len(stage.betas)), starts)
        return stage, self._tuned(stage, params, starts[:, 0], filled)

    def _starts(self, stage: Stage) -> Float[Array, "chains 1 d"]:
        return starting_points(
            self.ladder(stage), self.problem, self.densities,
            jax.random.fold_in(self.stage_key(stage), STARTS), (self.num_chains, 1),
            gradient=self.move.uses_gradient,
        )  # fmt: skip

    def after(self, stage: Stage, carry: PyTree) -> tuple[Stage, PyTree]:
        state, learnt = carry
        if stage.kind == "fill":
            return self._filled(stage, state, learnt)
        lengths, rung = rounds(self.num_warmup), self.rung(stage)
        last = stage.index % len(lengths) + 1 == len(lengths)
        if not last:
            params = self._learnt(learnt.adaptation)
            length = lengths[stage.index % len(lengths) + 1]
            following = replace(stage, index=stage.index + 1, length=length)
            sampler = self.sampler(following, params)
            return following, (state, Tuning(begin(sampler, state), learnt.filled))
        filled = _settled(learnt, rung)
        if rung == len(stage.betas) - 1:
            return replace(stage, kind="draw", index=0, length=self.num_draws), (state, filled)
        following = replace(stage, kind="fill", index=rung, length=self.num_fill)
        start = self._start(following, filled.values, state.point.position)
        return following, (start._replace(point=state.point, hotter=state.hotter), filled)

    def _filled(self, stage: Stage, state: PyTree, filled: Filled) -> tuple[Stage, PyTree]:
        """The next rung, from where this one is, with the rings just filled above it."""
        rung, lengths = stage.index, rounds(self.num_warmup)
        left = filled.left.at[:, rung + 1].set(state.point.position)
        filled = filled.with_rings(rung, state.own)._replace(left=left)
        following = replace(stage, kind="warm", index=(rung + 1) * len(lengths), length=lengths[0])
        params = jax.tree.map(lambda leaf: leaf[rung : rung + 1], filled.values)
        free = jnp.asarray([size is None for size in self.move.step_sizes])[None]
        colder = (stage.betas[rung] / stage.betas[rung + 1]) ** 0.5
        sizes = params.step_size * jnp.where(free, colder, 1.0)
        params = params._replace(step_size=sizes)
        state_of, tuning = self._tuned(following, params, state.point.position, filled)
        return following, (state_of._replace(hotter=state.own), tuning)

    def _tuned(self, stage: Stage, params: Params, positions: Array, filled: Filled) -> PyTree:
        """What the first round at a rung carries."""
        state = self._start(stage, params, positions)
        return state, Tuning(begin(self.sampler(stage, params), state), filled)

    def _learnt(self, adaptation: Adaptation) -> Params:
        factor = learn_factor(adaptation, self.move.metric, self.num_chains)
        return Params(jnp.exp(adaptation.log_step_mean), jnp.asarray(factor))

    def carried(self, stage: Stage) -> PyTree:
        dimension, count = self.densities.layout.dimension, len(stage.betas)
        positions = jnp.zeros((self.num_chains, 1, dimension))
        params = initial_params(self.move, positions)
        filled = self._unfilled(stage, _repeated(params, count), positions)
        if stage.kind == "warm":
            return self._tuned(stage, params, positions[:, 0], filled)
        return self._start(stage, filled.values, positions[:, 0]), filled

    def _start(self, stage: Stage, params: Params, positions: Array) -> PyTree:
        return start_chains(self.sampler(stage, params), positions, False)

    def _unfilled(self, stage: Stage, params: Params, left: Array) -> Filled:
        shape = (self.num_chains, len(stage.betas), left.shape[-1])
        return super()._unfilled(stage, params, jnp.broadcast_to(left, shape))

    # -- a low energy --------------------------------------------------------------------------

    @cached_property
    def _quenched(self) -> float:
        """The lowest energy that a few descents from draws of the prior find."""
        key = self.stage_key(PILOT)
        starts = self._starts(PILOT)[:, 0]
        ends = _descended(self.rows, key, starts, min(QUENCH_ROWS, self.rows.num_rows))
        energies = -np.asarray(log_densities(self.densities.whole, ends))
        lowest = np.nanmin(energies)
        return float(np.fmin(lowest, self._starts_energies.min()))


@eqx.filter_jit
def _descended(rows: Rows, key: Key, starts: Array, size: int) -> Array:
    """The ends of descents by Adam, each step on a batch of its own."""
    spread = jnp.std(starts, axis=0) if starts.shape[0] > 3 else jnp.ones(starts.shape[1:])
    spread = jnp.where(spread > 0, spread, 1.0)
    schedule = optax.cosine_decay_schedule(QUENCH_RATE, QUENCH_STEPS)
    optimizer, batches = optax.adam(schedule), Batches(rows.num_rows)

    def energy(scaled: Array, places: Array) -> Array:
        x = spread * scaled
        return -rows.num_rows / size * jnp.sum(rows.at(x, places)) - rows.log_prior(x)

    def one(arguments: tuple[Key, Array]) -> Array:
        key, start = arguments

        def step(i: Array, carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
            scaled, memory = carry
            places = batches.places(jax.random.fold_in(key, i), 0, size)
            slope = jax.grad(energy)(scaled, places)
            change, memory = optimizer.update(slope, memory)
            return jnp.asarray(optax.apply_updates(scaled, change)), memory

        first = start / spread, optimizer.init(start)
        return spread * jax.lax.fori_loop(0, QUENCH_STEPS, step, first)[0]

    return jax.lax.map(one, (jax.random.split(key, starts.shape[0]), starts))


def _settled(learnt: Tuning, rung: int) -> Filled:
    """What other rungs have left, with this one's parameters among them."""
    values = jax.tree.map(
        lambda every, one: every.at[rung].set(one[0]), learnt.filled.values, learnt.params()
    )
    return learnt.filled._replace(values=values)


def _repeated(params: Params, count: int) -> Params:
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0), params)
