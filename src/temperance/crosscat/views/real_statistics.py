"""What a view keeps of its real features: sums and squares by cluster, and the next cell's law.

With mean | var ~ N(mu, var / kappa) and var ~ scaled inverse chi-squared(nu, sigma2), a cluster of
n cells with sum s and sum of squares q has

    kappa_n = kappa + n,   nu_n = nu + n,   mu_n = (kappa mu + s) / kappa_n,
    nu_n sigma2_n = nu sigma2 + (q - s^2 / n) + n kappa / kappa_n (s / n - mu)^2,

and the predictive is Student's t with nu_n degrees of freedom at mu_n with squared scale sigma2_n
(1 + 1 / kappa_n).

Sums and squares are kept to twice double precision (a high and a low part), so that after any
number of adds and removes they are those of the rows that are in, and a variance is not a
difference of large numbers.
"""

import math
from typing import Any

import numpy as np

from temperance.crosscat.compilation import compiled, inner
from temperance.crosscat.views.number_statistics import NumberStatistics, no_numbers

SUM, SUM_LOW, SQUARES, SQUARES_LOW = 0, 1, 2, 3
CENTRE, INVERSE, POWER, CONSTANT = 0, 1, 2, 3


def real_statistics(values: Any, place: Any, stride: int) -> NumberStatistics:
    """No row is in. Values are float64 with NaN for missing, `hyper` mu, kappa, nu, sigma2."""
    return no_numbers(values, place, 4, np.zeros((len(place), 4, stride)), 4)


@inner
def is_known(x: float) -> bool:
    """Whether a cell is not missing."""
    return not math.isnan(x)


@inner
def add_logs(group: Any, row: int, used: int, logs: Any) -> None:
    """Adds the log predictives of the row's cells to `logs` of every place."""
    values, place, student = group.values, group.place, group.law
    for f in range(place.shape[0]):
        x = values[row, place[f]]
        if is_known(x):
            for k in range(used):
                away = x - student[f, CENTRE, k]
                logs[k] += student[f, CONSTANT, k] - student[f, POWER, k] * math.log(
                    1.0 + away * away * student[f, INVERSE, k]
                )


@inner
def change_sums(group: Any, row: int, k: int, sign: int) -> None:
    """A row enters place k (sign 1) or leaves it (-1)."""
    for f in range(group.place.shape[0]):
        x = group.values[row, group.place[f]]
        if is_known(x):
            count_cell(group, f, k, x, sign)
            predict_place(group, f, k)


@inner
def count_cell(group: Any, f: int, k: int, x: float, sign: int) -> None:
    """A cell enters the sums of place k (sign 1) or leaves them (-1)."""
    seen = group.seen[f, k] + sign
    group.seen[f, k] = seen
    sums = group.sums[f]
    if seen == 0:
        sums[:, k] = 0.0
        return
    sums[SUM, k], sums[SUM_LOW, k] = _two_sum(sums[SUM, k], sums[SUM_LOW, k], sign * x, 0.0)
    square, rest = _two_square(x)
    sums[SQUARES, k], sums[SQUARES_LOW, k] = _two_sum(
        sums[SQUARES, k], sums[SQUARES_LOW, k], sign * square, sign * rest
    )


@inner
def _two_sum(high: float, low: float, x: float, y: float) -> tuple[float, float]:
    """(high + low) + (x + y), with what rounding loses."""
    total = high + x
    part = total - high
    lost = (high - (total - part)) + (x - part)
    lost += low + y
    result = total + lost
    return result, lost - (result - total)


@inner
def _two_square(x: float) -> tuple[float, float]:
    """x^2, and what rounding loses of it (Dekker)."""
    square = x * x
    upper = 134217729.0 * x
    upper -= upper - x
    lower = x - upper
    return square, ((upper * upper - square) + 2.0 * upper * lower) + lower * lower


@inner
def mean_and_squares(group: Any, f: int, k: int) -> tuple[float, float]:
    """The mean of the cells of place k, and the sum of squares about it."""
    n = group.seen[f, k]
    if n == 0:
        return 0.0, 0.0
    sums = group.sums[f]
    mean = (sums[SUM, k] + sums[SUM_LOW, k]) / n
    # q - 2 mean s + n mean^2, each to twice double precision.
    square, rest = _two_square(mean)
    high, low = sums[SQUARES, k], sums[SQUARES_LOW, k]
    for part, lost in _products(mean, sums[SUM, k], sums[SUM_LOW, k]):
        high, low = _two_sum(high, low, -2.0 * part, -2.0 * lost)
    high, low = _two_sum(high, low, n * square, n * rest + _lost_product(n, square))
    return mean, max(high + low, 0.0)


@compiled
def moments(group: Any, f: int) -> tuple[Any, Any]:
    """The means of all places, and the sums of squares about them."""
    num = group.seen.shape[1]
    mean, squares = np.zeros(num), np.zeros(num)
    for k in range(num):
        mean[k], squares[k] = mean_and_squares(group, f, k)
    return mean, squares


@inner
def _lost_product(x: float, y: float) -> float:
    """What rounding loses of x y (Dekker)."""
    product = x * y
    upper_x = 134217729.0 * x
    upper_x -= upper_x - x
    upper_y = 134217729.0 * y
    upper_y -= upper_y - y
    lower_x, lower_y = x - upper_x, y - upper_y
    return ((upper_x * upper_y - product) + upper_x * lower_y + lower_x * upper_y) + (
        lower_x * lower_y
    )


@inner
def _products(x: float, high: float, low: float) -> Any:
    return ((x * high, _lost_product(x, high)), (x * low, 0.0))


@inner
def predict_place(group: Any, f: int, k: int) -> None:
    """What scores the next cell of feature f at place k."""
    mu, kappa, nu, sigma2 = group.hyper[f]
    n = group.seen[f, k]
    mean, squares = mean_and_squares(group, f, k)
    kappa_n, nu_n = kappa + n, nu + n
    away = mean - mu
    spread = nu * sigma2 + squares + n * kappa / kappa_n * away * away
    # nu_n times the squared scale of Student's t.
    spread *= 1.0 + 1.0 / kappa_n
    student = group.law[f]
    student[CENTRE, k] = (kappa * mu + n * mean) / kappa_n
    student[INVERSE, k] = 1.0 / spread
    student[POWER, k] = 0.5 * (nu_n + 1.0)
    student[CONSTANT, k] = (
        math.lgamma(0.5 * (nu_n + 1.0)) - math.lgamma(0.5 * nu_n) - 0.5 * math.log(math.pi * spread)
    )


@compiled
def recount(group: Any, labels: Any, rows: Any) -> None:
    """All sums again, of the rows that are in."""
    group.seen[:] = 0
    group.sums[:] = 0.0
    for row in rows:
        for f in range(group.place.shape[0]):
            x = group.values[row, group.place[f]]
            if is_known(x):
                count_cell(group, f, int(labels[row]), x, 1)


@compiled
def refresh(group: Any) -> None:
    """What scores cells, of all places, from sums and hyperparameters."""
    for f in range(group.place.shape[0]):
        for k in range(group.seen.shape[1]):
            predict_place(group, f, k)
