"""Four tests that decide about a proposal from some of the rows.

d_i = l_i(theta') - l_i(theta) are in random order, and Metropolis accepts if

    mean of all d_i > psi = (T log u - log ratio of priors and proposals) / n,       u uniform.

Every test returns its decision and how many rows it looked at.

**austere** (Korattikara, Chen and Welling 2014). After b rows, with mean d_b and standard deviation s_b,

    t = (d_b - psi) / (s_b / sqrt(b) sqrt(1 - (b - 1) / (n - 1)))

is compared with Student's law of b - 1 degrees of freedom; the test stops once the tail beyond |t| is less
than eps, and otherwise takes m rows more. Not conservative: eps is the error allowed. Conservative: eps is so
small that the whole sequence of looks errs with at most that probability where it is hardest, at
mean = psi. There t is a Brownian bridge over its standard deviation, B(p) / sqrt(p (1 - p)) at p = b / n,
and a test that stops early is wrong half of the time.

**confident** (Bardenet, Doucet and Holmes 2014). Stops once |d_b - psi| > c_b, with b doubled at each look and
c_b a bound that holds with probability 1 - delta for all looks together: the smaller of

    Hoeffding and Serfling    R sqrt((1 - (b - 1) / n) log(2 / delta_k) / (2 b))
    empirical Bernstein       s_b sqrt(2 log(3 / delta_k) / b) + 3 R log(3 / delta_k) / b

with R the range of the d_i and delta_k = delta / (2 k (k + 1)): over looks k = 1, 2, ... and the two bounds
these add up to delta.

**barker** (Seita, Pan, Chen and Canny 2017). Barker's rule accepts if Delta + X > 0 with X logistic and
Delta = n (mean - psi_0) / T the log ratio. An estimate of Delta from b rows has an error that is nearly
normal with variance v = (n / T)^2 s_b^2 / b. Rows are added, m at a time, until v < 1; then N(0, 1 - v) makes
the noise up to N(0, 1), and a correction C with N(0, 1) + C logistic does the rest. Such a C does not exist
exactly: the characteristic function of a logistic law, pi t / sinh(pi t), times exp(t^2 / 2) grows. Its
nearest non-negative weights on a grid leave an error of the distribution function that `correction` tells.
"""

import functools

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit
from scipy.stats import norm, t

Decision = tuple[bool, int]


def exact(differences: np.ndarray, psi: float) -> Decision:
    """Metropolis with all rows."""
    return bool(differences.mean() > psi), differences.size


def austere(differences: np.ndarray, psi: float, error: float, batch: int) -> Decision:
    """The sequential t-test; `error` is that of one look."""
    num_rows = differences.size
    for used in (*range(batch, num_rows, batch), num_rows):
        seen = differences[:used]
        mean = seen.mean()
        if used == num_rows:
            break
        left = 1 - (used - 1) / (num_rows - 1)
        scale = seen.std(ddof=1) * np.sqrt(left / used)
        if t.sf(abs(mean - psi) / max(scale, 1e-300), used - 1) < error:
            break
    return bool(mean > psi), used


@functools.cache
def conservative_error(num_rows: int, batch: int, error: float, num_paths: int = 20_000) -> float:
    """The error of one look with which all of them err with probability `error` at the hardest."""
    shares = np.arange(batch, num_rows, batch) / num_rows
    generator = np.random.default_rng(0)
    steps = np.diff(np.append(0.0, np.append(shares, 1.0)))
    path = np.cumsum(np.sqrt(steps) * generator.normal(size=(num_paths, steps.size)), axis=1)
    bridge = path[:, :-1] - shares * path[:, -1:]
    largest = np.max(np.abs(bridge) / np.sqrt(shares * (1 - shares)), axis=1)
    # A share 2 * error of all paths may stop early.
    return float(norm.sf(np.quantile(largest, 1 - 2 * error)))


def confident(
    differences: np.ndarray, psi: float, width: float, delta: float, batch: int
) -> Decision:
    """The test with concentration bounds; `width` is the range of the differences."""
    num_rows = differences.size
    used, look = min(batch, num_rows), 1
    while True:
        seen = differences[:used]
        mean = seen.mean()
        if used == num_rows:
            return bool(mean > psi), used
        share = delta / (2 * look * (look + 1))
        hoeffding = width * np.sqrt((1 - (used - 1) / num_rows) * np.log(2 / share) / (2 * used))
        log_3 = np.log(3 / share)
        bernstein = seen.std() * np.sqrt(2 * log_3 / used) + 3 * width * log_3 / used
        if abs(mean - psi) > min(hoeffding, bernstein):
            return bool(mean > psi), used
        used, look = min(2 * used, num_rows), look + 1


@functools.cache
def correction(reach: float = 12.0, num_points: int = 481) -> tuple[np.ndarray, np.ndarray, float]:
    """Points and weights of C, and the largest error of the distribution function."""
    points = np.linspace(-reach, reach, num_points)
    weights, _ = nnls(norm.cdf(points[:, None] - points), expit(points))
    weights /= weights.sum()
    between = np.linspace(-reach, reach, 4 * num_points)
    made = norm.cdf(between[:, None] - points) @ weights
    return points, weights, float(np.max(np.abs(made - expit(between))))


def barker(
    differences: np.ndarray,
    log_prior_ratio: float,
    temperature: float,
    batch: int,
    generator: np.random.Generator,
) -> Decision:
    """Barker's rule from as many rows as bring the variance of the log ratio below one."""
    num_rows = differences.size
    factor = num_rows / temperature
    for used in (*range(batch, num_rows, batch), num_rows):
        seen = differences[:used]
        left = 1 - (used - 1) / (num_rows - 1)
        variance = factor**2 * seen.var(ddof=1) / used * left
        if variance < 1:
            break
    points, weights, _ = correction()
    noise = generator.choice(points, p=weights)
    noise += np.sqrt(max(0.0, 1 - variance)) * generator.normal()
    return bool(factor * seen.mean() + log_prior_ratio / temperature + noise > 0), used
