"""What a run does, in order: a pilot, rounds of warm-up, draws.

    pilot    short rounds at a guessed number of rungs, which measure the communication barrier and
             say how many rungs the problem wants. Its key is fixed: the answer belongs to the
             problem and not to the seed, so that another seed runs the same compiled programs
    warm     rounds of doubling length; between them betas, factors and step sizes are renewed
    draw     nothing adapts

Tempered transitions warm up as parallel tempering, whose swaps measure the barrier that spaces the
rungs of a transition, and then change over. On nested subsamples a rung's size is part of its
program, so sizes change between pilots and never during warm-up; those of a transition are tried by
a last pilot (subsampling.py). A `Stage`
together with the arrays it carries is all that a run knows, and the next stage is a pure function
of both: a run resumed from any block goes the same way as one that was never stopped.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from temperance._types import Key
from temperance.problems.checks import starting_points
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import AbstractLadder, SingleRung
from temperance.moves.move import AbstractMove, Params
from temperance.problems.problem import Densities, Problem, Target
from temperance.ladders.row_sums import rows_alone
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.samplers.plain import Plain
from temperance.samplers.transitions import TemperedTransitions
from temperance.ladders.spacing import equalise, initial_betas, rungs_for, transition_rungs_for
from temperance.engine.stage import Stage
from temperance.warmup.subsample_sizes import Subsampling
from temperance.warmup.adaptation import Adaptation, Settled, begin, learn_factor, rounds, transplant

PILOT_RUNGS = 10
MOST_RUNGS = 128
# Above this mean rejection the barrier is out of the pilot's sight and more rungs look again.
SATURATED = 0.7
# Folded into a stage's key for its starting points, where chains fold in their number.
STARTS = 2**31 - 1


@dataclass(frozen=True)
class Plan:
    """How to make samplers and stages for one call of `sample`."""

    problem: Problem | Target
    densities: Densities
    method: str
    move: AbstractMove
    num_chains: int
    num_warmup: int
    num_draws: int
    key: Key
    num_rungs: int | None = None
    betas: tuple[float, ...] | None = None
    hottest: float | None = None
    scheme: str = "deo"
    swaps_per_sweep: int = 1
    refresh: int = 0
    evidence: bool | None = None
    strata: Any = None

    def own(self) -> dict[str, Any]:
        """Options that the draws depend on, beyond those of every plan."""
        return {}

    # -- samplers ------------------------------------------------------------------------------

    @cached_property
    def subsampling(self) -> Subsampling | None:
        """How rows are left out, if that is what is hot."""
        if self.method not in ("spt", "stt"):
            return None
        assert isinstance(self.problem, Problem)
        return Subsampling(
            self.problem, self.densities, self.strata, self.key, self.method == "stt",
            self.hottest, bool(self.evidence),
        )  # fmt: skip

    def ladder(self, stage: Stage) -> AbstractLadder:
        d = self.densities
        if self.method in ALONE:
            return rows_alone(self.problem, d) if self.move.reads_rows else SingleRung(d.whole)
        assert d.hot is not None
        if self.subsampling is not None:
            return self.subsampling.ladder(stage.betas, pilot=stage.kind == "pilot")
        return GeometricLadder(d.hot, d.cold, stage.betas, bridge=d.bridge, draw_hot=d.draw)

    def sampler(self, stage: Stage, params: Params) -> Any:
        """The sampler of a stage; transitions are built for drawing only."""
        ladder = self.ladder(stage)
        if self.method in ALONE:
            return Plain(ladder, self.move, params)
        if self.method in TRANSITIONS and stage.kind == "draw":
            return TemperedTransitions(ladder, self.move, params)
        pilot = stage.kind == "pilot"
        # From the prior on, log evidence can be had for a few values a draw. Warm-up does as the
        # draws do, and so runs the same program.
        complete = self.method == "spt" and not self.refresh and self.evidence is not False
        return ParallelTempering(
            ladder, self.move, params, self.scheme, self.swaps_per_sweep,
            0 if pilot else self.refresh, complete and not pilot and stage.betas[0] == 0.0,
        )  # fmt: skip

    def stage_key(self, stage: Stage) -> Key:
        """The pilot's key is the same for every seed."""
        if stage.kind == "pilot":
            return jax.random.fold_in(jax.random.key(20140914), stage.index)
        return jax.random.fold_in(
            jax.random.fold_in(self.key, KINDS.index(stage.kind)), stage.index
        )

    # -- stages --------------------------------------------------------------------------------

    def first(self) -> tuple[Stage, PyTree]:
        """The first stage, and what it carries."""
        lengths = rounds(self.num_warmup)
        if self.method in ALONE:
            betas = (1.0,)
        elif self.betas is not None:
            betas = self.betas
        elif self.subsampling is not None:
            betas = self.subsampling.initial(self.num_rungs or PILOT_RUNGS)
        else:
            betas = _floats(initial_betas(self.num_rungs or PILOT_RUNGS, self.hottest or 0.0))
        if not lengths:
            return self._fresh(Stage("draw", 0, self.num_draws, betas), None)
        unknown = self.num_rungs is None or self.subsampling is not None
        if self.method not in ALONE and self.betas is None and unknown:
            return self._fresh(Stage("pilot", 0, max(20, self.num_warmup // 20), betas), None)
        return self._fresh(Stage("warm", 0, lengths[0], betas), None)

    def after(self, stage: Stage, carry: PyTree) -> tuple[Stage, PyTree]:
        """The stage that follows a finished one, and what it carries."""
        state, adaptation = carry
        stage, params = self._learn(stage, adaptation)
        if stage.kind == "pilot":
            return self._after_pilot(stage, params, state)
        lengths = rounds(self.num_warmup)
        if stage.index + 1 < len(lengths):
            following = replace(stage, index=stage.index + 1, length=lengths[stage.index + 1])
            return following, self._carry(following, params, state)
        return self._draw(stage, params, state)

    def _learn(self, stage: Stage, adaptation: Adaptation) -> tuple[Stage, Params]:
        """Betas, factors and step sizes from a finished round; its last one only settles."""
        settles = stage.kind == "warm" and stage.index + 1 >= len(rounds(self.num_warmup))
        betas = np.asarray(stage.betas)
        tried = np.maximum(np.asarray(adaptation.swap_tried, float), 1.0)
        rejection = 1 - np.asarray(adaptation.swap_acceptance, float) / tried
        rejection = np.clip(rejection, 0.0, 1.0)
        if len(betas) > 1:
            stage = replace(stage, rejection=_floats(rejection))
        if settles:
            return stage, adaptation.params()
        params = self._learnt(adaptation)
        if self.ladder(stage).draw_hottest() is not None:
            sizes = params.step_size.at[0].set(params.step_size[1])
            params = params._replace(step_size=sizes)
        if len(betas) == 1 or self.betas is not None or self.subsampling is not None:
            return stage, params
        new = equalise(betas, rejection)
        return replace(stage, betas=_floats(new)), transplant(betas, new, params)

    def _learnt(self, adaptation: Adaptation) -> Params:
        """Factors and step sizes from a finished round."""
        factor = learn_factor(adaptation, self.move.metric, self.num_chains)
        sizes = np.exp(np.asarray(adaptation.log_step_mean))
        return Params(jnp.asarray(sizes), jnp.asarray(factor))

    def _after_pilot(self, stage: Stage, params: Params, state: PyTree) -> tuple[Stage, PyTree]:
        if self.subsampling is not None and stage.chosen:
            return self._after_trial(stage, params, state)
        if stage.index % 2 == 0:
            following = replace(stage, index=stage.index + 1, length=2 * stage.length)
            return following, self._carry(following, params, state)
        if self.subsampling is not None:
            return self._after_subsampled_pilot(stage, params, state)
        barrier = float(np.sum(stage.rejection))
        num_rungs = len(stage.betas)
        wanted = rungs_for(barrier)
        again = not ends_pilot(stage)
        if again:
            wanted = max(wanted, 2 * num_rungs)
        wanted = min(wanted, MOST_RUNGS)
        old = np.asarray(stage.betas)
        # The betas of a finished pilot are already evenly spaced in the barrier.
        new = equalise(old, np.full(num_rungs - 1, barrier / (num_rungs - 1)), wanted)
        params = transplant(old, new, params)
        if again:
            following = Stage("pilot", stage.index + 1, stage.length // 2, _floats(new))
            return self._fresh(following, params)
        lengths = rounds(self.num_warmup)
        return self._fresh(Stage("warm", 0, lengths[0], _floats(new), barrier=barrier), params)

    def _after_subsampled_pilot(
        self, stage: Stage, params: Params, state: PyTree
    ) -> tuple[Stage, PyTree]:
        assert self.subsampling is not None
        again, betas = self.subsampling.after_pilot(stage.betas, stage.rejection, self.num_rungs)
        if again:
            params = self.subsampling.transplant(stage.betas, betas, params)
            return self._fresh(Stage("pilot", stage.index + 1, stage.length // 2, betas), params)
        if self.subsampling.tries_sizes:
            return self._trial(stage, betas, params, state)
        return self._warm_up(stage, betas, params)

    def _after_trial(self, stage: Stage, params: Params, state: PyTree) -> tuple[Stage, PyTree]:
        """Warm-up at the sizes that were tried, or a trial of colder ones."""
        assert self.subsampling is not None
        betas = self.subsampling.after_trial(stage.betas, stage.rejection)
        if betas != stage.betas:
            return self._trial(stage, betas, params, state)
        return self._warm_up(stage, betas, params)

    def _trial(
        self, stage: Stage, betas: tuple[float, ...], params: Params, state: PyTree
    ) -> tuple[Stage, PyTree]:
        """A pilot's chains at the sizes that it chose, each from the rung next to its own."""
        assert self.subsampling is not None
        old, new = np.asarray(stage.betas), np.asarray(betas)
        nearest = np.abs(new[:, None] - old[None, :]).argmin(axis=1)
        params = self.subsampling.transplant(stage.betas, betas, params)
        trial = replace(stage, index=stage.index + 1, betas=betas, rejection=(), chosen=True)
        positions = state.points.position[:, nearest]
        return trial, self._carry(trial, params, self._start(trial, params, positions))

    def _warm_up(
        self, stage: Stage, betas: tuple[float, ...], params: Params
    ) -> tuple[Stage, PyTree]:
        assert self.subsampling is not None
        params = self.subsampling.transplant(stage.betas, betas, params)
        barrier = float(np.sum(stage.rejection))
        lengths = rounds(self.num_warmup)
        return self._fresh(Stage("warm", 0, lengths[0], betas, barrier=barrier), params)

    def _draw(self, stage: Stage, params: Params, state: PyTree) -> tuple[Stage, PyTree]:
        following = Stage("draw", 0, self.num_draws, stage.betas, stage.rejection, stage.barrier)
        if self.method not in TRANSITIONS:
            return following, self._carry(following, params, state)
        num_rungs = len(stage.betas) if self.subsampling is not None else self.num_rungs
        if self.betas is None and num_rungs is None:
            num_rungs = transition_rungs_for(stage.barrier)
        old = new = np.asarray(stage.betas)
        if self.betas is None and num_rungs != len(stage.betas):
            new = equalise(old, np.asarray(stage.rejection), num_rungs)
            params = transplant(old, new, params)
            following = replace(following, betas=_floats(new))
        replicas = state.points.position
        state = self._start(following, params, replicas[:, -1:])
        nearest = np.abs(new[:, None] - old[None, :]).argmin(axis=1)
        return following, (state, Settled(params, replicas[:, nearest]))

    # -- what a stage carries ------------------------------------------------------------------

    def carried(self, stage: Stage) -> PyTree:
        """Something of the structure, shapes and dtypes that `stage` carries."""
        shape = (self.num_chains, len(stage.betas), self.densities.layout.dimension)
        starts = jnp.zeros(shape)
        params = initial_params(self.move, starts)
        return self._carry(stage, params, self._start(stage, params, starts))

    def sampler_of(self, stage: Stage, carry: PyTree) -> Any:
        """The sampler of a stage, with the parameters that it carries."""
        return self.sampler(stage, carry[1].params())

    def _fresh(self, stage: Stage, params: Params | None) -> tuple[Stage, PyTree]:
        """Starting points drawn anew."""
        num_rungs = len(stage.betas)
        starts = starting_points(
            self.ladder(stage),
            self.problem,
            self.densities,
            jax.random.fold_in(self.stage_key(stage), STARTS),
            (self.num_chains, num_rungs),
            gradient=self.move.uses_gradient,
        )
        if params is None:
            params = initial_params(self.move, starts)
            if self.subsampling is not None:
                params = self.subsampling.heated(stage.betas, params, self.move)
        return stage, self._carry(stage, params, self._start(stage, params, starts))

    def _carry(self, stage: Stage, params: Params, state: PyTree) -> PyTree:
        if self.method in TRANSITIONS and stage.kind == "draw":
            shape = (self.num_chains, len(stage.betas), self.densities.layout.dimension)
            return state, Settled(params, jnp.full(shape, jnp.nan))
        return state, begin(self.sampler(stage, params), state)

    def _start(self, stage: Stage, params: Params, positions: Array) -> PyTree:
        sampler = self.sampler(stage, params)
        if isinstance(sampler, ParallelTempering):
            return start_chains(sampler, positions, True)
        return start_chains(sampler, positions[:, -1], False)


KINDS = ("pilot", "warm", "draw", "fill")
TRANSITIONS = ("tt", "stt")
# One rung, and a move there.
ALONE = ("plain", "mint")


def ends_pilot(stage: Stage) -> bool:
    """Whether a pilot by powers needs no further round: its second one has the barrier in sight."""
    num_pairs = len(stage.betas) - 1
    saturated = float(np.sum(stage.rejection)) > SATURATED * num_pairs
    return stage.index % 2 == 1 and not (saturated and num_pairs + 1 < MOST_RUNGS)


@eqx.filter_jit
def start_chains(sampler: Any, positions: PyTree, replicas: bool) -> PyTree:
    """The state of every chain at its position, or at its replicas' positions."""
    return jax.vmap(sampler.init_replicas if replicas else sampler.init)(positions)


def initial_params(move: AbstractMove, positions: Array) -> Params:
    """Before anything is known: the spread of the starting points, and a cautious step."""
    num_chains, num_rungs, dimension = positions.shape
    spread = jnp.std(positions.reshape(-1, dimension), axis=0)
    ones = jnp.ones((dimension,))
    few = num_chains * num_rungs < 4 or move.metric == "unit"
    factor = ones if few else jnp.where(spread > 0, spread, ones)
    factor = jnp.diag(factor) if move.metric == "dense" else factor
    sizes = move.initial_step_sizes(dimension)
    return Params(
        jnp.broadcast_to(sizes, (num_rungs, *sizes.shape)),
        jnp.broadcast_to(factor, (num_rungs, *factor.shape)),
    )


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in np.asarray(values))
