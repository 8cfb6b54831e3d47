"""Rungs that are nested subsamples, and the pilot that chooses their sizes.

    pilot    sizes evenly spaced in their logarithm, above the prior; swaps between them measure the
             variance of log ratios, and the run's sizes cut it evenly (ladders/size_spacing.py).
             Sizes of tempered transitions are then tried by the same chains, and made colder if
             they turn out too far apart
    warm     a rung's size is part of its program, so sizes stay

**Steps.** A rung with n rows is about n^(-1/2) wide, so step sizes start in that proportion.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from temperance._types import Data, Key
from temperance.engine.run import Place, Stage
from temperance.errors import ArgumentError
from temperance.ladders.prefix import PrefixLadder, depends_on_order, rows_at
from temperance.ladders.size_spacing import colder_part, cut_evenly, smooth_variances, variances
from temperance.ladders.spacing import RUNG_COUNTS
from temperance.moves.move import Params
from temperance.problems.problem import Likelihood, OnVectorAndRows, Problem
from temperance.programs.random_streams import Run, pilot_key, stream
from temperance.rows.nested_subsamples import Strata, shuffle, warn_of_merging
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.warmup.adaptation import transplant
from temperance.warmup.rounds import (
    Betas,
    Left,
    RungsSideBySide,
    carry_shapes,
    continue_round,
    first_params,
    learn_round,
    start_anew,
    start_replicas,
)

# Rungs of a pilot, and the most there are: each is a program of its own, and all compile together.
PILOT_RUNGS, MOST_RUNGS = 10, 16
# A tempered transition's variance of the log ratio, and the steps that it is cut into.
TRANSITION_VARIANCE, TRANSITION_STEPS = 4.0, 4
# How many times that variance a trial may find before sizes are taken for too far apart.
TOO_FAR = 3.0
# At this variance half of the swaps are rejected.
SWAP_VARIANCE = 1.82
# The smallest subsample that a pilot looks at, unless it is told.
FEWEST_ROWS = 2
# Above this mean rejection rate a pilot cannot measure the barrier, and looks at colder rungs.
SATURATED = 0.75
# Numbers in a vector register, and the multiple of it above which a size may be rounded to it.
VECTOR, FEW = 8, 8


@dataclass(frozen=True)
class Sizes(Betas):
    """Rungs by their shares of the rows; `tried` says that a pilot has chosen them already."""

    tried: bool = False


@dataclass(frozen=True)
class SubsampleRungs(RungsSideBySide):
    """Rungs of parallel tempering, hot by nested subsamples; `betas` are shares of the rows.

    `min_share` is the smallest subsample's. With `evidence` the prior is a rung, whatever it takes
    to get there; `complete` is as in ParallelTempering, and holds where the prior is a rung.
    `transitions` says that sizes are for tempered transitions.
    """

    betas: tuple[float, ...] | None = None
    num_rungs: int | None = None
    min_share: float | None = None
    labels: Any = None
    evidence: bool | None = None
    transitions: bool = False
    scheme: str = "deo"
    swaps_per_sweep: int = 2
    refresh: int = 0
    complete: bool = False

    rungs = Sizes

    @property
    def pilot(self) -> str:
        """Of sizes that are not given; their number may be."""
        return "sizes" if self.betas is None else ""

    @property
    def problem(self) -> Problem:
        problem = self.call.problem
        assert isinstance(problem, Problem)
        return problem

    @property
    def num_rows(self) -> int:
        return self.problem.num_rows

    # -- ladders and samplers ------------------------------------------------------------------

    def ladder(self, rungs: Betas, *, pilot: bool = False) -> PrefixLadder:
        """The ladder, on rows in the pilot's order or in the run's."""
        d = self.call.densities
        likelihood = d.cold
        assert isinstance(likelihood, Likelihood)
        assert d.hot is not None
        total = likelihood.log_likelihood
        rows, strata = self._pilot_rows if pilot else self._rows
        return PrefixLadder(
            d.hot, OnVectorAndRows(likelihood.terms, d.layout), rows, self.sizes(rungs.betas),
            independent=self.problem.independent,
            log_likelihood=None if total is None else OnVectorAndRows(total, d.layout),
            draw_prior=d.draw, strata=strata, ordered=self.ordered,
        )  # fmt: skip

    def sampler(self, rungs: Betas, params: Params, *, pilot: bool = False) -> ParallelTempering:
        ladder = self.ladder(rungs, pilot=pilot)
        if pilot:
            return ParallelTempering(
                ladder, self.call.move, params, self.scheme, self.swaps_per_sweep
            )
        # From the prior on, log evidence can be had for a few values a draw. Warm-up does as the
        # draws do, and so runs the same program.
        return ParallelTempering(
            ladder, self.call.move, params, self.scheme, self.swaps_per_sweep, self.refresh,
            self.complete and rungs.betas[0] == 0.0,
        )  # fmt: skip

    @cached_property
    def ordered(self) -> bool:
        """Whether the rows have to stay in their order."""
        return depends_on_order(self.problem)

    @cached_property
    def strata(self) -> Strata | None:
        return None if self.labels is None else Strata.of(self.labels, self.num_rows)

    @cached_property
    def _rows(self) -> tuple[Data, Strata | None]:
        return self._shuffled(stream(self.call.key, Run.ROWS))

    @cached_property
    def _pilot_rows(self) -> tuple[Data, Strata | None]:
        return self._shuffled(pilot_key())

    def _shuffled(self, key: Key) -> tuple[Data, Strata | None]:
        likelihood = self.call.densities.cold
        assert isinstance(likelihood, Likelihood)
        if self.ordered:
            return likelihood.data, None
        order = shuffle(key, self.num_rows, self.strata)
        strata = None if self.strata is None else self.strata.reordered(order)
        return rows_at(likelihood.data, order), strata

    # -- sizes ---------------------------------------------------------------------------------

    def initial(self) -> Sizes:
        if self.betas is not None:
            return Sizes(self.betas)
        return Sizes(self.spread(self.num_rungs or PILOT_RUNGS))

    def spread(self, num_rungs: int, fewest: float | None = None) -> tuple[float, ...]:
        """Evenly spaced in log size, above the prior unless a hottest size is given."""
        prior = self.evidence or (self.min_share in (None, 0.0) and fewest is None)
        fewest = fewest or self.min_share or FEWEST_ROWS / self.num_rows
        least = max(1.0, fewest * self.num_rows)
        grid = np.geomspace(least, self.num_rows, max(2, num_rungs - bool(prior)))
        found = self.shares(np.r_[0.0, grid] if prior else grid)
        if len(found) < 2:
            raise ArgumentError(f"min_rows: {self.min_share} leaves no rows out; give fewer")
        return found

    def sizes(self, betas: Any) -> np.ndarray:
        """Whole numbers of rows."""
        return np.round(np.asarray(betas) * self.num_rows).astype(int)

    def shares(self, sizes: Any) -> tuple[float, ...]:
        """The shares of distinct whole numbers of rows, in order."""
        rows = np.round(np.asarray(sizes, float)).astype(int)
        if not self.problem.independent:
            # Terms that look back factor matrices, which is faster where vectors are full.
            even = VECTOR * np.round(rows / VECTOR).astype(int)
            rows = np.where((rows > FEW * VECTOR) & (rows < self.num_rows), even, rows)
        return tuple(float(value) for value in np.unique(rows) / self.num_rows)

    @property
    def tries_sizes(self) -> bool:
        """Whether sizes are tried before they are kept."""
        return self.transitions and self.min_share is None

    def colder_look(self, rungs: Betas) -> tuple[float, ...] | None:
        """Sizes for another pilot, if this one saw a wall instead of a barrier."""
        sizes = self.num_rows * np.asarray(rungs.betas)
        free = self.min_share is None and self.num_rungs is None and not self.evidence
        if not (free and np.mean(rungs.rejection) > SATURATED and sizes[-2] > FEWEST_ROWS):
            return None
        middle = np.sqrt(max(sizes[0], 1.0) * self.num_rows) / self.num_rows
        return self.spread(len(rungs.betas), middle)

    def chosen(self, rungs: Betas) -> tuple[float, ...]:
        """The sizes of the run, from a pilot's rejection rates."""
        sizes, rates = self.num_rows * np.asarray(rungs.betas), np.asarray(rungs.rejection)
        num_rungs = self.num_rungs
        variance = smooth_variances(sizes, variances(rates))
        if self.tries_sizes:
            sizes, variance = colder_part(sizes, variance, TRANSITION_VARIANCE)
        total = float(variance.sum())
        if num_rungs is None and self.transitions:
            num_rungs = int(np.clip(np.ceil(total), 2, TRANSITION_STEPS)) + 1
        elif num_rungs is None:
            wanted = total / SWAP_VARIANCE + 1
            num_rungs = next((k for k in RUNG_COUNTS if MOST_RUNGS > k >= wanted), MOST_RUNGS)
        shares = self.shares(cut_evenly(sizes, variance, num_rungs))
        if self.num_rungs is not None and len(shares) < self.num_rungs:
            warn_of_merging(self.num_rungs, self.sizes(shares))
        return shares

    def after_trial(self, rungs: Betas) -> tuple[float, ...]:
        """The same shares, or the next ones to try."""
        betas = rungs.betas
        sizes = self.num_rows * np.asarray(betas)
        variance = variances(np.asarray(rungs.rejection))
        if variance.sum() <= TOO_FAR * TRANSITION_VARIANCE:
            return betas
        colder = colder_part(sizes, smooth_variances(sizes, variance), TRANSITION_VARIANCE)
        shares = self.shares(cut_evenly(*colder, len(betas)))
        return shares if len(shares) > 1 and shares[0] > betas[0] else betas

    # -- parameters ----------------------------------------------------------------------------

    def first_params(self, rungs: Betas, starts: Any) -> Params:
        """Steps in proportion to a rung's width, where they are tuned."""
        params = first_params(self.call.move, starts)
        sizes = np.maximum(self.sizes(rungs.betas), 1)
        width = jnp.asarray((sizes.min() / sizes) ** 0.5)
        tuned = jnp.asarray([size is None for size in self.call.move.step_sizes])
        scale = jnp.where(tuned[None], width[:, None], 1.0)
        return params._replace(step_size=params.step_size * scale)

    def transplant(self, old: tuple[float, ...], new: tuple[float, ...], params: Params) -> Params:
        """Parameters of old sizes, carried to new ones by their neighbours in log size."""
        return transplant(self._log_size(old), self._log_size(new), params)

    def _log_size(self, betas: tuple[float, ...]) -> np.ndarray:
        return np.log1p(self.num_rows * np.asarray(betas))


class SizePilot(Stage):
    """Short rounds that measure how far apart sizes are, and choose those of the run."""

    kinds = ("pilot",)

    def applies(self, shared: RungsSideBySide) -> bool:
        return shared.call.num_warmup > 0 and shared.pilot == "sizes"

    def enter(self, shared: SubsampleRungs, left: Left | None) -> tuple[Place, PyTree]:
        place = Place("pilot", 0, max(20, shared.call.num_warmup // 20), shared.initial())
        return place, start_anew(shared, place, None)

    def sampler(self, shared: SubsampleRungs, place: Place, carry: PyTree) -> Any:
        return shared.sampler(place.rungs, carry[1].params(), pilot=True)

    def after(
        self, shared: SubsampleRungs, place: Place, carry: PyTree
    ) -> tuple[Place | None, Any]:
        state, learning = carry
        rungs, params = learn_round(shared, place, learning)
        if rungs.tried:
            return self._after_trial(shared, replace(place, rungs=rungs), params, state)
        if place.round % 2 == 0:
            following = Place("pilot", place.round + 1, 2 * place.length, rungs)
            return following, continue_round(shared, following, params, state)
        colder = shared.colder_look(rungs)
        if colder is not None:
            params = shared.transplant(rungs.betas, colder, params)
            following = Place("pilot", place.round + 1, place.length // 2, Sizes(colder))
            return following, start_anew(shared, following, params)
        betas = shared.chosen(rungs)
        if shared.tries_sizes:
            return self._trial(shared, replace(place, rungs=rungs), betas, params, state)
        return None, left_with(shared, rungs, betas, params)

    def _after_trial(
        self, shared: SubsampleRungs, place: Place, params: Params, state: PyTree
    ) -> tuple[Place | None, Any]:
        """The sizes that were tried, or a trial of colder ones."""
        betas = shared.after_trial(place.rungs)
        if betas != place.rungs.betas:
            return self._trial(shared, place, betas, params, state)
        return None, left_with(shared, place.rungs, betas, params)

    def _trial(
        self,
        shared: SubsampleRungs,
        place: Place,
        betas: tuple[float, ...],
        params: Params,
        state: PyTree,
    ) -> tuple[Place, PyTree]:
        """A pilot's chains at the sizes that it chose, each from the rung next to its own."""
        old, new = np.asarray(place.rungs.betas), np.asarray(betas)
        nearest = np.abs(new[:, None] - old[None, :]).argmin(axis=1)
        params = shared.transplant(place.rungs.betas, betas, params)
        rungs = replace(place.rungs, betas=betas, rejection=(), tried=True)
        trial = replace(place, round=place.round + 1, rungs=rungs)
        sampler = shared.sampler(rungs, params, pilot=True)
        state = start_replicas(sampler, state.points.position[:, nearest])
        return trial, (state, shared.learns(sampler, state))

    def template(self, shared: SubsampleRungs, place: Place) -> PyTree:
        return carry_shapes(shared, place)


def left_with(
    shared: SubsampleRungs, rungs: Betas, betas: tuple[float, ...], params: Params
) -> Left:
    """What a finished pilot leaves: sizes, and parameters carried to them."""
    params = shared.transplant(rungs.betas, betas, params)
    return Left(Sizes(betas, barrier=float(np.sum(rungs.rejection))), params)
