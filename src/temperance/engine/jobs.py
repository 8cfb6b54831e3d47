"""What the conductor runs: a method by name with its plan, or a sampler built by hand."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from temperance._types import Key, Options
from temperance.engine.checkpoint import Store
from temperance.problems.checks import starting_points
from temperance.engine.conductor import Conductor
from temperance.errors import InterruptedRunError
from temperance.moves.move import AbstractMove
from temperance.methods.plan import Plan, start_chains
from temperance.problems.problem import Densities, Problem, Target
from temperance.ladders.row_sums import rows_alone
from temperance.engine.loop import run_block
from temperance.engine.stage import Stage

DRAWS = "draw-0"
# Sweeps of a draw that log evidence hears of. Their number is part of a program; that of the sweeps
# is not, so that any number of them from here on runs what is already compiled.
MOST_TRAIL = 4
# Rows to trace terms with; those of a source are never all there.
FEW_ROWS = 2
Functions = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]


@dataclass(frozen=True)
class Finished:
    """The draws, by name and leading with (draw, chain), and the sampler that drew them.

    `left` is where the warm-up of a sampler that draws at the target alone left its replicas,
    (chain, rung, d), and `learnt` is what draws were made with.
    """

    draws: dict[str, np.ndarray]
    sampler: Any
    sweeps_per_draw: int
    left: np.ndarray | None = None
    learnt: Any = None

    @property
    def num_draws(self) -> int:
        return len(self.draws["position"])


@dataclass(frozen=True)
class TunedJob:
    """A method by name: pilot, warm-up and draws as its plan says."""

    plan: Plan
    sweeps_per_draw: int

    @property
    def densities(self) -> Densities:
        return self.plan.densities

    @property
    def move(self) -> AbstractMove:
        return self.plan.move

    @property
    def identity(self) -> Options:
        """Every option that the draws depend on."""
        plan = self.plan
        names = (
            "method", "move", "num_chains", "num_warmup", "num_rungs", "betas", "hottest", "scheme",
            "swaps_per_sweep", "refresh", "evidence", "strata",
        )  # fmt: skip
        options = {name: getattr(plan, name) for name in names}
        return options | plan.own() | {"sweeps_per_draw": self.sweeps_per_draw}

    def functions(self) -> Functions:
        """The functions that the draws depend on, and what to trace them with."""
        d = self.plan.densities
        vector = jax.ShapeDtypeStruct((d.layout.dimension,), jnp.result_type(float))
        found: Functions = {"draw": (d.draw, (jax.random.key(0),))}
        if self.move.reads_rows:
            rows = rows_alone(self.plan.problem, d).rows
            found["terms"] = (rows.terms, (vector, rows.like(FEW_ROWS)))
        else:
            found["log_density"] = (d.whole, (vector,))
        if d.hot is not None:
            found["hottest"] = (d.hot, (vector,))
        exact = getattr(self.plan, "draw_target", None)
        if exact is not None:
            found["exact"] = (exact, (jax.random.key(0),))
        return found

    def run(self, conductor: Conductor) -> Finished:
        """To the last draw, or to where the conductor stops."""
        stage, carry, done = self._where(conductor.store)
        while stage.kind != "draw":
            learn = self._blocks(stage, carry, conductor).learn
            carry = conductor.run(stage.name, stage.length, learn, carry, asdict(stage), done)
            refuse_nothing(conductor)
            stage, carry = self.plan.after(stage, carry)
            done = 0
        stage = replace(stage, length=self.plan.num_draws)
        blocks = self._blocks(stage, carry, conductor)
        draws = kept(conductor.store)
        conductor.run(stage.name, stage.length, blocks.draw, carry, asdict(stage), done, draws)
        joined = join(draws, conductor, stage.length)
        left = getattr(carry[1], "left", None)
        left = None if left is None else np.asarray(left)
        return Finished(joined, blocks.sampler, self.sweeps_per_draw, left, carry[1])

    def _blocks(self, stage: Stage, carry: PyTree, conductor: Conductor) -> "Blocks":
        sampler, key = self.plan.sampler_of(stage, carry), self.plan.stage_key(stage)
        return Blocks(sampler, key, self.sweeps_per_draw, conductor.size)

    def _where(self, store: Store | None) -> tuple[Stage, PyTree, int]:
        """The stage to go on with: the first, or that of the last good block."""
        if store is None or store.last is None:
            return *self.plan.first(), 0
        stage = Stage.of(store.last.notes)
        # Subsamples keep the rows in their order, and must not keep them as a trace sees them.
        self.plan.ladder(stage)
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
        position = jax.eval_shape(lambda v: ladder.embed(layout.unravel(v)), vector)
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
            burn = self._blocks(1, conductor).burn
            carry = conductor.run("warm-0", self.num_warmup, burn, carry, {}, done)
            refuse_nothing(conductor)
            done = 0
        draws = kept(store)
        draw = self._blocks(2, conductor).draw
        conductor.run(DRAWS, self.num_draws, draw, carry, {}, done, draws)
        draws = join(draws, conductor, self.num_draws)
        return Finished(draws, self.sampler, self.sweeps_per_draw)

    def _blocks(self, stage: int, conductor: Conductor) -> "Blocks":
        key = jax.random.fold_in(self.key, stage)
        return Blocks(self.sampler, key, self.sweeps_per_draw, conductor.size)

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


@dataclass(frozen=True)
class Blocks:
    """How the blocks of one stage are made: its methods are what a conductor calls."""

    sampler: Any
    key: Key
    sweeps_per_draw: int
    size: int

    def draw(self, carry: PyTree, start: int, count: int) -> tuple[PyTree, dict[str, np.ndarray]]:
        """Draws `start` to `start + count`."""
        first = start * self.sweeps_per_draw
        carry, draws = self._run(carry, first, count, self.sweeps_per_draw, learns=False)
        return carry, {name: np.asarray(values)[:count] for name, values in draws.items()}

    def learn(self, carry: PyTree, start: int, count: int) -> tuple[PyTree, dict[str, np.ndarray]]:
        """Steps of warm-up: one draw of many steps, which is thrown away."""
        return self._run(carry, start, 1, count, learns=True)[0], {}

    def burn(self, carry: PyTree, start: int, count: int) -> tuple[PyTree, dict[str, np.ndarray]]:
        """The same of a sampler that has nothing to learn."""
        return self._run(carry, start, 1, count, learns=False)[0], {}

    def _run(
        self, carry: PyTree, first: int, count: int, thin: int, *, learns: bool
    ) -> tuple[PyTree, dict[str, Any]]:
        state, adaptation = carry
        numbers = jnp.asarray(first), jnp.asarray(count), jnp.asarray(thin), jnp.asarray(learns)
        state, adaptation, draws = run_block(
            self.sampler, state, adaptation, self.key, *numbers, self.size,
            min(self.sweeps_per_draw, MOST_TRAIL),
        )  # fmt: skip
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
