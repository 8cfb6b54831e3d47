"""How far to heat by leaving rows out, and where the rungs stand.

A rung's size is static, so a new set of sizes is a new program. Sizes are chosen by a pilot and
then kept: the pilot's order of the rows and its key are fixed, so that the choice belongs to the
problem and not to the seed.

**What lies between two rungs.** Write D for the rows by which a rung of n rows exceeds the one
below. Each row is a surprise of its own to the smaller subsample, so the increment I, a sum over D,
has a variance near d D / n for d parameters: it grows with D, and not with its square as with
powers. Two neighbours' swap has a log ratio of variance S^2 = 2 var I and mean -S^2 / 2, and is
rejected with probability r = 1 - 2 Phi(-S / 2). So what adds up along a ladder of subsamples is

    V = the sum over pairs of S^2,      S = 2 Phi^{-1}((1 + r) / 2),

where a ladder of powers adds up r itself. The pilot's rungs are evenly spaced in log size, with the
prior (no rows) below them where it can be drawn; its swaps measure V between sizes, and the rungs
stand where V is cut evenly. The pilot sees one order of the rows, whose accidents are not those of
another, so half of V is spread over the ladder evenly in log size. If the pilot's swaps are nearly
all rejected it sees no distance but a wall, and another pilot looks at the colder half of the
ladder, in log size.

**How far to heat.** Rows left out cost nothing, so parallel tempering goes down to where the pilot
came from, the prior if it can, with V / 1.82 + 1 rungs: then half of the swaps are rejected. The
log ratio of a tempered transition has variance V between its hottest rung and the target, however
many steps that is cut into, and its acceptance is 2 Phi(-sqrt(V) / 2). The hottest rung is the
smallest size with V <= 4, where 0.32 are accepted; more heat would cost more than it gives. Since V
is about 2 d log(N / n), that is little heat where parameters are many.

**Sizes on trial.** Chains that are still on their way to a posterior swap easily, and a pilot of
them sees less distance than there is. So a transition's sizes are tried by the same chains, from
where the pilot left them. Where V comes out three times what it was to be, colder sizes are tried.

**Steps.** A rung with n rows is about n^(-1/2) wide, so step sizes start in that proportion.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from temperance._types import Data, Key
from temperance.errors import ArgumentError
from temperance.moves.move import AbstractMove, Params
from temperance.ladders.prefix import PrefixLadder, depends_on_order, rows_at
from temperance.problems.problem import Densities, Likelihood, OnVectorAndRows, Problem
from temperance.ladders.spacing import RUNG_COUNTS
from temperance.rows.shuffle import Strata, shuffle
from temperance.rows.sizes import warn_of_merging
from temperance.warmup.adaptation import transplant

# Every rung is a program of its own, and they are compiled together.
MOST_RUNGS = 16
# A tempered transition's variance of the log ratio, and the steps that it is cut into.
TRANSITION_VARIANCE, TRANSITION_STEPS = 4.0, 4
# How many times that variance a trial may find before sizes are taken for too far apart.
TOO_FAR = 3.0
# At this variance half of the swaps are rejected.
SWAP_VARIANCE = 1.82
# A rate of one would be an infinite variance; this is beyond what a pilot can tell from it.
HIGHEST_RATE = 0.95
# The smallest subsample that a pilot looks at, unless it is told.
FEWEST_ROWS = 2
# Above this mean rejection a pilot sees no barrier but a wall.
SATURATED = 0.75
PILOT_SEED = 20140914
# Numbers in a vector register, and the multiple of it above which a size may be rounded to it.
VECTOR, FEW = 8, 8


@dataclass(frozen=True)
class Subsampling:
    """Sizes and rows for nested subsamples of one problem; `betas` are shares of the rows."""

    problem: Problem
    densities: Densities
    labels: Any
    key: Key
    transitions: bool
    hottest: float | None
    evidence: bool  # then the prior is a rung, whatever it takes to get there

    @property
    def num_rows(self) -> int:
        return self.problem.num_rows

    @cached_property
    def strata(self) -> Strata | None:
        return None if self.labels is None else Strata.of(self.labels, self.num_rows)

    def ladder(self, betas: tuple[float, ...], *, pilot: bool) -> PrefixLadder:
        """The ladder at `betas`, on rows in the pilot's order or in the run's."""
        d = self.densities
        likelihood = d.cold
        assert isinstance(likelihood, Likelihood)
        assert d.hot is not None
        total = likelihood.log_likelihood
        rows, strata = self._pilot_rows if pilot else self._rows
        return PrefixLadder(
            d.hot, OnVectorAndRows(likelihood.terms, d.layout), rows, self.sizes(betas),
            independent=self.problem.independent,
            log_likelihood=None if total is None else OnVectorAndRows(total, d.layout),
            draw_prior=d.draw, strata=strata, ordered=self.ordered,
        )  # fmt: skip

    @cached_property
    def ordered(self) -> bool:
        """Whether the rows have to stay in their order."""
        return depends_on_order(self.problem)

    @cached_property
    def _rows(self) -> tuple[Data, Strata | None]:
        return self._ordered(jax.random.fold_in(self.key, 2**31 - 2))

    @cached_property
    def _pilot_rows(self) -> tuple[Data, Strata | None]:
        return self._ordered(jax.random.key(PILOT_SEED))

    def _ordered(self, key: Key) -> tuple[Data, Strata | None]:
        likelihood = self.densities.cold
        assert isinstance(likelihood, Likelihood)
        if self.ordered:
            return likelihood.data, None
        order = shuffle(key, self.num_rows, self.strata)
        strata = None if self.strata is None else self.strata.reordered(order)
        return rows_at(likelihood.data, order), strata

    # -- sizes ---------------------------------------------------------------------------------

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

    def initial(self, num_rungs: int, fewest: float | None = None) -> tuple[float, ...]:
        """Evenly spaced in log size, above the prior unless a hottest size is given."""
        prior = self.evidence or (self.hottest in (None, 0.0) and fewest is None)
        fewest = fewest or self.hottest or FEWEST_ROWS / self.num_rows
        least = max(1.0, fewest * self.num_rows)
        grid = np.geomspace(least, self.num_rows, max(2, num_rungs - prior))
        found = self.shares(np.r_[0.0, grid] if prior else grid)
        if len(found) < 2:
            raise ArgumentError(f"hottest: {self.hottest} leaves no rows out; give a smaller one")
        return found

    def after_pilot(
        self,
        betas: tuple[float, ...],
        rejection: tuple[float, ...],
        num_rungs: int | None,
    ) -> tuple[bool, tuple[float, ...]]:
        """Whether to look again, and the shares of the next pilot or of the run."""
        sizes, rates = self.num_rows * np.asarray(betas), np.asarray(rejection)
        free = self.hottest is None and num_rungs is None and not self.evidence
        if free and rates.mean() > SATURATED and sizes[-2] > FEWEST_ROWS:
            middle = np.sqrt(max(sizes[0], 1.0) * self.num_rows) / self.num_rows
            return True, self.initial(len(betas), middle)
        asked = num_rungs
        variance = levelled(sizes, variances(rates))
        if self.tries_sizes:
            sizes, variance = colder_part(sizes, variance, TRANSITION_VARIANCE)
        total = float(variance.sum())
        if num_rungs is None and self.transitions:
            num_rungs = int(np.clip(np.ceil(total), 2, TRANSITION_STEPS)) + 1
        elif num_rungs is None:
            wanted = total / SWAP_VARIANCE + 1
            num_rungs = next((k for k in RUNG_COUNTS if MOST_RUNGS > k >= wanted), MOST_RUNGS)
        shares = self.shares(cut_evenly(sizes, variance, num_rungs))
        if asked is not None and len(shares) < asked:
            warn_of_merging(asked, self.sizes(shares))
        return False, shares

    @property
    def tries_sizes(self) -> bool:
        """Whether sizes are tried before they are kept."""
        return self.transitions and self.hottest is None

    def after_trial(
        self, betas: tuple[float, ...], rejection: tuple[float, ...]
    ) -> tuple[float, ...]:
        """The same shares, or the next ones to try."""
        sizes, variance = self.num_rows * np.asarray(betas), variances(np.asarray(rejection))
        if variance.sum() <= TOO_FAR * TRANSITION_VARIANCE:
            return betas
        colder = colder_part(sizes, levelled(sizes, variance), TRANSITION_VARIANCE)
        shares = self.shares(cut_evenly(*colder, len(betas)))
        return shares if len(shares) > 1 and shares[0] > betas[0] else betas

    # -- parameters ----------------------------------------------------------------------------

    def heated(self, betas: tuple[float, ...], params: Params, move: AbstractMove) -> Params:
        """Steps in proportion to a rung's width, where they are tuned."""
        sizes = np.maximum(self.sizes(betas), 1)
        width = jnp.asarray((sizes.min() / sizes) ** 0.5)
        tuned = jnp.asarray([size is None for size in move.step_sizes])
        scale = jnp.where(tuned[None], width[:, None], 1.0)
        return params._replace(step_size=params.step_size * scale)

    def transplant(self, old: tuple[float, ...], new: tuple[float, ...], params: Params) -> Params:
        """Parameters of old sizes, carried to new ones by their neighbours in log size."""
        return transplant(self._place(old), self._place(new), params)

    def _place(self, betas: tuple[float, ...]) -> np.ndarray:
        return np.log1p(self.num_rows * np.asarray(betas))


def variances(rejection: np.ndarray) -> np.ndarray:
    """Of the log ratios of swaps that are rejected at these rates."""
    rates = np.clip(rejection, 1e-3, HIGHEST_RATE)
    return (2 * ndtri(0.5 * (1 + rates))) ** 2


def levelled(sizes: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Half of each step's own variance, and half of its share by log size."""
    width = np.diff(np.log1p(sizes))
    return 0.5 * variance + 0.5 * variance.sum() * width / width.sum()


def cut_evenly(sizes: np.ndarray, variance: np.ndarray, num_rungs: int) -> np.ndarray:
    """`num_rungs` sizes with as much variance between each two; the ends stay."""
    from scipy.interpolate import PchipInterpolator

    along = np.r_[0.0, np.cumsum(variance)]
    place = PchipInterpolator(along, np.log1p(sizes))
    new = np.expm1(np.asarray(place(np.linspace(0.0, along[-1], num_rungs))))
    new[0], new[-1] = sizes[0], sizes[-1]
    return new


def colder_part(
    sizes: np.ndarray, variance: np.ndarray, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """The sizes from which the target is at most `most` away, and the steps between them.

    The hottest of them lies inside a step of the old ladder, at its share of that step.
    """
    beyond = np.r_[np.cumsum(variance[::-1])[::-1], 0.0]
    if beyond[0] <= most:
        return sizes, variance
    first = int(np.flatnonzero(beyond <= most)[0])
    left = most - beyond[first]
    width = np.log1p(sizes[first]) - np.log1p(sizes[first - 1])
    hottest = np.round(np.expm1(np.log1p(sizes[first]) - left / variance[first - 1] * width))
    if hottest >= sizes[first]:
        hottest = sizes[first] - 1
    if hottest < 1:
        return sizes[first:], variance[first:]
    return np.r_[hottest, sizes[first:]], np.r_[left, variance[first:]]
