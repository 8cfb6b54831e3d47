"""The two-urn model of paper 3: a mixture so small that its posterior is known.

Each of N balls comes from the left urn with probability p and from the right one otherwise. An
urn's share of red balls has the prior Beta(alpha, alpha). R red and B blue balls are seen; unknown
is which urn each came from. Balls of one colour are alike, so the state is (i, j), the numbers of
red and of blue balls on the left:

    p(i, j, colours) = C(R, i) C(B, j) p^(i+j) (1-p)^(N-i-j)
                       B(alpha + i, alpha + j) B(alpha + R - i, alpha + B - j) / B(alpha, alpha)^2.

Its log is red[i] + blue[j] + both[i + j]: three short tables hold all of it. So sums over the
(R + 1)(B + 1) states, 96 million for the paper's N = 20,000, go row by row, and what is kept is
one number, or one number for each bin, of a row.

**Distances.** x = i / R and y = j / B are cut into bins, and the total variation distance is
taken between the shares of runs in bins and the posterior's own. Of n exact draws it is not
zero: `floor` has its mean and spread. The error of a distance is that of the sum of signs,
0.5 sqrt((1 - (sum_b s_b h_b)^2) / n) with h the shares and s the signs of the differences.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, no_type_check

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.special import betaln, gammaln

from temperance.errors import ArgumentError, unknown_name
from temperance.testing.urns import strategies
from temperance.testing.urns.strategies import Runs, check_budget, check_churn

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

STRATEGIES: dict[str, Callable[..., IntArray]] = {
    "prior": strategies.prior,
    "prior+gibbs": strategies.prior_gibbs,
    "sequential": strategies.sequential,
    "sequential+gibbs": strategies.sequential_gibbs,
    "anneal-energy": strategies.anneal_energy,
    "anneal-stepsize": strategies.anneal_stepsize,
    "anneal-both": strategies.anneal_both,
    "anneal-subsample": strategies.anneal_subsample,
}


class Distance(NamedTuple):
    """A total variation distance of binned shares, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class TwoUrns:
    """Red and blue balls from two urns, and the law of (red on the left, blue on the left).

    >>> import numpy as np
    >>> from temperance.testing.urns.model import TwoUrns
    >>> urns = TwoUrns(4, 6, p=0.45, alpha=0.5)
    >>> round(urns.log_evidence, 6)
    -7.515848
    >>> urns.run("anneal-subsample", np.random.default_rng(0), num_runs=1000).shape
    (1000, 2)
    """

    num_red: int
    num_blue: int
    p: float = 0.45
    alpha: float = 0.5

    def __post_init__(self) -> None:
        if self.num_red < 1 or self.num_blue < 1:
            got = f"{self.num_red} red and {self.num_blue} blue"
            raise ArgumentError(f"num_red, num_blue: got {got} balls, wanted at least one of each")
        if not 0.0 < self.p < 1.0:
            raise ArgumentError(
                f"p: got {self.p}, wanted a probability between 0 and 1, both left out"
            )
        if not 0.0 < self.alpha < math.inf:
            raise ArgumentError(f"alpha: got {self.alpha}, wanted a positive number")

    @property
    def num_balls(self) -> int:
        return self.num_red + self.num_blue

    @cached_property
    def log_tables(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`red`, `blue` and `both`, which add up to log p(i, j, colours)."""
        total = np.arange(self.num_balls + 1)
        both = -gammaln(2 * self.alpha + total)
        both = both + both[::-1] - 2 * betaln(self.alpha, self.alpha)
        return self._of_colour(self.num_red), self._of_colour(self.num_blue), both

    def _of_colour(self, num: int) -> FloatArray:
        left = np.arange(num + 1)
        ways = gammaln(num + 1) - gammaln(left + 1) - gammaln(num - left + 1)
        prior = left * math.log(self.p) + (num - left) * math.log1p(-self.p)
        return ways + prior + gammaln(self.alpha + left) + gammaln(self.alpha + num - left)

    @cached_property
    def log_evidence(self) -> float:
        """The log probability of the balls' colours, one after the other."""
        log_most, sums = _row_sums(*self.log_tables, 1)
        return float(np.logaddexp.reduce(log_most + np.log(sums[:, 0])))

    def log_joint(self, i: npt.ArrayLike, j: npt.ArrayLike) -> FloatArray:
        """Log p(i, j, colours); arrays are broadcast."""
        red, blue, both = self.log_tables
        i, j = np.asarray(i), np.asarray(j)
        return red[i] + blue[j] + both[i + j]

    def log_posterior(self, i: npt.ArrayLike, j: npt.ArrayLike) -> FloatArray:
        """Log p(i, j | colours); arrays are broadcast."""
        return self.log_joint(i, j) - self.log_evidence

    def binned_posterior(self, num_bins: int) -> FloatArray:
        """The posterior's shares of the bins of x (first axis) and of y."""
        self._check_bins(num_bins)
        log_most, sums = _row_sums(*self.log_tables, num_bins)
        rows = np.exp(log_most - self.log_evidence)[:, None] * sums
        shares = np.zeros((num_bins, num_bins))
        np.add.at(shares, _bins(np.arange(self.num_red + 1), self.num_red, num_bins), rows)
        return shares

    def binned(self, counts: IntArray, num_bins: int) -> FloatArray:
        """Shares of the rows of `counts`, each an (i, j), in the same bins."""
        self._check_bins(num_bins)
        x = _bins(counts[:, 0], self.num_red, num_bins)
        y = _bins(counts[:, 1], self.num_blue, num_bins)
        found = np.bincount(x * num_bins + y, minlength=num_bins**2)
        return found.reshape(num_bins, num_bins) / len(counts)

    def draw(self, rng: np.random.Generator, num_draws: int) -> IntArray:
        """Independent exact draws of (i, j), one in each row."""
        red, blue, both = self.log_tables
        log_most, sums = _row_sums(red, blue, both, 1)
        shares = np.exp(log_most - log_most.max()) * sums[:, 0]
        found = np.empty((num_draws, 2), np.int64)
        found[:, 0] = rng.choice(self.num_red + 1, num_draws, p=shares / shares.sum())
        for i in np.unique(found[:, 0]):
            mine = np.flatnonzero(found[:, 0] == i)
            logs = blue + both[i : i + self.num_blue + 1]
            weights = np.exp(logs - logs.max())
            found[mine, 1] = rng.choice(weights.size, mine.size, p=weights / weights.sum())
        return found

    def run(
        self,
        strategy: str,
        rng: np.random.Generator,
        passes: int = 10,
        num_runs: int = 1,
    ) -> IntArray:
        """The final (i, j) of independent runs of a strategy.

        The budget is `passes` N assignments. `prior` and `sequential` take less: none, and N.
        """
        check_budget(passes, num_runs)
        if strategy not in STRATEGIES:
            raise unknown_name("strategy", strategy, STRATEGIES)
        return STRATEGIES[strategy](self, rng, passes, num_runs)

    def anneal(
        self,
        rng: np.random.Generator,
        passes: int = 10,
        num_runs: int = 1,
        churn: str = "uniform",
    ) -> Runs:
        """Weighted subsample annealing, by one of the CHURNS.

        The mean of the weights estimates p(colours) without bias for any `passes`, and draws with
        their weights are draws of the posterior.
        """
        check_budget(passes, num_runs)
        return strategies.anneal(self, rng, passes, num_runs, check_churn(churn))

    def _check_bins(self, num_bins: int) -> None:
        most = min(self.num_red, self.num_blue) + 1
        if not 1 <= num_bins <= most:
            raise ArgumentError(f"num_bins: got {num_bins}, wanted 1 to {most}, one for each count")


def distance(shares: FloatArray, truth: FloatArray, num_runs: int) -> Distance:
    """The total variation distance of the shares of `num_runs` runs from the truth."""
    signs = np.sign(shares - truth)
    spread = max(0.0, float((signs**2 * shares).sum() - (signs * shares).sum() ** 2))
    return Distance(float(0.5 * np.abs(shares - truth).sum()), 0.5 * math.sqrt(spread / num_runs))


def floor(
    truth: FloatArray, num_runs: int, rng: np.random.Generator, num_times: int = 200
) -> Distance:
    """The distance that exact draws have: its mean, and its spread from one set to another."""
    flat = truth.ravel() / truth.sum()
    shares = rng.multinomial(num_runs, flat, size=num_times) / num_runs
    found = 0.5 * np.abs(shares - flat).sum(axis=1)
    return Distance(float(found.mean()), float(found.std(ddof=1)))


def _bins(counts: IntArray, most: int, num_bins: int) -> IntArray:
    """Counts 0 ... most in bins of as equal a number of counts as can be."""
    return counts * num_bins // (most + 1)


@njit(cache=True, nogil=True)
@no_type_check
def _row_sums(red, blue, both, num_bins):
    """Of each i the largest log term, and the terms over it summed in bins of j."""
    log_most = np.empty(red.size)
    sums = np.zeros((red.size, num_bins))
    for i in range(red.size):
        most = -np.inf
        for j in range(blue.size):
            most = max(most, blue[j] + both[i + j])
        for j in range(blue.size):
            sums[i, j * num_bins // blue.size] += math.exp(blue[j] + both[i + j] - most)
        log_most[i] = red[i] + most
    return log_most, sums
