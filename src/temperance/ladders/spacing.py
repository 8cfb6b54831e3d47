"""Where the rungs stand, how many there should be, and what they cost.

**Equal shares of the barrier.** Between rungs at beta and beta + d a swap is rejected with
probability r = lambda(beta) d + O(d^3). So the cumulative barrier

    Lambda(beta_k) = sum_{j < k} r_j

is a function of the path and not of where its rungs stand, and with a given number of rungs the
round-trip rate is largest when all r are equal (Syed et al. 2022). `equalise` puts rung k where
Lambda(beta) is k / (K - 1) of the whole. It interpolates a coordinate of beta as a function of
Lambda, monotonely (PCHIP), and is repeated as a run learns its rejection rates: equal rates are
its fixed point. The coordinate is that in which `initial_betas` are evenly spaced, beta^0.3, or
log beta above a positive hottest rung: in beta itself the hot end is too curved to interpolate.

**How many rungs for parallel tempering.** With many rungs the rates are Lambda / (K - 1), and
2 Lambda + 1 rungs make them one half, the best use of a given number of replicas.

**How many for tempered transitions.** For energies l that are normal with variance sigma^2 at
beta, two neighbouring rungs reject with r = d E|l - l'| / 2 = d sigma / sqrt(pi), so
sigma = sqrt(pi) lambda(beta). A transition through M steps of equal barrier, and back, accepts
with the log ratio sum_k d_k (l_k' - l_k), whose 2 M terms are independent if every rung forgets:

    S^2 = 2 sum_k d_k^2 sigma_k^2 = 2 pi Lambda^2 / M.

Its mean is -S^2 / 2, as E[ratio] = 1 demands, so the acceptance is E min(1, exp N(-S^2/2, S^2)) =
2 Phi(-S / 2). M = 2.2 Lambda^2 gives S = 1.69 and an acceptance of 0.40. Acceptance per step is
best at S = 2.38 (M = 1.1 Lambda^2, acceptance 0.23), but only by a seventh, and what rungs do not
forget adds to S: hence the larger M.

**What subsampling saves.** If a move on n rows costs n^a, then on a rung that sees a share
b_k = n_k / N of the rows it costs b_k^a moves at the target. An iteration of M + 1 rungs costs

    SPT     sum_{k=0}^M b_k^a                              every rung once
    STT     1 + 2 sum_{k=1}^{M-1} b_k^a + b_0^a            there and back, the two ends once

which are equations (15) and (16) of paper 1 (with b_0^a where the print has b_0^(a / M)) for any
sizes. With a = 0 heat is not cheaper, as for powers: M + 1 and 2 M, which the print's (17) and (18)
miss by one chain and by two moves. Rows that only swaps and ratios look at are not counted.
"""

import math

import numpy as np
import numpy.typing as npt

from temperance.errors import ArgumentError

FloatArray = npt.NDArray[np.float64]

# Few distinct numbers of rungs mean few programs to compile.
RUNG_COUNTS = (4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128)
_MOST_TRANSITION_RUNGS = 96
_STEPS_PER_SQUARED_BARRIER = 2.2
_ANNEAL_STEPS_PER_SQUARED_BARRIER = 16.0
_FEWEST_ANNEAL_RUNGS, _MOST_ANNEAL_RUNGS = 32, 4096
# A step nobody was seen to reject still has some width in Lambda; this share of the mean step.
_LEAST_SHARE = 1e-3
_POWER = 0.3


def equalise(
    betas: npt.ArrayLike, rejection: npt.ArrayLike, num_rungs: int | None = None
) -> FloatArray:
    """Betas whose steps have equal shares of the barrier; the two ends stay where they are.

    `rejection[k]` is the rejection rate between rungs k and k + 1 of `betas`.
    """
    old = _increasing(betas)
    rate = np.asarray(rejection, dtype=np.float64)
    if rate.shape != (old.size - 1,):
        raise ArgumentError(f"rejection must have shape ({old.size - 1},), got {rate.shape}")
    if not np.all((rate >= 0.0) & (rate <= 1.0)):
        raise ArgumentError(f"rejection must lie between 0 and 1, got {rate}")
    count = _at_least_two(old.size if num_rungs is None else num_rungs)
    if not rate.any():
        rate = np.ones_like(rate)
    barrier = np.r_[0.0, np.cumsum(np.maximum(rate, _LEAST_SHARE * rate.mean()))]
    # Imported here because it takes a second, and `import temperance` stays light.
    from scipy.interpolate import PchipInterpolator

    place = PchipInterpolator(barrier, _coordinate(old))
    new = _beta_at(np.asarray(place(np.linspace(0.0, barrier[-1], count))), bool(old[0] > 0.0))
    new[0], new[-1] = old[0], old[-1]
    return new


def initial_betas(num_rungs: int, hottest: float = 0.0) -> FloatArray:
    """Betas from `hottest` to 1 before anything is known of the barrier.

    Powers (k / (K - 1))^(1 / 0.3) from 0, where most of the barrier lies next to the base;
    geometric from a positive `hottest`.
    """
    if num_rungs == 1:
        return np.ones(1)
    if not 0.0 <= hottest < 1.0:
        raise ArgumentError(f"hottest must be in [0, 1), got {hottest}")
    ends = _coordinate(np.array([hottest, 1.0]))
    return _beta_at(np.linspace(ends[0], ends[1], _at_least_two(num_rungs)), hottest > 0.0)


def rungs_for(barrier: float) -> int:
    """Enough rungs that swaps are rejected half the time or less, as one of `RUNG_COUNTS`."""
    wanted = 2.0 * _barrier(barrier) + 1.0
    return next((count for count in RUNG_COUNTS if count >= wanted), RUNG_COUNTS[-1])


def transition_rungs_for(barrier: float) -> int:
    """Rungs of a tempered transition that accepts 0.4 of the time: its steps and one, 2 to 96."""
    num_steps = math.ceil(_STEPS_PER_SQUARED_BARRIER * min(_barrier(barrier), 1e3) ** 2)
    return min(max(num_steps + 1, 2), _MOST_TRANSITION_RUNGS)


def anneal_rungs_for(barrier: float) -> int:
    """Rungs of an anneal whose log weight has a variance of 0.2 if every rung forgets, 32 to 4096.

    M steps of equal barrier leave pi Lambda^2 / M, half of a transition's S^2.
    """
    return min(anneal_rungs_wanted(barrier), _MOST_ANNEAL_RUNGS)


def anneal_rungs_wanted(barrier: float) -> int:
    """The same without an upper limit."""
    num_steps = math.ceil(_ANNEAL_STEPS_PER_SQUARED_BARRIER * min(_barrier(barrier), 1e3) ** 2)
    return max(num_steps + 1, _FEWEST_ANNEAL_RUNGS)


def anneal_variance(num_rungs: int, wanted: int) -> float:
    """Of the log weight of an anneal with fewer rungs than `anneal_rungs_wanted` says."""
    steps = (wanted - 1) / max(num_rungs - 1, 1)
    return math.pi / _ANNEAL_STEPS_PER_SQUARED_BARRIER * steps


def spt_cost(sizes: npt.ArrayLike, exponent: float = 1.0) -> float:
    """A sweep of subsampled parallel tempering, in moves at the target.

    `sizes` are the numbers of rows that the rungs see, or shares of them; they increase, and the
    last is the target's. A move on n rows costs n^`exponent`: 1 where rows are independent, 3 for
    a Gaussian process, 0 for a ladder of powers, whose rungs all cost the same.
    """
    return float(_costs(sizes, exponent).sum())


def stt_cost(
    sizes: npt.ArrayLike,
    exponent: float = 1.0,
    *,
    moves_at_hottest: int = 1,
    moves_at_target: int = 1,
) -> float:
    """An iteration of subsampled tempered transitions, in moves at the target.

    As `spt_cost`, with two moves at each rung between the ends. A transition makes one or two at
    the hottest rung, and none at the target, where an ordinary move comes before it.
    """
    costs = _costs(sizes, exponent)
    between = 2.0 * costs[1:-1].sum()
    return float(moves_at_hottest * costs[0] + between + moves_at_target * costs[-1])


def _costs(sizes: npt.ArrayLike, exponent: float) -> FloatArray:
    rows = _increasing(sizes, "sizes")
    if rows[0] == 0.0:
        raise ArgumentError(f"sizes must be positive, got {rows}")
    if not 0.0 <= exponent < math.inf:
        raise ArgumentError(f"exponent must be zero or more, got {exponent}")
    return (rows / rows[-1]) ** exponent


def _coordinate(betas: FloatArray) -> FloatArray:
    return np.log(betas) if betas[0] > 0.0 else betas**_POWER


def _beta_at(coordinate: FloatArray, geometric: bool) -> FloatArray:
    return np.exp(coordinate) if geometric else coordinate ** (1.0 / _POWER)


def _increasing(numbers: npt.ArrayLike, name: str = "betas") -> FloatArray:
    values = np.asarray(numbers, dtype=np.float64)
    if values.ndim != 1 or values.size < 2 or not np.all(np.diff(values) > 0.0):
        raise ArgumentError(f"{name} must be two or more and strictly increase, got {values}")
    if values[0] < 0.0:
        raise ArgumentError(f"{name} must not be negative, got {values}")
    return values


def _at_least_two(num_rungs: int) -> int:
    if num_rungs < 2:
        raise ArgumentError(f"num_rungs must be 2 or more, got {num_rungs}")
    return num_rungs


def _barrier(barrier: float) -> float:
    if not barrier >= 0.0:
        raise ArgumentError(f"barrier must be zero or more, got {barrier}")
    return float(barrier)
