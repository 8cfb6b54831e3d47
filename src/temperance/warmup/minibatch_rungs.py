"""Rungs of energies that look at mini-batches: each is tuned and then fills its rings (MINTEE).

    quench   a few descents on mini-batches find a low energy, from which temperatures and levels
             follow as for the equi-energy sampler. The key is fixed, as that of every pilot
    warm     rounds at one rung, in which its move is tuned while it jumps into the rings above
    fill     the same rung with its move settled, its states going to its own rings
    draw     after the target's own warm-up: the target alone, with the rings above it frozen

A rung starts where the one above it ended, and no rung ever costs more than its own batches.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, PyTree

from temperance._types import Key
from temperance.engine.loop import start_chains
from temperance.engine.run import Place, Stage
from temperance.ladders.row_sums import Rows, rows_alone
from temperance.moves.move import Params
from temperance.rows.batches import Batches
from temperance.samplers.equi_energy.all_rungs import EquiEnergyInfo
from temperance.samplers.equi_energy.batch_energies import batch_sizes
from temperance.samplers.equi_energy.minibatch_rung import MinibatchRung
from temperance.warmup.adaptation import Adaptation, begin, learn_factor, rounds
from temperance.warmup.energy_rungs import (
    BURN_IN,
    Energies,
    EnergyRungs,
    Filled,
    betas_of,
    log_densities,
)
from temperance.warmup.rounds import Left, draw_starts, first_params

# Descents on batches: how many steps, of how many rows, and how far a step goes at first, in
# standard deviations of the starts.
QUENCH_STEPS, QUENCH_ROWS, QUENCH_RATE = 1000, 1000, 0.05
PILOT = Place("pilot", 0, 0, Energies((0.5, 1.0)))


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
class MinibatchRungs(EnergyRungs):
    """Rungs of energies of which the hot ones see mini-batches."""

    alpha: float = 0.5
    batch_sizes: tuple[int, ...] | None = None

    @cached_property
    def rows(self) -> Rows:
        return rows_alone(self.call.problem, self.call.densities).rows

    def rung_of(self, place: Place) -> int:
        """The rung that a place is about; warm-up counts its rounds through all rungs."""
        if place.stage == "warm":
            return place.round // len(rounds(self.call.num_warmup))
        return place.round if place.stage == "fill" else len(place.rungs.betas) - 1

    def at(self, place: Place, params: Params) -> MinibatchRung:
        """The sampler of a place's rung."""
        heat = [1.0 / beta for beta in place.rungs.betas]
        return MinibatchRung(
            self.rows, self.ladder(place.rungs), self.call.move, params,
            jnp.asarray(int(BURN_IN * self.num_fill)),
            self.batch_sizes or batch_sizes(self.rows.num_rows, heat, self.alpha),
            self.rung_of(place), self.jump_probability, self.ring_size(len(place.rungs.betas)),
            fills=place.stage == "fill", tuning=place.stage == "warm",
        )  # fmt: skip

    def unfilled(self, rungs: Energies, params: Params, left: Array) -> Filled:
        shape = (self.call.num_chains, len(rungs.betas), left.shape[-1])
        return super().unfilled(rungs, params, jnp.broadcast_to(left, shape))

    @cached_property
    def quenched(self) -> float:
        """The lowest energy that a few descents from draws of the prior find."""
        starts = draw_starts(self, PILOT, self.ladder(PILOT.rungs), 1)[:, 0]
        size = min(QUENCH_ROWS, self.rows.num_rows)
        ends = _descended(self.rows, self.key(PILOT), starts, size)
        energies = -np.asarray(log_densities(self.call.densities.whole, ends))
        return float(np.fmin(np.nanmin(energies), self.starts_energies.min()))


class Rung(Stage):
    """A rung by itself, with the rings above it frozen."""

    def sampler(self, shared: MinibatchRungs, place: Place, carry: PyTree) -> MinibatchRung:
        return shared.at(place, carry[1].params())

    def template(self, shared: MinibatchRungs, place: Place) -> PyTree:
        call = shared.call

        def carried() -> PyTree:
            positions = jnp.zeros((call.num_chains, 1, call.dimension))
            params = first_params(call.move, positions)
            filled = shared.unfilled(place.rungs, repeated(params, place), positions)
            if place.stage == "warm":
                return tuning(shared, place, params, positions[:, 0], filled)
            state = start_chains(shared.at(place, filled.values), positions[:, 0], False)
            return state, filled

        return jax.eval_shape(carried)


class TuneAndFill(Rung):
    """Rung after rung is tuned and fills its rings; the target is tuned alone."""

    kinds = ("warm", "fill")

    def enter(self, shared: MinibatchRungs, left: Left | None) -> tuple[Place, PyTree]:
        lowest, count = shared.quenched, shared.num_rungs
        if count is None and shared.betas is None:
            count = shared.wanted_rungs(float(shared.heat(lowest, 2)[0]))
        betas = betas_of(shared.heat(lowest, count or 2))
        rungs = shared.with_levels(Energies(betas, lowest=lowest))
        place = Place("warm", 0, rounds(shared.call.num_warmup)[0], rungs)
        starts = draw_starts(shared, place, shared.ladder(rungs), 1)
        params = first_params(shared.call.move, starts)
        filled = shared.unfilled(rungs, repeated(params, place), starts)
        return place, tuning(shared, place, params, starts[:, 0], filled)

    def after(
        self, shared: MinibatchRungs, place: Place, carry: PyTree
    ) -> tuple[Place | None, Any]:
        state, learning = carry
        if place.stage == "fill":
            return self._filled(shared, place, state, learning)
        lengths, rung = rounds(shared.call.num_warmup), shared.rung_of(place)
        here = place.round % len(lengths) + 1
        if here < len(lengths):
            factor = learn_factor(
                learning.adaptation, shared.call.move.metric, shared.call.num_chains
            )
            params = Params(jnp.exp(learning.adaptation.log_step_mean), jnp.asarray(factor))
            following = replace(place, round=place.round + 1, length=lengths[here])
            adaptation = begin(shared.at(following, params), state)
            return following, (state, Tuning(adaptation, learning.filled))
        filled = _settled(learning, rung)
        if rung == len(place.rungs.betas) - 1:
            return None, Left(place.rungs, filled.values, (state, filled))
        following = Place("fill", rung, shared.num_fill, place.rungs)
        start = start_chains(shared.at(following, filled.values), state.point.position, False)
        return following, (start._replace(point=state.point, hotter=state.hotter), filled)

    def _filled(
        self, shared: MinibatchRungs, place: Place, state: PyTree, filled: Filled
    ) -> tuple[Place, PyTree]:
        """The next rung, from where this one is, with the rings just filled above it."""
        rung, betas, lengths = place.round, place.rungs.betas, rounds(shared.call.num_warmup)
        left = filled.left.at[:, rung + 1].set(state.point.position)
        filled = filled.with_rings(rung, state.own)._replace(left=left)
        following = Place("warm", (rung + 1) * len(lengths), lengths[0], place.rungs)
        params = jax.tree.map(lambda leaf: leaf[rung : rung + 1], filled.values)
        free = jnp.asarray([size is None for size in shared.call.move.step_sizes])[None]
        colder = (betas[rung] / betas[rung + 1]) ** 0.5
        sizes = params.step_size * jnp.where(free, colder, 1.0)
        params = params._replace(step_size=sizes)
        start, learning = tuning(shared, following, params, state.point.position, filled)
        return following, (start._replace(hotter=state.own), learning)


class MinibatchDraw(Rung):
    """Draws at the target, whose batch is all rows."""

    kinds = ("draw",)
    draws = True

    def enter(self, shared: MinibatchRungs, left: Left | None) -> tuple[Place, PyTree]:
        assert left is not None
        return Place("draw", 0, shared.call.num_draws, left.rungs), left.state


def tuning(
    shared: MinibatchRungs, place: Place, params: Params, positions: Array, filled: Filled
) -> PyTree:
    """What the first round at a rung carries."""
    sampler = shared.at(place, params)
    state = start_chains(sampler, positions, False)
    return state, Tuning(begin(sampler, state), filled)


def repeated(params: Params, place: Place) -> Params:
    """A rung's parameters for every rung."""
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, len(place.rungs.betas), axis=0), params)


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
