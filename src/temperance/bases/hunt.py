"""The hunt for modes: many starting points, each climbed to a maximum, grouped by where they end.

    starts     N draws of the prior or base, and twice as many that are drawn towards its middle,
               m + s (x - m) with s between 0.1 and 0.9: in many dimensions nearly all of the base
               lies far out, and a narrow mode's surroundings fill more of what is farther in
    climbs     L-BFGS, all points in one program (polish.py)
    ends       the best one first, each claims all ends within one standard deviation of Laplace's
               approximation (curvature.py); then ends between which the density has no dip of
               half a unit belong to one mode

**What may have been missed.** A mode's *basin* is the set of points from which the climb ends at
it. The first half of the draws of the base says which modes are known, and of the n draws of the
second half k end elsewhere. All basins that the first half has not seen then hold, together, at
most the upper 95 % limit of a binomial share (Clopper and Pearson 1934), which is 3 / n where k is
zero; and so does that of any mode that neither half has seen, however many there are. That N draws
miss a given basin of 3 / N with a chance of 5 % says less: of many such basins some are missed. The
points that are drawn towards the middle find more, and do not count here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import stats

from temperance._types import Key, LogDensity
from temperance.bases.batch_gradients import has_gradient
from temperance.bases.curvature import laplace
from temperance.bases.polish import BLOCK, Climb, Ends
from temperance.moves.fast_slow.program_cost import cost_of
from temperance.problems.gaussian import Gaussian
from temperance.problems.problem import Densities
from temperance.programs.random_streams import Hunting, stream

# Multiplications that a hunt may take, and gradients: no fewer and no more than these.
WORK, FEWEST, MOST = 1.2e9, 10_000, 2_000_000
# Starts of the first wave, which tells how long climbs are, and of all; steps of a climb at most.
FIRST_WAVE, MOST_STARTS, MOST_STEPS = 300, 360_000, 90
# One start in three is a draw of the base, the others lie farther in by a factor between these.
THIRD, INNER, OUTER = 3, 0.1, 0.9
DRAWN_AT_ONCE = 512
# Ends that may become modes, where gradients are cheap and where they are not.
MOST_ENDS, FEW_ENDS = 64, 16
CLEAR, CALL, NUM_BETWEEN, GOLDEN = 0.5, 1e4, 10, 0.618034
# How near climbs come to each other, in units of the starts.
NARROWEST = 1e-3
# The share of a hunt's gradients that may go into ends that are not claimed.
ADOPTING = 0.2


@dataclass(frozen=True)
class Budget:
    """Gradients, points of one program, and ends to look at, by what a gradient costs."""

    num_gradients: int
    cheap: bool
    chunk: int
    most_ends: int
    work: float

    @classmethod
    def of(cls, density: LogDensity, dimension: int, effort: float = 1.0) -> "Budget":
        """`effort` is the share of the usual work."""
        vector = jax.ShapeDtypeStruct((dimension,), jnp.result_type(float))
        smooth = has_gradient(density, dimension)
        program = jax.make_jaxpr(jax.value_and_grad(density) if smooth else density)(vector)
        # What is read and written counts too, and a call of Python more than that.
        work = cost_of(program.jaxpr.eqns).work + 4.0 * dimension
        work = work if smooth else (2 * dimension + 1) * (work + CALL)
        fewest = FEWEST if smooth else FEWEST // (2 * dimension + 1)
        gradients = int(np.clip(effort * WORK / work, fewest, effort * MOST))
        cheap = smooth and WORK / work > 4 * FEWEST
        chunk = 512 if cheap else 64
        return cls(gradients, cheap, chunk, MOST_ENDS if cheap else FEW_ENDS, work)


@dataclass(frozen=True)
class Hunt:
    """What a hunt has found: ends, best first, and the mode that each of them belongs to.

    `from_base` and `from_all` count the draws that ended there. Of `num_draws` draws of the base
    that were followed, however long the way, `num_missed` ended at none of these, but at ends
    beyond the first `most_ends`, or on the way. `num_checked` are the second half of the draws, of
    which `num_new` ended at no mode of the first half.
    """

    centers: np.ndarray
    values: np.ndarray
    covariances: np.ndarray
    from_base: np.ndarray
    from_all: np.ndarray
    mode: np.ndarray
    floor: np.ndarray
    num_draws: int
    num_missed: int
    num_checked: int
    num_new: int
    complete: bool

    @property
    def num_modes(self) -> int:
        return int(self.mode.max()) + 1 if self.mode.size else 0

    @property
    def bound(self) -> float:
        """What a further mode's basin could hold of the base's mass, with 95 % confidence."""
        old = self.num_checked - self.num_new
        return float(stats.beta.ppf(0.95, self.num_new + 1, old)) if old else 1.0

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """The end within one standard deviation of which each point is, or -1."""
        owner = np.full(len(points), -1)
        for j in reversed(range(len(self.centers))):
            away = points - self.centers[j]
            solved = np.linalg.solve(self.covariances[j] + np.diag(self.floor**2), away.T).T
            owner[np.einsum("ni,ni->n", away, solved) < 1.0] = j
        return owner

    def counts(self) -> np.ndarray:
        """Draws of the base that ended at each mode."""
        return np.bincount(self.mode, weights=self.from_base, minlength=self.num_modes)


def draws_of_base(densities: Densities, key: Key, wave: int, num: int) -> np.ndarray:
    """Draws of the prior or base, by rows; those that are not finite are the middle of the rest."""
    if isinstance(densities.hot, Gaussian):
        base = densities.hot
        bits = np.asarray(jax.random.key_data(stream(key, Hunting.STARTS, wave)))
        z = np.random.default_rng(bits).standard_normal((num, base.dimension))
        factor = np.asarray(base.factor, float)
        return np.asarray(base.mean, float) + (z * factor if factor.ndim == 1 else z @ factor.T)
    keys = jax.random.split(stream(key, Hunting.STARTS, wave), num + -num % DRAWN_AT_ONCE)
    parts = [
        np.asarray(_drawn(densities.draw, keys[i : i + DRAWN_AT_ONCE]), float)
        for i in range(0, num, DRAWN_AT_ONCE)
    ]
    found = np.concatenate(parts)[:num]
    bad = ~np.isfinite(found).all(axis=1)
    found[bad] = np.median(found[~bad], axis=0) if (~bad).any() else 0.0
    return found


@eqx.filter_jit
def _drawn(draw: Callable[[Key], Array], keys: Array) -> Array:
    return jax.vmap(draw)(keys)


def spread_of(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middle and the spread of points, by medians, since a prior may have no variance."""
    middle = np.median(points, axis=0)
    spread = 1.4826 * np.median(np.abs(points - middle), axis=0)
    return middle, np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)


def hunt(
    climb: Climb, draw: Callable[[int, int], np.ndarray], rng: np.random.Generator, budget: Budget
) -> Hunt:
    """The modes that draws of the base and points nearer to its middle lead to.

    `draw(wave, n)` gives n draws of the base. A first wave tells how many steps a climb takes, and
    so how many more can be afforded.
    """
    first = _wave(climb, draw(0, FIRST_WAVE), rng, np.inf)
    left = budget.num_gradients - climb.num_evaluations
    usual = climb.num_evaluations / (THIRD * FIRST_WAVE)
    num = int(np.clip(left / usual, 0, MOST_STARTS)) // THIRD
    waves = [first]
    if num:
        waves.append(_wave(climb, draw(1, num), rng, 1.2 * left))
    ends = Ends(*(np.concatenate(leaves) for leaves in zip(*(w[0] for w in waves), strict=True)))
    is_base = np.concatenate([w[1] for w in waves])
    owner, leaders, covariances = _claimed(climb, ends, budget.most_ends)
    centers, values = ends.x[leaders], ends.value[leaders]
    mode = _joined(climb, centers, values)
    _adopt(climb, ends, owner, leaders, int(ADOPTING * budget.num_gradients) // NUM_BETWEEN)
    of_base = owner[is_base]
    # The starts of a wave are in a random order, so that every other draw is any half of them.
    inside = np.isfinite(ends.value[is_base])
    at = np.where(of_base >= 0, np.append(mode, -1)[of_base], -1)
    new = inside[1::2] & ((at[1::2] < 0) | ~np.isin(at[1::2], at[::2]))
    return Hunt(
        centers, values, covariances,
        np.bincount(of_base[of_base >= 0], minlength=len(leaders)),
        np.bincount(owner[owner >= 0], minlength=len(leaders)),
        mode, NARROWEST * climb.unit, len(of_base), int(np.sum(inside & (of_base < 0))),
        len(new), int(new.sum()),
        complete=not (ends.finished & np.isfinite(ends.value) & (owner < 0)).any(),
    )  # fmt: skip


def _wave(
    climb: Climb, drawn: np.ndarray, rng: np.random.Generator, most: float
) -> tuple[Ends, np.ndarray]:
    """Ends of climbs from draws of the base and from points farther in; which are the former."""
    inner = np.repeat(drawn, THIRD - 1, axis=0)
    scale = rng.uniform(INNER, OUTER, (len(inner), 1))
    points = np.concatenate([drawn, climb.center + scale * (inner - climb.center)])
    # In a random order, so that those that are given up are any of them.
    order = rng.permutation(len(points))
    ends = climb.polish(points[order], MOST_STEPS, most)
    # Beyond the first of a block that was given up only short climbs have ended: those are no fair
    # draws of the base.
    blocks = np.split(ends.followed, range(BLOCK, len(order), BLOCK))
    fair = np.concatenate([np.logical_and.accumulate(block) for block in blocks])
    return ends, fair & (order < len(drawn))


def _claimed(climb: Climb, ends: Ends, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each end the leader that claims it, or -1; the leaders, and their covariances."""
    d = ends.x.shape[1]
    owner = np.full(len(ends.x), -1)
    order = np.argsort(-ends.value, kind="stable")
    order = order[np.isfinite(ends.value[order])]
    leads = ends.followed
    floor = np.diag((NARROWEST * climb.unit) ** 2)
    leaders: list[int] = []
    covariances: list[np.ndarray] = []
    while (able := order[leads[order]]).size and len(leaders) < most:
        # Several candidates at a time, since a look at curvatures fills a program.
        _, first = np.unique(np.round(ends.value[able], 2), return_index=True)
        some = able[np.sort(first)[: min(16, most - len(leaders))]]
        for one, covariance in zip(
            some, laplace(climb, ends.x[some], ends.slope[some]), strict=True
        ):
            if owner[one] >= 0:
                continue
            away = ends.x[order] - ends.x[one]
            near = np.einsum("ni,ni->n", away, np.linalg.solve(covariance + floor, away.T).T)
            owner[order[near < 1.0]] = len(leaders)
            order = order[near >= 1.0]
            leaders.append(int(one))
            covariances.append(covariance)
    return owner, np.asarray(leaders, int), np.array(covariances).reshape(-1, d, d)


def _adopt(climb: Climb, ends: Ends, owner: np.ndarray, leaders: np.ndarray, most: int) -> None:
    """Let ends that nobody has claimed belong to the nearest leader, if there is no dip between.

    Along a ridge without a top climbs end anywhere.
    """
    left = np.flatnonzero((owner < 0) & np.isfinite(ends.value) & ends.followed)[:most]
    if not leaders.size or not left.size:
        return
    away = (ends.x[left][:, None] - ends.x[leaders]) / climb.unit
    near = np.argmin(np.einsum("nji,nji->nj", away, away), axis=1)
    to = leaders[near]
    lowest = _lowest_between(climb, ends.x[left], ends.x[to])
    clear = lowest > np.minimum(ends.value[left], ends.value[to]) - CLEAR
    owner[left[clear]] = near[clear]


def _lowest_between(climb: Climb, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The lowest log density along the way from each point to another."""
    # Spaced unevenly, so that tops which are spaced evenly are not taken for a ridge.
    shares = np.sort(np.arange(1, NUM_BETWEEN + 1) * GOLDEN % 1.0)[:, None, None]
    between = (1 - shares) * one + shares * other
    along = climb.gradients.values(between.reshape(-1, one.shape[1]))
    return along.reshape(len(shares), -1).min(axis=0)


def _joined(climb: Climb, centers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The number of the mode of each end, the best one's first."""
    m = len(centers)
    mode = np.arange(m)
    if m > 1:
        i, j = np.triu_indices(m, 1)
        lowest = _lowest_between(climb, centers[i], centers[j])
        for k in np.flatnonzero(lowest > np.minimum(values[i], values[j]) - CLEAR):
            a, b = sorted((mode[i[k]], mode[j[k]]))
            mode[mode == b] = a
    return np.unique(mode, return_inverse=True)[1]
