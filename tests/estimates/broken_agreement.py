"""Broken twins of the test of agreement, each named after its slip; the tests must reject them."""

from scipy.special import fdtrc

from temperance.estimates.agreement import normal_scores
from temperance.estimates.diagnostics import FloatArray, effective_size, halves, spread_of


def chance_for_independent_draws(series: FloatArray) -> FloatArray:
    """The plain F test, which knows nothing of autocorrelation."""
    parts = halves(normal_scores(series))
    spread, (num, length) = spread_of(parts), parts.shape[:2]
    return fdtrc(num - 1, num * (length - 1), spread.between / spread.within)


def chance_by_the_effective_size(series: FloatArray) -> FloatArray:
    """Held against an effective size that counts the disagreement as autocorrelation."""
    scores = normal_scores(series)
    parts = halves(scores)
    spread, (num, length) = spread_of(parts), parts.shape[:2]
    expected = num * length * spread.pooled / effective_size(scores)
    return fdtrc(num - 1, 1e6, spread.between / expected)
