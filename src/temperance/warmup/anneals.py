"""Anneals: their options, the rungs that warm up for them, and the betas at which they stop.

Warm-up runs rungs of parallel tempering, which tune moves at knots and measure the barrier. An
anneal then goes through many more betas: as they are given, as far apart as the conditional
effective size of its weights allows, or with equal shares of the barrier. How many the last are
follows from the squared barrier, and from what all anneals together may evaluate: a log weight with
a variance v keeps a share exp(-v) of the draws, so that beyond v = 1 fewer and longer anneals are
the better use of as many evaluations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from temperance._types import Key, Position
from temperance.engine.method import Call, Functions
from temperance.engine.options import count, number, option
from temperance.errors import ArgumentError
from temperance.ladders.spacing import anneal_rungs_for, anneal_rungs_wanted, equalise
from temperance.problems.layout import DrawVector, Layout
from temperance.problems.problem import Problem
from temperance.programs.random_streams import Run, probe_key, stream
from temperance.samplers.annealing.betas import MOST_BETAS, conditional_betas
from temperance.samplers.annealing.importance import AnnealedImportance
from temperance.warmup.base_options import BaseOptions, check_move, with_base_asked
from temperance.warmup.rung_options import (
    check_agreement,
    given,
    increasing_betas,
    subsample_rungs,
)
from temperance.warmup.rung_weights import Stops, WeighedRungs
from temperance.warmup.serial_tempering import Ready
from temperance.warmup.subsample_rungs import SubsampleRungs

LEAST_SHARE = 0.01
# What all anneals may evaluate if nothing is said, and what a move is taken to evaluate where no
# warm-up has counted it.
MOST_EVALUATIONS, LIKELY_COST = 4e6, 8.0
# How many anneals choose their betas together.
CHOOSERS = 256


@dataclass(frozen=True, kw_only=True)
class AnnealOptions(BaseOptions):
    """From the base through powers, or from the prior through growing subsamples."""

    num_rungs: int | None = option(
        None,
        "betas of an anneal (default: 16 times the squared barrier, 32 to 4096, as far as "
        "max_evaluations allows)",
        count(2),
    )
    max_evaluations: float | None = option(
        None,
        "density evaluations that all anneals together may take, about, where their betas follow "
        f"from the barrier (default: {MOST_EVALUATIONS / 1e6:.0f} million)",
        number("a number of at least 1, or None", lambda value: 1 <= value < float("inf")),
    )
    betas: tuple[float, ...] | None = option(
        None, "the betas themselves, from 0 to 1 (default: spaced by the barrier)", increasing_betas
    )
    conditional_ess: float | None = option(
        None,
        "the share of their effective size that a step keeps, such as 0.99: particles choose the "
        "betas by it (default: they do not)",
        number(
            f"a share from {LEAST_SHARE} to below 1, such as 0.99",
            lambda share: LEAST_SHARE <= share < 1,
        ),
    )
    by_rows: bool = option(
        False, "add rows instead of heat: nested subsamples from the prior on", given
    )
    sizes: Any = option(
        None,
        "rows of each such subsample, increasing to all, kept as given; none come first (default: "
        "from a pilot)",
        given,
        kind="rows or shares",
    )
    strata: Any = option(
        None,
        "a label for each row, so that every subsample has its share of each label (default: none)",
        lambda _, labels: tuple(np.asarray(labels).tolist()),
        kind="labels",
    )


@dataclass(frozen=True)
class AnnealedPowers(WeighedRungs):
    """Rungs that are powers; an anneal stops at `stops` of them, or at so many."""

    stops: tuple[float, ...] | int | None = None
    conditional_ess: float | None = None
    draw_target: Any = None
    max_evaluations: float | None = None

    def annealing(self, rungs: Stops, ready: Ready) -> AnnealedImportance:
        """Anneals through the betas that `ready` has, with moves tuned at its knots."""
        ladder = eqx.tree_at(lambda one: one.betas, self.ladder(rungs), ready.betas)
        return AnnealedImportance(
            ladder, self.call.move, ready.values, ready.knots, self.draw_target
        )

    def stops_of(self, rungs: Stops, ready: Ready, learnt: Any) -> tuple[np.ndarray, int]:
        """Where an anneal stops: as given, by conditional ESS, or with equal shares of barrier.

        With it comes how many betas were wanted, if they are more than there may be.
        """
        if isinstance(self.stops, tuple):
            return np.asarray(self.stops), 0
        if self.conditional_ess is not None:
            betas = conditional_betas(
                stream(self.call.key, Run.BETAS), self.ladder(rungs), self.call.move, ready.values,
                self.conditional_ess, CHOOSERS,
            )  # fmt: skip
            return betas, 0
        rejection = np.asarray(rungs.rejection or (1.0,) * (len(rungs.betas) - 1))
        barrier = float(rejection.sum())
        wanted = self.stops or anneal_rungs_wanted(barrier)
        taken = self.stops or min(anneal_rungs_for(barrier), self._most(learnt))
        betas = np.asarray(equalise(np.asarray(rungs.betas), rejection, taken))
        return betas, wanted if wanted > taken else 0

    def _most(self, learnt: Any) -> int:
        """Betas of an anneal, by what all anneals may evaluate."""
        call = self.call
        cost = LIKELY_COST if learnt is None else max(learnt.cost(), 1.0)
        both = 1 if self.draw_target is None else 2
        limit = MOST_EVALUATIONS if self.max_evaluations is None else self.max_evaluations
        # An anneal evaluates its first position, and moves at all betas but the two ends.
        moves = (limit / (call.num_chains * call.num_draws * both) - 1) / cost
        return int(np.clip(moves + 2, 2, MOST_BETAS))

    def functions(self) -> Functions:
        return super().functions() | exact(self.draw_target)


@dataclass(frozen=True)
class AnnealedSizes(SubsampleRungs):
    """Rungs that are nested subsamples, at which an anneal stops."""

    draw_target: Any = None

    def annealing(self, rungs: Any, ready: Ready) -> AnnealedImportance:
        """Anneals through all subsamples."""
        ladder = self.ladder(rungs)
        return AnnealedImportance(ladder, self.call.move, ready.values, None, self.draw_target)

    def stops_of(self, rungs: Any, ready: Ready, learnt: Any) -> tuple[None, int]:
        """An anneal stops at every rung."""
        return None, 0

    def functions(self) -> Functions:
        return super().functions() | exact(self.draw_target)


def annealing(shared: AnnealedPowers | AnnealedSizes, rungs: Any, ready: Ready) -> Any:
    """The sampler that anneals."""
    return shared.annealing(rungs, ready)


def stops_of(
    shared: AnnealedPowers | AnnealedSizes, rungs: Any, ready: Ready, learnt: Any
) -> tuple[Any, int]:
    """Where it stops, and how many betas it should have had if there are fewer."""
    return shared.stops_of(rungs, ready, learnt)


def exact(draw_target: Any) -> Functions:
    """The function that draws exactly, if there is one."""
    return {} if draw_target is None else {"exact": (draw_target, (probe_key(),))}


def anneal_rungs(call: Call, draw_target: Any = None) -> AnnealedPowers | AnnealedSizes:
    """What warms up for a call's anneals; its options are AnnealOptions."""
    options = call.options
    if options.by_rows or options.sizes is not None or options.strata is not None:
        return _by_rows(call, draw_target)
    if options.betas is not None and options.betas[0] != 0:
        raise ArgumentError(f"betas: an anneal begins at 0, the base; got {options.betas[0]}")
    check_agreement(options.num_rungs, options.betas, "rungs given")
    stops = options.num_rungs if options.betas is None else options.betas
    if options.conditional_ess is not None and stops is not None:
        raise ArgumentError(
            "conditional_ess chooses an anneal's betas and their number: give it alone, or "
            "num_rungs or betas"
        )
    if options.max_evaluations is not None and (stops, options.conditional_ess) != (None, None):
        raise ArgumentError(
            "max_evaluations limits how many betas an anneal has, where that follows from the "
            "barrier: give it alone, or num_rungs, betas or conditional_ess"
        )
    call, _ = with_base_asked(call)
    return AnnealedPowers(
        call, stops=stops, conditional_ess=options.conditional_ess, draw_target=draw_target,
        max_evaluations=options.max_evaluations,
    )  # fmt: skip


def _by_rows(call: Call, draw_target: Any) -> AnnealedSizes:
    """The same of anneals that add rows: they begin at the prior, with none."""
    options = call.options
    if not isinstance(call.problem, Problem):
        raise ArgumentError(
            f"method {call.method!r} with sizes or by_rows adds rows as it goes, and a Target has "
            "none: write it as a Problem with one term for each row"
        )
    for other in ("betas", "conditional_ess", "max_evaluations", "base"):
        if getattr(options, other) is not None:
            raise ArgumentError(f"{other}: it belongs to powers, and not to subsamples; leave it")
    check_move(call, bridge=call.densities.bridge)
    return subsample_rungs(call, evidence=True, kind=AnnealedSizes, draw_target=draw_target)


def exact_draw(call: Call) -> Callable[[Key], Any]:
    """The option `exact` as a function of a key that draws a vector from the target."""
    given, layout = call.options.exact, call.densities.layout
    if given is None:
        raise ArgumentError(
            "exact: a reverse anneal begins with an exact draw of the target. Give a function of a "
            "key that makes one, or the one position that the data were simulated with"
        )
    if not callable(given):
        layout.ravel(given)  # says what is wrong with it
        return DrawVector(Constant(jax.tree.map(jnp.asarray, given)), layout)
    try:
        shape = jax.eval_shape(given, probe_key())
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise ArgumentError(f"exact: it fails on a random key: {error}") from error
    if Layout.of(shape) != layout:
        raise ArgumentError(
            f"exact: its draws have leaves {Layout.of(shape).names} of shapes "
            f"{Layout.of(shape).shapes}, and positions have {layout.names} of {layout.shapes}"
        )
    return DrawVector(given, layout)


class Constant(eqx.Module):
    """One position, whatever the key: the one that a model's data were simulated with."""

    position: Position

    def __call__(self, key: Key) -> Position:
        return self.position
