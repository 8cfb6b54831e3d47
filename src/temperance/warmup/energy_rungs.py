"""Rungs of truncated energies, and how the equi-energy sampler fills their rings.

    pilot    two short rounds of a guessed ladder, which find the lowest energy and from it the
             hottest temperature, the number of rungs and the levels. Its key is fixed, as that of
             every pilot
    warm     rounds of all rungs at once, jumping into rings with a short memory; between them
             factors and step sizes are renewed, and levels too if a lower energy was seen
    fill     rung after rung from the hottest, alone: nothing is tuned, the rings of the rung above
             are frozen, and its own are filled after a burn-in
    draw     the target alone, with the rings above it frozen

**The hottest temperature.** A normal density of d parameters has energies of H* + T d / 2 at
temperature T. A draw from the prior or base has some energy, with median E over the pilot's starts;
at T = 2 (E - H*) / d the heated target is about as wide as what the starts are drawn from.

Each chain has rings of its own. Their errors are then independent between chains, and show as
disagreement of the chains: R-hat and the standard errors of the result know of them.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from temperance._types import LogDensity
from temperance.engine.loop import start_chains
from temperance.engine.method import Shared
from temperance.engine.run import Place, Stage
from temperance.ladders.energies import (
    EnergyLadder,
    rungs_for_heat,
    spaced_levels,
    spaced_temperatures,
    spacing_for,
)
from temperance.ladders.spacing import RUNG_COUNTS
from temperance.moves.move import Params
from temperance.samplers.equi_energy.all_rungs import EquiEnergy
from temperance.samplers.equi_energy.one_rung import EquiEnergyRung
from temperance.samplers.equi_energy.reservoir import Reservoir
from temperance.warmup.adaptation import begin, rounds, transplant
from temperance.warmup.rounds import (
    Left,
    draw_starts,
    first_params,
    start_replicas,
    tune_params,
)

PILOT_RUNGS, MOST_RUNGS = 8, 48
# What a ring holds while moves are tuned, when only the latest states matter.
SHORT_MEMORY = 32
# The least and the most heat that a pilot asks for.
LEAST_HEAT, MOST_HEAT = 2.0, 1e8
# The share of its steps that a rung forgets before it fills its rings.
BURN_IN = 0.2
# What all chains' rings of one rung may hold, in numbers, and how many states they hold at least.
MOST_NUMBERS, FEWEST_STATES = 2**21, 100
NEVER = 2**31 - 1


@dataclass(frozen=True)
class Energies:
    """Rungs by their powers 1 / T, the hot rungs' levels, and the lowest energy that was seen."""

    betas: tuple[float, ...]
    levels: tuple[float, ...] = ()
    lowest: float = float("nan")


class Tally(NamedTuple):
    """Sums over the steps with which each rung filled its rings, (chain, rung, ...)."""

    steps: Float[Array, "chains rungs"]
    acceptance: Float[Array, "chains rungs parts"]
    diverging: Float[Array, "chains rungs"]
    num_evaluations: Float[Array, "chains rungs"]
    jump_tried: Float[Array, "chains rungs"]
    jump_found: Float[Array, "chains rungs"]
    jump_acceptance: Float[Array, "chains rungs"]
    refreshed: Float[Array, "chains rungs"]  # of mini-batches; zeros where there are none


class Filled(NamedTuple):
    """What filling and drawing carry: settled parameters, and how each rung's rings were filled.

    `left` is where warm-up left the chains, by chain and rung. `held` is how many states the rings
    of a hot rung have, by chain, rung and ring.
    """

    values: Params
    left: Float[Array, "chains rungs d"]
    tally: Tally
    held: Int[Array, "chains pairs rings"]

    def with_rings(self, rung: int, rings: Reservoir) -> "Filled":
        """With what the rings of `rung` hold, by chain."""
        held = np.array(self.held)
        written, capacity = np.asarray(rings.written), rings.points.components.shape[2]
        held[:, rung] = np.minimum(written, capacity)
        return self._replace(held=jnp.asarray(held))

    def params(self, learning: Bool[Array, ""] | bool = False) -> Params:
        """Always the same."""
        return self.values

    def after(self, sampler: Any, state: PyTree, info: Any) -> "Filled":
        """How one more step fared; nothing is tuned."""
        here = jnp.arange(sampler.num_rungs) == sampler.rung
        steps = jnp.broadcast_to(here.astype(info.diverging.dtype), info.diverging.shape)
        told = {name: getattr(info, name) for name in Tally._fields[1:]}
        if info.refreshed is None:
            told["refreshed"] = jnp.zeros_like(info.diverging)
        new = Tally(steps, **told)
        return self._replace(tally=jax.tree.map(jnp.add, self.tally, new))


@dataclass(frozen=True)
class EnergyRungs(Shared):
    """Rungs of truncated energies; given temperatures, as `betas`, and `levels` are kept."""

    betas: tuple[float, ...] | None = None
    levels: tuple[float, ...] | None = None
    num_rungs: int | None = None
    max_temperature: float | None = None
    jump_probability: float = 0.25
    capacity: int | None = None
    num_fill: int = 1000

    rungs = Energies

    def ladder(self, rungs: Energies) -> EnergyLadder:
        """The ladder; without levels energies are not truncated."""
        levels = rungs.levels or (-np.inf,) * (len(rungs.betas) - 1)
        heat = 1.0 / np.asarray(rungs.betas)
        return EnergyLadder(self.call.densities.whole, heat, (*levels, -np.inf))

    def all_rungs(self, rungs: Energies, params: Params) -> EquiEnergy:
        """All rungs at once, while moves are tuned."""
        return EquiEnergy(
            self.ladder(rungs), self.call.move, params, self.jump_probability, SHORT_MEMORY,
            stagger=0, burn_in=0, frozen_from=NEVER,
        )  # fmt: skip

    def one_rung(self, rungs: Energies, params: Params, rung: int, fills: bool) -> EquiEnergyRung:
        """One rung, when rings are filled or drawn with."""
        return EquiEnergyRung(
            self.ladder(rungs), self.call.move, params, jnp.asarray(rung),
            jnp.asarray(int(BURN_IN * self.num_fill)), self.jump_probability,
            self.ring_size(len(rungs.betas)), fills,
        )  # fmt: skip

    def ring_size(self, num_rungs: int) -> int:
        """All states that a rung has to remember, or as many as memory is meant for."""
        if self.capacity:
            return self.capacity
        state = self.call.num_chains * num_rungs * (2 * self.call.dimension + 1)
        return int(np.clip(MOST_NUMBERS // state, FEWEST_STATES, self.num_fill))

    # -- temperatures and levels ---------------------------------------------------------------

    @cached_property
    def starts_energies(self) -> np.ndarray:
        """Of draws from the prior or base, the same ones for every seed."""
        pilot = Place("pilot", 0, 0, Energies((0.5, 1.0)))
        starts = draw_starts(self, pilot, self.ladder(pilot.rungs), PILOT_RUNGS)
        flat = starts.reshape(-1, starts.shape[-1])
        return -np.asarray(log_densities(self.call.densities.whole, flat))

    def heat(self, lowest: float, num_rungs: int) -> np.ndarray:
        """Temperatures, from the lowest energy that is known."""
        if self.betas is not None:
            return 1.0 / np.asarray(self.betas)
        above = float(np.median(self.starts_energies)) - lowest
        wanted = 2.0 * above / self.call.dimension
        hottest = self.max_temperature or float(np.clip(wanted, LEAST_HEAT, MOST_HEAT))
        return spaced_temperatures(hottest, num_rungs)

    def wanted_rungs(self, hottest: float) -> int:
        """How many rungs reach the hottest temperature, as one of a few counts."""
        wanted = min(rungs_for_heat(hottest, self.call.dimension), MOST_RUNGS)
        return next(k for k in (*RUNG_COUNTS, MOST_RUNGS) if k >= wanted)

    def with_levels(self, rungs: Energies) -> Energies:
        """With levels from the lowest energy that is known, unless they are given."""
        if self.levels is not None:
            return replace(rungs, levels=self.levels)
        heat = 1.0 / np.asarray(rungs.betas)
        spacing = spacing_for(heat, self.call.dimension)
        levels = spaced_levels(rungs.lowest, heat, spacing)[:-1]
        return replace(rungs, levels=tuple(float(level) for level in levels))

    # -- parameters ----------------------------------------------------------------------------

    def first_params(self, rungs: Energies, starts: Array) -> Params:
        """The starts are as wide as the hottest rung, and others in proportion to sqrt(T)."""
        params = first_params(self.call.move, starts)
        width = np.sqrt(rungs.betas[0] / np.asarray(rungs.betas))
        free = np.array([size is None for size in self.call.move.step_sizes])
        sizes = np.where(free, width[:, None], 1.0) * np.asarray(params.step_size)
        return params._replace(step_size=jnp.asarray(sizes))

    def unfilled(self, rungs: Energies, params: Params, left: Array) -> Filled:
        """Before the first ring is filled."""
        shape = (self.call.num_chains, len(rungs.betas))
        none = np.zeros(shape, params.step_size.dtype)
        parts = np.zeros((*shape, params.step_size.shape[1]), none.dtype)
        tally = Tally(*map(jnp.asarray, (none, parts, *[none] * (len(Tally._fields) - 2))))
        held = np.zeros((shape[0], shape[1] - 1, shape[1]), int)
        return Filled(params, left, tally, jnp.asarray(held))


# -- all rungs at once ---------------------------------------------------------------------------


class EnergyRounds(Stage):
    """Rounds of all rungs at once, with empty rings."""

    def sampler(self, shared: EnergyRungs, place: Place, carry: PyTree) -> EquiEnergy:
        return shared.all_rungs(place.rungs, carry[1].params())

    def template(self, shared: EnergyRungs, place: Place) -> PyTree:
        return jax.eval_shape(lambda: again(shared, place, *zeros(shared, place)))


class EnergyPilot(EnergyRounds):
    """Two short rounds, which say how hot to begin."""

    kinds = ("pilot",)

    def applies(self, shared: EnergyRungs) -> bool:
        return shared.betas is None or shared.levels is None

    def enter(self, shared: EnergyRungs, left: Left | None) -> tuple[Place, PyTree]:
        lowest = float(shared.starts_energies.min())
        heat = shared.heat(lowest, shared.num_rungs or PILOT_RUNGS)
        length = max(20, shared.call.num_warmup // 20)
        place = Place("pilot", 0, length, Energies(betas_of(heat)))
        return place, fresh(shared, place, None)

    def after(self, shared: EnergyRungs, place: Place, carry: PyTree) -> tuple[Place | None, Any]:
        state, adaptation = carry
        params, rungs = tune_params(shared, adaptation), seen(place.rungs, state)
        heat = shared.heat(rungs.lowest, len(rungs.betas))
        if place.round and shared.num_rungs is None and shared.betas is None:
            heat = shared.heat(rungs.lowest, shared.wanted_rungs(heat[0]))
        params = transplant(np.log(rungs.betas), -np.log(heat), params)
        rungs = shared.with_levels(replace(rungs, betas=betas_of(heat)))
        if place.round:
            return None, Left(rungs, params)
        following = Place("pilot", 1, 2 * place.length, rungs)
        return following, again(shared, following, params, state.points.position)


class EnergyWarmUp(EnergyRounds):
    """Rounds of doubling length, between which moves are tuned."""

    kinds = ("warm",)

    def enter(self, shared: EnergyRungs, left: Left | None) -> tuple[Place, PyTree]:
        if left is None:
            assert shared.betas is not None
            assert shared.levels is not None
            left = Left(Energies(shared.betas, shared.levels))
        place = Place("warm", 0, rounds(shared.call.num_warmup)[0], left.rungs)
        return place, fresh(shared, place, left.params)

    def after(self, shared: EnergyRungs, place: Place, carry: PyTree) -> tuple[Place | None, Any]:
        state, adaptation = carry
        lengths, positions = rounds(shared.call.num_warmup), state.points.position
        if place.round + 1 >= len(lengths):
            params = adaptation.params()
            filled = shared.unfilled(place.rungs, params, positions)
            return None, Left(place.rungs, params, filled)
        params = tune_params(shared, adaptation)
        rungs = shared.with_levels(seen(place.rungs, state))
        following = Place("warm", place.round + 1, lengths[place.round + 1], rungs)
        return following, again(shared, following, params, positions)


def seen(rungs: Energies, state: PyTree) -> Energies:
    """With the lowest energy that any chain has seen."""
    return replace(rungs, lowest=float(np.fmin(rungs.lowest, float(jnp.min(state.lowest)))))


def fresh(shared: EnergyRungs, place: Place, params: Params | None) -> PyTree:
    """A round of all rungs from draws of the prior or base."""
    ladder = shared.ladder(place.rungs)
    starts = draw_starts(shared, place, ladder, len(place.rungs.betas))
    if params is None:
        params = shared.first_params(place.rungs, starts)
    return again(shared, place, params, starts)


def again(shared: EnergyRungs, place: Place, params: Params, positions: Array) -> PyTree:
    """A round of all rungs from these positions, with empty rings."""
    sampler = shared.all_rungs(place.rungs, params)
    state = start_replicas(sampler, positions)
    return state, begin(sampler, state)


def zeros(shared: EnergyRungs, place: Place) -> tuple[Params, Array]:
    """Parameters and positions of the right shapes."""
    shape = (shared.call.num_chains, len(place.rungs.betas), shared.call.dimension)
    positions = jnp.zeros(shape)
    return first_params(shared.call.move, positions), positions


# -- one rung at a time --------------------------------------------------------------------------


class Alone(Stage):
    """One rung, with the rings above it frozen."""

    def sampler(self, shared: EnergyRungs, place: Place, carry: PyTree) -> EquiEnergyRung:
        return self.alone(shared, place, carry[1].values)

    def alone(self, shared: EnergyRungs, place: Place, params: Params) -> EquiEnergyRung:
        """The rung of a place: of a filling that of its round, of draws the target."""
        fills = place.stage == "fill"
        rung = place.round if fills else len(place.rungs.betas) - 1
        return shared.one_rung(place.rungs, params, rung, fills)

    def begun(self, shared: EnergyRungs, place: Place, filled: Filled, rings: Any) -> PyTree:
        """Chains where warm-up left them at the place's rung."""
        sampler = self.alone(shared, place, filled.values)
        state = start_chains(sampler, filled.left[:, int(sampler.rung)], False)
        return (state if rings is None else state._replace(hotter=rings)), filled

    def template(self, shared: EnergyRungs, place: Place) -> PyTree:
        def carried() -> PyTree:
            params, positions = zeros(shared, place)
            state = start_chains(self.alone(shared, place, params), positions[:, 0], False)
            return state, shared.unfilled(place.rungs, params, positions)

        return jax.eval_shape(carried)


class Fill(Alone):
    """Rung after rung fills its rings; a round is a rung."""

    kinds = ("fill",)

    def enter(self, shared: EnergyRungs, left: Left | None) -> tuple[Place, PyTree]:
        assert left is not None
        place = Place("fill", 0, shared.num_fill, left.rungs)
        return place, self.begun(shared, place, left.state, None)

    def after(self, shared: EnergyRungs, place: Place, carry: PyTree) -> tuple[Place | None, Any]:
        """The next rung, with the rings just filled above it; after the last, the target."""
        state, filled = carry
        filled = filled.with_rings(place.round, state.own)
        if place.round + 1 == len(place.rungs.betas) - 1:
            return None, Left(place.rungs, filled.values, (state.own, filled))
        following = replace(place, round=place.round + 1)
        return following, self.begun(shared, following, filled, state.own)


class EnergyDraw(Alone):
    """Draws at the target, which jumps into the rings above it."""

    kinds = ("draw",)
    draws = True

    def enter(self, shared: EnergyRungs, left: Left | None) -> tuple[Place, PyTree]:
        assert left is not None
        rings, filled = left.state
        place = Place("draw", 0, shared.call.num_draws, left.rungs)
        return place, self.begun(shared, place, filled, rings)


@eqx.filter_jit
def log_densities(density: LogDensity, positions: Float[Array, "many d"]) -> Array:
    """One after another, since all of them at once may not fit."""
    return jax.lax.map(density, positions)


def betas_of(heat: np.ndarray) -> tuple[float, ...]:
    """Powers of the target, from temperatures."""
    return tuple(float(beta) for beta in 1.0 / heat)
