"""What the conductor runs: a method by name with its plan, or a sampler built by hand."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from temperance._types import Key, Options
from temperance.checkpoint import Store
from temperance.checks import starting_points
from temperance.conductor import Advance, Conductor
from temperance.errors import InterruptedRunError
from temperance.move import AbstractMove
from temperance.plan import Plan, Stage, start_chains
from temperance.problem import Densities, Problem, Target
from temperance.samplers.run import run_block

DRAWS = "draw-0"
Functions = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]


@dataclass(frozen=True)
class Finished:
    """The draws, by name and leading with (draw, chain), and the sampler that drew them."""

    draws: dict[str, np.ndarray]
    sampler: Any
    sweeps_per_draw: int

    @property
    def num_draws(self) -> int:
        return len(self.draws["position"])


@dataclass(frozen=True)
class TunedJob:
    """A method by name: pilot, warm-up and draws as its plan says."""

    plan: Plan
    sweeps_per_draw: int

    @property
    def move(self) -> AbstractMove:
        return self.plan.move

    @property
    def identity(self) -> Options:
        """Every option that the draws depend on."""
        plan = self.plan
        names = (
            "method", "move", "num_chains", "num_warmup", "num_rungs", "betas", "hottest", "scheme"
        )  # fmt: skip
        options = {name: getattr(plan, name) for name in names}
        return options | {"sweeps_per_draw": self.sweeps_per_draw}

    def functions(self) -> Functions:
        """The functions that the draws depend on, and what to trace them with."""
        d = self.plan.densities
        vector = jax.ShapeDtypeStruct((d.layout.dimension,), jnp.result_type(float))
        found: Functions = {
            "log_density": (d.whole, (vector,)),
            "draw": (d.draw, (jax.random.key(0),)),
        }
        if d.hot is not None:
            found["hottest"] = (d.hot, (vector,))
        return found

    def run(self, conductor: Conductor) -> Finished:
        """To the last draw, or to where the conductor stops."""
        stage, carry, done = self._where(conductor.store)
        while stage.kind != "draw":
            advance = learning(
                self.plan.sampler_of(stage, carry), self.plan.stage_key(stage), conductor.size
            )
            carry = conductor.run(stage.name, stage.length, advance, carry, asdict(stage), done)
            refuse_nothing(conductor)
            stage, carry = self.plan.after(stage, carry)
            done = 0
        stage = replace(stage, length=self.plan.num_draws)
        sampler = self.plan.sampler_of(stage, carry)
        advance = drawing(sampler, self.plan.stage_key(stage), self.sweeps_per_draw, conductor.size)
        draws = kept(conductor.store)
        conductor.run(stage.name, stage.length, advance, carry, asdict(stage), done, draws)
        return Finished(join(draws, conductor, stage.length), sampler, self.sweeps_per_draw)

    def _where(self, store: Store | None) -> tuple[Stage, PyTree, int]:
        """The stage to go on with: the first, or that of the last good block."""
        if store is None or store.last is None:
            return *self.plan.first(), 0
        stage = Stage.of(store.last.notes)
        template = jax.eval_shape(lambda: self.plan.carried(stage))
        return stage, store.restore(template), store.last.position


@dataclass(frozen=True)
class HandJob:
    """A sampler built by hand: run as it is, with `num_warmup` steps thrown away."""

    problem: Problem | Target
    densities: Densities
    sampler: Any
    num_chains: int
    num_warmup: int
    num_draws: int
    key: Key
    sweeps_per_draw: int

    @property
    def move(self) -> AbstractMove:
        return self.sampler.move

    @property
    def identity(self) -> Options:
        """Every option that the draws depend on."""
        names = ("num_chains", "num_warmup", "sweeps_per_draw")
        return {"method": self.sampler} | {name: getattr(self, name) for name in names}

    def functions(self) -> Functions:
        """The functions that the draws depend on, and what to trace them with."""
        layout, ladder = self.densities.layout, self.sampler.ladder
        vector = jax.ShapeDtypeStruct((layout.dimension,), jnp.result_type(float))
        position = jax.eval_shape(layout.unravel, vector)
        found: Functions = {"draw": (self.densities.draw, (jax.random.key(0),))}
        for i, density in enumerate(ladder.densities()):
            found[f"component {i} of the ladder"] = (density, (position,))
        if ladder.draw_hottest() is not None:
            found["draw_hottest"] = (ladder.draw_hottest(), (jax.random.key(0),))
        return found

    def run(self, conductor: Conductor) -> Finished:
        """To the last draw, or to where the conductor stops."""
        store = conductor.store
        carry, done, phase = (self.start(), None), 0, "warm-0"
        if store is not None and store.last is not None:
            carry, done, phase = store.restore(carry), store.last.position, store.last.phase
        if phase == "warm-0":
            carry = conductor.run("warm-0", self.num_warmup, self._burn(conductor), carry, {}, done)
            refuse_nothing(conductor)
            done = 0
        draws = kept(store)
        conductor.run(DRAWS, self.num_draws, self._draw(conductor), carry, {}, done, draws)
        draws = join(draws, conductor, self.num_draws)
        return Finished(draws, self.sampler, self.sweeps_per_draw)

    def _burn(self, conductor: Conductor) -> Advance:
        burn = drawing(self.sampler, jax.random.fold_in(self.key, 1), 1, conductor.size)
        return lambda carry, start, count: (burn(carry, start, count)[0], {})

    def _draw(self, conductor: Conductor) -> Advance:
        key = jax.random.fold_in(self.key, 2)
        return drawing(self.sampler, key, self.sweeps_per_draw, conductor.size)

    def start(self) -> PyTree:
        """Every chain at a draw from the prior or base."""
        layout = self.densities.layout
        starts = starting_points(
            self.sampler.ladder,
            self.problem,
            self.densities,
            jax.random.fold_in(self.key, 0),
            (self.num_chains, 1),
            gradient=self.move.uses_gradient,
            place=layout,
        )
        return start_chains(self.sampler, jax.vmap(layout.unravel)(starts[:, 0]), False)


Job = TunedJob | HandJob


def drawing(sampler: Any, key: Key, sweeps_per_draw: int, size: int) -> Advance:
    """How a block of draws is made."""

    def advance(carry: PyTree, start: int, count: int) -> tuple[PyTree, dict[str, np.ndarray]]:
        first = start * sweeps_per_draw
        carry, draws = _block(sampler, carry, key, first, count, sweeps_per_draw, False, size)
        return carry, {name: np.asarray(values)[:count] for name, values in draws.items()}

    return advance


def learning(sampler: Any, key: Key, size: int) -> Advance:
    """How a block of warm-up is made: one draw of many steps, which is thrown away."""

    def advance(carry: PyTree, start: int, count: int) -> tuple[PyTree, dict[str, np.ndarray]]:
        return _block(sampler, carry, key, start, 1, count, True, size)[0], {}

    return advance


def _block(
    sampler: Any,
    carry: PyTree,
    key: Key,
    first: int,
    count: int,
    thin: int,
    learns: bool,
    size: int,
) -> tuple[PyTree, dict[str, Any]]:
    state, adaptation = carry
    steps = (jnp.asarray(first), jnp.asarray(count), jnp.asarray(thin))
    state, adaptation, draws = run_block(
        sampler, state, adaptation, key, *steps, jnp.asarray(learns), size
    )
    return (state, adaptation), draws


def kept(store: Store | None) -> list[dict[str, np.ndarray]]:
    """The draws that a checkpoint already holds."""
    return [] if store is None else [block.draws for block in store.blocks(DRAWS)]


def join(
    draws: list[dict[str, np.ndarray]], conductor: Conductor, most: int
) -> dict[str, np.ndarray]:
    """All blocks' draws, if there is one; of a checkpoint that holds more, the first `most`."""
    refuse_nothing(conductor, draws)
    return {name: np.concatenate([block[name] for block in draws])[:most] for name in draws[0]}


def refuse_nothing(conductor: Conductor, draws: list[Any] | None = None) -> None:
    """Raise if the run was stopped with nothing to give back."""
    if conductor.stopped is None or draws:
        return
    after = {
        "interrupted": "interrupted",
        "max_seconds": f"out of time (max_seconds={conductor.max_seconds})",
        "target_ess": "stopped",
    }[conductor.stopped]
    keeps = (
        "run the same call again to go on from the checkpoint"
        if conductor.store is not None
        else "give checkpoint= to be able to go on, fewer num_warmup, or more time"
    )
    raise InterruptedRunError(f"{after} before the first draw was finished: {keeps}")
