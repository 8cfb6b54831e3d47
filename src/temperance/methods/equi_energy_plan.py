"""What a run of the equi-energy sampler does, in order.

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

from temperance._types import LogDensity, Options
from temperance.problems.checks import starting_points
from temperance.ladders.energies import (
    EnergyLadder,
    rungs_for_heat,
    spaced_levels,
    spaced_temperatures,
    spacing_for,
)
from temperance.moves.move import Params
from temperance.methods.plan import STARTS, Plan, initial_params, start_chains
from temperance.samplers.equi_energy.reservoir import Reservoir
from temperance.samplers.equi_energy.all_rungs import EquiEnergy
from temperance.samplers.equi_energy.one_rung import EquiEnergyRung
from temperance.ladders.spacing import RUNG_COUNTS
from temperance.engine.stage import Stage
from temperance.warmup.adaptation import begin, rounds, transplant

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
class EquiEnergyPlan(Plan):
    """How to make the stages of one call; `betas` are 1 / T, and `hottest` is a temperature."""

    jump_probability: float = 0.25
    capacity: int | None = None
    num_fill: int = 1000
    levels: tuple[float, ...] | None = None

    def own(self) -> Options:
        names = ("jump_probability", "capacity", "num_fill", "levels")
        return {name: getattr(self, name) for name in names}

    # -- samplers ------------------------------------------------------------------------------

    def ladder(self, stage: Stage) -> EnergyLadder:
        levels = stage.levels or (-np.inf,) * (len(stage.betas) - 1)
        heat = 1.0 / np.asarray(stage.betas)
        return EnergyLadder(self.densities.whole, heat, (*levels, -np.inf))

    def sampler(self, stage: Stage, params: Params) -> Any:
        """All rungs while moves are tuned, and one of them when rings are filled or drawn with."""
        ladder = self.ladder(stage)
        if stage.kind in ("pilot", "warm"):
            return EquiEnergy(
                ladder, self.move, params, self.jump_probability, SHORT_MEMORY,
                stagger=0, burn_in=0, frozen_from=NEVER,
            )  # fmt: skip
        fills = stage.kind == "fill"
        rung = stage.index if fills else ladder.num_rungs - 1
        burn_in = jnp.asarray(int(BURN_IN * self.num_fill))
        return EquiEnergyRung(
            ladder, self.move, params, jnp.asarray(rung), burn_in, self.jump_probability,
            self.capacity or self._capacity(len(stage.betas)), fills,
        )  # fmt: skip

    def _capacity(self, num_rungs: int) -> int:
        """All states that a rung has to remember, or as many as memory is meant for."""
        state = self.num_chains * num_rungs * (2 * self.densities.layout.dimension + 1)
        return int(np.clip(MOST_NUMBERS // state, FEWEST_STATES, self.num_fill))

    # -- stages --------------------------------------------------------------------------------

    def first(self) -> tuple[Stage, PyTree]:
        if self.betas is not None and self.levels is not None:
            stage = Stage("warm", 0, rounds(self.num_warmup)[0], self.betas, levels=self.levels)
            return self._fresh(stage, None)
        length = max(20, self.num_warmup // 20)
        heat = self._heat(float(self._starts_energies.min()), self.num_rungs or PILOT_RUNGS)
        return self._fresh(Stage("pilot", 0, length, betas_of(heat)), None)

    def after(self, stage: Stage, carry: PyTree) -> tuple[Stage, PyTree]:
        state, learnt = carry
        if stage.kind == "fill":
            return self._after_fill(stage, state, learnt)
        settles = stage.kind == "warm" and stage.index + 1 >= len(rounds(self.num_warmup))
        params = learnt.params() if settles else self._learnt(learnt)
        positions = state.points.position
        if settles:
            filled = self._unfilled(stage, params, positions)
            following = replace(stage, kind="fill", index=0, length=self.num_fill)
            return following, (self._start(following, params, positions[:, 0]), filled)
        known = float(jnp.min(state.lowest))
        stage = replace(stage, lowest=float(np.fmin(stage.lowest, known)))
        if stage.kind == "pilot":
            return self._piloted(stage, params, positions)
        length = rounds(self.num_warmup)[stage.index + 1]
        following = self._levelled(replace(stage, index=stage.index + 1, length=length))
        return following, self._again(following, params, positions)

    def _piloted(self, stage: Stage, params: Params, positions: Any) -> tuple[Stage, PyTree]:
        dimension, again = self.densities.layout.dimension, stage.index == 0
        heat = self._heat(stage.lowest, len(stage.betas))
        if not again and self.num_rungs is None and self.betas is None:
            wanted = rungs_for_heat(heat[0], dimension)
            heat = self._heat(stage.lowest, next(k for k in (*RUNG_COUNTS, MOST_RUNGS)
                                                if k >= min(wanted, MOST_RUNGS)))  # fmt: skip
        params = transplant(np.log(stage.betas), -np.log(heat), params)
        stage = replace(stage, betas=betas_of(heat))
        if again:
            following = self._levelled(replace(stage, index=1, length=2 * stage.length))
            return following, self._again(following, params, positions)
        length = rounds(self.num_warmup)[0]
        following = self._levelled(replace(stage, kind="warm", index=0, length=length))
        return self._fresh(following, params)

    def _after_fill(self, stage: Stage, state: PyTree, filled: Filled) -> tuple[Stage, PyTree]:
        """The next rung, with the rings just filled above it; after the last, the target."""
        rung = stage.index + 1
        filled = filled.with_rings(stage.index, state.own)
        following = replace(stage, index=rung)
        if rung == len(stage.betas) - 1:
            following = replace(stage, kind="draw", index=0, length=self.num_draws)
        start = self._start(following, filled.values, filled.left[:, rung])
        return following, (start._replace(hotter=state.own), filled)

    # -- temperatures and levels ---------------------------------------------------------------

    @cached_property
    def _starts_energies(self) -> np.ndarray:
        """Of draws from the prior or base, the same ones for every seed."""
        key = jax.random.fold_in(self.stage_key(Stage("pilot", 0, 0, ())), STARTS)
        starts = starting_points(
            self.ladder(Stage("pilot", 0, 0, (0.5, 1.0))), self.problem, self.densities, key,
            (self.num_chains, PILOT_RUNGS), gradient=self.move.uses_gradient,
        )  # fmt: skip
        flat = starts.reshape(-1, starts.shape[-1])
        return -np.asarray(log_densities(self.densities.whole, flat))

    def _heat(self, lowest: float, num_rungs: int) -> np.ndarray:
        if self.betas is not None:
            return 1.0 / np.asarray(self.betas)
        above = float(np.median(self._starts_energies)) - lowest
        wanted = 2.0 * above / self.densities.layout.dimension
        hottest = self.hottest or float(np.clip(wanted, LEAST_HEAT, MOST_HEAT))
        return spaced_temperatures(hottest, num_rungs)

    def _levelled(self, stage: Stage) -> Stage:
        """With levels from the lowest energy that is known, unless they are given."""
        if self.levels is not None:
            return replace(stage, levels=self.levels)
        heat = 1.0 / np.asarray(stage.betas)
        spacing = spacing_for(heat, self.densities.layout.dimension)
        levels = spaced_levels(stage.lowest, heat, spacing)[:-1]
        return replace(stage, levels=tuple(float(level) for level in levels))

    # -- what a stage carries ------------------------------------------------------------------

    def _fresh(self, stage: Stage, params: Params | None) -> tuple[Stage, PyTree]:
        starts = starting_points(
            self.ladder(stage),
            self.problem,
            self.densities,
            jax.random.fold_in(self.stage_key(stage), STARTS),
            (self.num_chains, len(stage.betas)),
            gradient=self.move.uses_gradient,
        )
        if params is None:
            # The starts are as wide as the hottest rung, and others in proportion to sqrt(T).
            params = initial_params(self.move, starts)
            width = np.sqrt(stage.betas[0] / np.asarray(stage.betas))
            tuned = np.array([size is None for size in self.move.step_sizes])
            sizes = np.where(tuned, width[:, None], 1.0) * np.asarray(params.step_size)
            params = params._replace(step_size=jnp.asarray(sizes))
        return stage, self._again(stage, params, starts)

    def _again(self, stage: Stage, params: Params, positions: Any) -> PyTree:
        """A round of all rungs from these positions, with empty rings."""
        return self._carry(stage, params, self._start(stage, params, positions))

    def carried(self, stage: Stage) -> PyTree:
        shape = (self.num_chains, len(stage.betas), self.densities.layout.dimension)
        positions = jnp.zeros(shape)
        params = initial_params(self.move, positions)
        if stage.kind in ("pilot", "warm"):
            return self._again(stage, params, positions)
        state = self._start(stage, params, positions[:, 0])
        return state, self._unfilled(stage, params, positions)

    def _carry(self, stage: Stage, params: Params, state: PyTree) -> PyTree:
        return state, begin(self.sampler(stage, params), state)

    def _start(self, stage: Stage, params: Params, positions: Any) -> PyTree:
        sampler = self.sampler(stage, params)
        return start_chains(sampler, positions, isinstance(sampler, EquiEnergy))

    def _unfilled(self, stage: Stage, params: Params, left: Array) -> Filled:
        shape = (self.num_chains, len(stage.betas))
        none = np.zeros(shape, params.step_size.dtype)
        parts = np.zeros((*shape, params.step_size.shape[1]), none.dtype)
        tally = Tally(*map(jnp.asarray, (none, parts, *[none] * (len(Tally._fields) - 2))))
        held = np.zeros((self.num_chains, shape[1] - 1, shape[1]), int)
        return Filled(params, left, tally, jnp.asarray(held))


@eqx.filter_jit
def log_densities(density: LogDensity, positions: Float[Array, "many d"]) -> Array:
    """One after another, since all of them at once may not fit."""
    return jax.lax.map(density, positions)


def betas_of(heat: np.ndarray) -> tuple[float, ...]:
    """Powers of the target, from temperatures."""
    return tuple(float(beta) for beta in 1.0 / heat)
