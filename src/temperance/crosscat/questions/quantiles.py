"""Quantiles of mixtures: of Student's t, of negative binomials, and of a spike beside Student's t.

The quantile at level q is the smallest x with F(x) >= q, where F is the mixture's distribution
function. It lies between the smallest and the largest of the components' own quantiles, which
brackets it. Newton's steps find it, and a halving replaces each step that leaves the bracket.
With a spike of probability p at x0, F jumps by p there: levels inside the jump have x0 as their
quantile, and levels above it are those of the continuous part at q - p.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, stdtr, stdtrit

from temperance.crosscat.views.predictive import CountPredictive, RealPredictive, SpikePredictive

# Components of a smaller weight are left out: all of them together move a level by less than 1e-10.
NEGLIGIBLE = 1e-14
MOST_STEPS = 200
MOST_POINTS = 256
CLOSE = 1e-11


def _heaviest(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """[m, n] the components that matter and their weights, which sum to one."""
    num = int((weights > NEGLIGIBLE).sum(axis=0).max())
    which = np.argpartition(-weights, min(num, len(weights)) - 1, axis=0)[:num]
    kept = np.take_along_axis(weights, which, axis=0)
    return which, kept / kept.sum(axis=0)


def real_quantiles(
    law: RealPredictive, weights: NDArray[np.float64], level: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """[n] quantiles of the mixtures whose weights are the columns of `weights`, [J, n]."""
    if weights.shape[1] == 0:
        return np.empty(0)
    level = np.broadcast_to(np.asarray(level, np.float64), weights.shape[1:])
    low, high, x = _bracket(law, weights, level)
    which, shares = _heaviest(weights)
    log_peak = gammaln(0.5 * (law.df + 1.0)) - gammaln(0.5 * law.df)
    log_peak = log_peak - 0.5 * np.log(np.pi * law.df) - np.log(law.scale)
    active = np.arange(len(x))
    for _ in range(MOST_STEPS):
        at, of = x[active], which[:, active]
        df, share = law.df[of], shares[:, active]
        z = (at - law.loc[of]) / law.scale[of]
        excess = (share * stdtr(df, z)).sum(axis=0) - level[active]
        log_density = log_peak[of] - 0.5 * (df + 1.0) * np.log1p(z * z / df)
        density = (share * np.exp(log_density)).sum(axis=0)
        low[active] = np.where(excess < 0, at, low[active])
        high[active] = np.where(excess >= 0, at, high[active])
        with np.errstate(divide="ignore", invalid="ignore"):
            stepped = at - excess / density
        inside = (stepped > low[active]) & (stepped < high[active])
        x[active] = np.where(inside, stepped, _between(low[active], high[active]))
        near = CLOSE * (1.0 + np.abs(at))
        done = (np.abs(x[active] - at) <= near) | (high[active] - low[active] <= near)
        active = active[~done]
        if not len(active):
            break
    return x


def _bracket(
    law: RealPredictive, weights: NDArray[np.float64], level: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Neighbouring points on both sides of each quantile, and a first guess between them.

    The points are the components' own quantiles, at which all mixtures are looked at together.
    """
    ends = np.unique([level.min(), level.max()])
    own = np.ravel(law.loc + law.scale * stdtrit(law.df, ends[:, None]))
    points = np.unique(own)
    points = points[np.unique(np.linspace(0, len(points) - 1, MOST_POINTS).astype(int))]
    below = stdtr(law.df[:, None], (points - law.loc[:, None]) / law.scale[:, None])
    reached = weights.T @ below
    place = np.clip((reached < level[:, None]).sum(axis=1), 1, max(len(points) - 1, 1))
    left, right = place - 1, np.minimum(place, len(points) - 1)
    low, high = points[left], points[right]
    rows = np.arange(len(level))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (level - reached[rows, left]) / (reached[rows, right] - reached[rows, left])
    guess = low + np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 0.5) * (high - low)
    slack = 1e-9 * (1.0 + np.abs(points))
    return low - slack[left], high + slack[right], guess


def _between(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half way in asinh(x): tails heavier than Cauchy's put the ends very far apart."""
    return np.sinh(0.5 * (np.arcsinh(low) + np.arcsinh(high)))


def count_quantiles(
    law: CountPredictive, weights: NDArray[np.float64], level: float
) -> NDArray[np.int64]:
    """[n] quantiles of mixtures of negative binomials."""
    if weights.shape[1] == 0:
        return np.empty(0, np.int64)
    which, shares = _heaviest(weights)
    shape, stop = law.shape[which], (law.rate / (1.0 + law.rate))[which]

    def reached(x: NDArray[np.int64]) -> NDArray[np.bool_]:
        below = betainc(shape, x[None, :] + 1.0, stop)
        return (shares * below).sum(axis=0) >= level

    low = np.full(weights.shape[1], -1, np.int64)
    high = np.zeros(weights.shape[1], np.int64)
    while not (enough := reached(high)).all():
        low = np.where(enough, low, high)
        high = np.where(enough, high, 2 * high + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = reached(middle)
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    return high


def spike_quantiles(
    law: SpikePredictive, weights: NDArray[np.float64], level: float, spike: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """[n] quantiles, and whether each is the spike, which is at `spike` in standardised units."""
    away = weights * np.exp(law.log_probs[:, :1])
    rest = away.sum(axis=0)
    below = stdtr(law.real.df, (spike - law.real.loc) / law.real.scale)
    before = (away * below[:, None]).sum(axis=0)
    mass = 1.0 - rest
    on_spike = (before < level) & (level <= before + mass)
    found = np.full(weights.shape[1], spike)
    off = np.flatnonzero(~on_spike)
    levels = np.where(before >= level, level, level - mass)[off] / rest[off]
    found[off] = real_quantiles(
        law.real, away[:, off] / rest[off], np.clip(levels, 1e-12, 1 - 1e-12)
    )
    return found, on_spike
