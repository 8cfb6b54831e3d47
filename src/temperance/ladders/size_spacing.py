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
"""

import numpy as np
from scipy.special import ndtri

# A rate of one would be an infinite variance; this is beyond what a pilot can tell from it.
HIGHEST_RATE = 0.95


def variances(rejection: np.ndarray) -> np.ndarray:
    """Of the log ratios of swaps that are rejected at these rates."""
    rates = np.clip(rejection, 1e-3, HIGHEST_RATE)
    return (2 * ndtri(0.5 * (1 + rates))) ** 2


def smooth_variances(sizes: np.ndarray, variance: np.ndarray) -> np.ndarray:
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
