"""How well a run mixed: autocovariance, effective size, R-hat, round trips, the barrier.

**Long-run variance.** For a stationary series h with autocovariance gamma(t), the mean of N draws
has variance v / N with

    v = gamma(0) + 2 sum_{t >= 1} gamma(t).

Subtracting a chain's own mean makes its empirical gamma(t) too small by about v / n at *every*
lag, and a chain that is stuck shows no autocovariance at all. Both are mended by measuring
autocorrelation against the variance of all chains together (Vehtari et al. 2021, eq. 10):

    var_plus = (n - 1) / n * W + B / n,      rho(t) = 1 - (W - mean_c gamma_c(t)) / var_plus,

with W and B the within- and between-chain variances, every chain being cut into halves first.
Geyer's initial monotone sequence then sums rho over pairs of lags while the pairs stay positive,
each pair being held below the ones before it: tau = -1 + 2 sum_p min_{q <= p} (rho_2q + rho_2q+1).

An estimate that uses L lags on both sides has a relative variance 2 (2 L + 1) / N, that of a
chi-square with N / (2 L + 1) degrees of freedom over its mean. `standard_error` widens by
Student's quantile at those degrees of freedom.

**The paper's R-hat and effective size** (tempering by subsampling, eq. 4 to 8) are
`rhat_between` and `ess_between`, kept to reproduce its tables.

**Round trips.** With rejection rates r_k between rungs k and k + 1, the barrier is
Lambda = sum_k r_k, and a deterministic even-odd swap schedule makes

    1 / (2 + 2 sum_k r_k / (1 - r_k))

round trips a sweep, if each rung forgets between swaps (Syed et al. 2022).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from temperance.errors import ArgumentError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

FEWEST_DRAWS = 4
# How far from all draws a replica is that they do not know of, in ranges of theirs; their range is
# this many standard deviations at least; and the hottest rung that is asked.
FAR, TAIL, COLD = 2.0, 4.0, 0.25


class LongRun(NamedTuple):
    """The long-run variance of a series, and the degrees of freedom that estimate has."""

    variance: FloatArray
    dof: FloatArray


class _Spread(NamedTuple):
    within: FloatArray
    between: FloatArray  # of chain means, times the draws
    pooled: FloatArray  # the variance of all chains together, var_plus


class _Tau(NamedTuple):
    pooled: FloatArray
    tau: FloatArray
    num_lags: FloatArray
    num_draws: int


def autocovariance(series: npt.ArrayLike) -> FloatArray:
    """Of each chain about its own mean, at lags 0 .. draws - 1, every sum divided by draws.

    `series` is (chain, draw, ...), and so is what comes back with lags in place of draws.
    """
    values = _series(series)
    power, size = power_spectrum(values)
    return np.fft.irfft(power, size, axis=1)[:, : values.shape[1]] / values.shape[1]


def long_run_variance(series: npt.ArrayLike) -> LongRun:
    """Of (chain, draw, ...), N times the variance of the mean of all N draws.

    Chains that disagree make it large. NaN with fewer than four draws a chain.
    """
    found = _tau(_series(series))
    # One degree of freedom is the least that Student's quantile means anything for.
    dof = np.maximum(found.num_draws / (2.0 * found.num_lags + 1.0), 1.0)
    return LongRun(found.pooled * found.tau, dof)


def standard_error(series: npt.ArrayLike) -> FloatArray:
    """Of the mean of (chain, draw, ...), such that 1.96 of it on both sides cover 95 %.

    The root of variance over draws, times Student's 97.5 % quantile over the normal one: an
    autocorrelation time learned from few effective draws is itself uncertain. NaN where nothing
    ever moved: a chain that is stuck is not certain.
    """
    values = _series(series)
    variance, dof = long_run_variance(values)
    widening = stdtrit(dof, 0.975) / ndtri(0.975)
    error = np.sqrt(variance / (values.shape[0] * values.shape[1])) * widening
    return np.where(np.ptp(values, axis=(0, 1)) > 0.0, error, np.nan)


def left_behind(draws: FloatArray, replicas: FloatArray, betas: FloatArray) -> BoolArray:
    """Which replicas of a warm-up (chain, rung, d) ended where no draw (chain, draw, d) ever was.

    A tempered transition starts from the target's replica and forgets the others. If it cannot
    reach where one of them ended, there may be a mode that the draws do not know of. Such a replica
    is twice as far from the middle of all draws as any of them, or eight standard deviations if
    that is more, and that widened by beta^(-1/2) for the heat of its rung. Hotter rungs than a
    quarter are not asked, since the prior may take them anywhere.
    """
    flat = draws.reshape(-1, draws.shape[-1])
    low, high = flat.min(axis=0), flat.max(axis=0)
    reach = FAR * np.maximum(0.5 * (high - low), TAIL * flat.std(axis=0))
    cold = np.where(betas >= COLD, betas, np.nan)
    away = np.abs(replicas - 0.5 * (low + high)) * np.sqrt(cold)[None, :, None]
    return (away > reach).any(axis=-1)


def effective_size(series: npt.ArrayLike) -> FloatArray:
    """How many independent draws would know the mean of (chain, draw, ...) as well.

    What ArviZ calls `ess(method="mean")`, for every trailing entry at once; but NaN, not the
    number of draws, where nothing ever moved.
    """
    found = _tau(_series(series))
    size = found.num_draws / found.tau
    return np.where(found.pooled > 0.0, size, np.nan)


def rhat_live(series: npt.ArrayLike) -> FloatArray:
    """Split R-hat of (chain, draw, ...), without ranks: quick enough to show during a run.

    Infinite where every half chain is stuck at another value, NaN where nothing ever moved.
    """
    return _potential_scale_reduction(spread_of(halves(_series(series))))


def rhat_between(draws: npt.ArrayLike) -> FloatArray:
    """The paper's R-hat (eq. 4 to 7) of whole chains, with the squares that its eq. 6 lacks.

    It does not converge "from above": only R-hat >= sqrt((draws - 1) / draws) holds, and with
    independent draws in 3 chains it is below 1 in 63 % of runs. It is blind to a drift that all
    chains share; `rhat_live` is not. Needs two chains.
    """
    return _potential_scale_reduction(spread_of(_several_chains(draws)))


def ess_between(draws: npt.ArrayLike) -> FloatArray:
    """The paper's effective size (eq. 8): chains * draws * min(1, Var / B).

    Right in the mean but very noisy, since B has one degree of freedom less than there are
    chains. For independent draws in 3 chains the mean of min(1, Var / B) is 0.8515, and Var / B
    ranges from 0.34 to 20 (5 to 95 %). To measure a run use `effective_size`. Needs two chains.
    """
    values = _several_chains(draws)
    spread = spread_of(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.minimum(1.0, spread.pooled / spread.between)
    return np.asarray(values.shape[0] * values.shape[1] * share)


def round_trips(replica: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """How often, in each chain, a replica went from the hottest rung to the target and back.

    `replica` is (chain, draw, rung): which replica sits at the rung. A trip counts when it is
    complete, and only from the replica's first visit to the hottest rung.
    """
    sits = np.asarray(replica)
    if sits.ndim != 3 or not np.issubdtype(sits.dtype, np.integer):
        raise ArgumentError(
            f"replica must be integers of shape (chain, draw, rung), got {sits.dtype} {sits.shape}"
        )
    num_chains, num_draws, num_rungs = sits.shape
    if num_rungs < 2 or sits.size == 0:
        return np.zeros(num_chains, dtype=np.int64)
    # One walker per chain and replica; the stable sort leaves its visits to the ends in time order.
    chain = np.arange(num_chains)[:, None, None]
    walker = (chain * (sits.max() + 1) + sits[:, :, [0, -1]]).reshape(-1)
    order = np.argsort(walker, kind="stable")
    walker = walker[order]
    at_target = order % 2 == 1
    owner = order // (2 * num_draws)
    starts = np.r_[True, walker[1:] != walker[:-1]]
    returns = np.r_[False, at_target[:-1] & ~at_target[1:]] & ~starts
    # A walker first seen at the target has not come from the hottest rung: its first return is
    # half a trip.
    first_return = returns & (_running_count(returns, starts) == 1)
    began_at_target = at_target[np.maximum.accumulate(np.where(starts, np.arange(starts.size), 0))]
    counted = returns & ~(first_return & began_at_target)
    return np.bincount(owner[counted], minlength=num_chains)


def round_trip_rate(rejection: npt.ArrayLike) -> FloatArray:
    """Round trips a sweep of all replicas together, from (..., rung - 1) swap rejection rates.

    Holds for the deterministic even-odd schedule where each rung forgets between swaps; a local
    move that mixes slowly makes fewer.
    """
    rate = np.asarray(rejection, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (2.0 + 2.0 * np.sum(rate / (1.0 - rate), axis=-1)))


def communication_barrier(rejection: npt.ArrayLike) -> FloatArray:
    """Lambda, the sum of the rejection rates between neighbouring rungs (the last axis)."""
    return np.asarray(np.sum(np.asarray(rejection, dtype=np.float64), axis=-1))


def _series(series: npt.ArrayLike) -> FloatArray:
    values = np.asarray(series, dtype=np.float64)
    if values.ndim < 2 or 0 in values.shape[:2]:
        raise ArgumentError(f"series must be (chain, draw, ...) and not empty, got {values.shape}")
    return values


def _several_chains(draws: npt.ArrayLike) -> FloatArray:
    values = _series(draws)
    if values.shape[0] < 2 or values.shape[1] < 2:
        raise ArgumentError(
            f"draws must hold two chains of two draws at least, got {values.shape[:2]}"
        )
    return values


def power_spectrum(values: FloatArray) -> tuple[FloatArray, int]:
    """The power spectrum of each centred chain, padded so that no lag wraps around."""
    size = 1 << (2 * values.shape[1] - 1).bit_length()
    spectrum = np.fft.rfft(values - values.mean(axis=1, keepdims=True), size, axis=1)
    return spectrum.real**2 + spectrum.imag**2, size


def halves(values: FloatArray) -> FloatArray:
    """Every chain as two; the draw in the middle of an odd number is left out."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, values.shape[1] - half :]])


def spread_of(values: FloatArray) -> _Spread:
    """Variances within and between chains (chain, draw, ...), and of all of them together."""
    num_chains, num_draws = values.shape[:2]
    if num_draws < 2 or num_chains < 2:
        nothing = np.full(values.shape[2:], np.nan)
        return _Spread(nothing, nothing, nothing)
    within = values.var(axis=1, ddof=1).mean(axis=0)
    between = num_draws * values.mean(axis=1).var(axis=0, ddof=1)
    return _Spread(within, between, (num_draws - 1) / num_draws * within + between / num_draws)


def _potential_scale_reduction(spread: _Spread) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(spread.pooled / spread.within))


def _tau(values: FloatArray) -> _Tau:
    """The autocorrelation time of the mean, over half chains, with Geyer's monotone sequence."""
    num_draws = values.shape[0] * values.shape[1]
    if values.shape[1] < FEWEST_DRAWS:
        nothing = np.full(values.shape[2:], np.nan)
        return _Tau(nothing, nothing, nothing, num_draws)
    parts = halves(values)
    num_parts, length = parts.shape[:2]
    spread = spread_of(parts)
    power, size = power_spectrum(parts)
    # The inverse transform is linear, so averaging spectra first saves one of them a chain.
    covariance = np.fft.irfft(power.mean(axis=0), size, axis=0)[:length] / length
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (spread.within - covariance) / spread.pooled
    rho[0] = 1.0
    tau, num_lags = initial_monotone(rho)
    # Antithetic series may be summed to almost nothing by noise alone; this is ArviZ's floor.
    tau = np.maximum(tau, 1.0 / np.log10(num_parts * length))
    return _Tau(spread.pooled, np.where(spread.pooled > 0.0, tau, 1.0), num_lags, num_draws)


def initial_monotone(rho: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Geyer's estimate of 1 + 2 sum rho(t), and the largest lag in it."""
    num_pairs = rho.shape[0] // 2
    even = rho[0 : 2 * num_pairs : 2]
    pairs = even + rho[1 : 2 * num_pairs : 2]
    # The longest lags rest on too few products to be summed; ArviZ stops at the same one.
    num_usable = max(((rho.shape[0] - 3) | 1) // 2, 1)
    pairs[num_usable:] = -np.inf
    positive = np.logical_and.accumulate(pairs > 0.0, axis=0)
    summed = np.where(positive, np.minimum.accumulate(pairs, axis=0), 0.0).sum(axis=0)
    num_positive = positive.sum(axis=0)
    # The first lag after the last positive pair still belongs, once, if it is positive itself.
    last = np.take_along_axis(even, np.minimum(num_positive, num_pairs - 1)[None], axis=0)[0]
    extra = np.where(num_positive < num_pairs, np.maximum(last, 0.0), 0.0)
    num_lags = np.maximum(2.0 * num_positive - 1.0, 0.0)
    return np.asarray(-1.0 + 2.0 * summed + extra), np.asarray(num_lags)


def _running_count(flags: BoolArray, starts: BoolArray) -> npt.NDArray[np.int64]:
    """How many flags so far in the group, groups beginning where `starts` says."""
    total = np.cumsum(flags)
    before = np.where(starts, total - flags, 0)
    return total - np.maximum.accumulate(before)
