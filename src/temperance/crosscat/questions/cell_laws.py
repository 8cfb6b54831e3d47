"""The law of one cell in each cluster: its log probability or density, and draws from it.

    categorical   log p_k(v) = log_probs[k, v]
    real          Student's t:   c_k - (nu_k + 1)/2 log(1 + z^2 / nu_k),   z = (x - loc_k) / scale_k
    count         negative binomial:
                  log C(x + a_k - 1, x) + a_k log(b_k / (b_k + 1)) - x log(b_k + 1)
    spike         log p_k(spike), or log p_k(not the spike) + Student's t

Arrays are [K + 1, n], clusters first: sums over clusters then run along contiguous rows.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from temperance.crosscat.encoding.cells import ColumnCells
from temperance.crosscat.views.predictive import (
    CategoricalPredictive,
    CountPredictive,
    Predictive,
    RealPredictive,
    SpikePredictive,
)


def log_laws(law: Predictive, cells: ColumnCells, log_unit: float = 0.0) -> NDArray[np.float64]:
    """[K + 1, n] log probabilities or densities of the cells; 0 where a cell is missing.

    `log_unit` is the log of the length that one standardised unit has in the user's units.
    """
    match law:
        case CategoricalPredictive():
            found = _log_codes(law.log_probs, cells.codes)
        case RealPredictive():
            found = _log_t(law, np.where(cells.missing, 0.0, np.asarray(cells.numbers)), log_unit)
        case CountPredictive():
            found = _log_counts(law, np.where(cells.missing, 0, np.asarray(cells.numbers)))
        case SpikePredictive():
            found = _log_codes(law.log_probs, cells.codes)
            away = np.flatnonzero(~cells.missing & (cells.codes == 0))
            found[:, away] += _log_t(law.real, np.asarray(cells.numbers)[away], log_unit)
        case _:
            assert_never(law)
    if cells.missing.any():
        found[:, cells.missing] = 0.0
    return found


def _log_codes(
    log_probs: NDArray[np.float64], codes: NDArray[np.integer] | None
) -> NDArray[np.float64]:
    return log_probs.take(np.asarray(codes, np.int64), axis=1, mode="clip")


def _log_t(law: RealPredictive, x: NDArray[np.float64], log_unit: float) -> NDArray[np.float64]:
    half = 0.5 * (law.df + 1.0)
    constant = gammaln(half) - gammaln(0.5 * law.df) - 0.5 * np.log(np.pi * law.df)
    constant = constant - np.log(law.scale) - log_unit
    z = (x[None, :] - law.loc[:, None]) / law.scale[:, None]
    np.square(z, out=z)
    z /= law.df[:, None]
    np.log1p(z, out=z)
    z *= -half[:, None]
    z += constant[:, None]
    return z


def _log_counts(law: CountPredictive, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    x = counts.astype(np.float64)
    constant = law.shape * (np.log(law.rate) - np.log1p(law.rate)) - gammaln(law.shape)
    found = gammaln(x[None, :] + law.shape[:, None])
    found -= gammaln(x + 1.0)[None, :]
    found -= x[None, :] * np.log1p(law.rate)[:, None]
    found += constant[:, None]
    return found


class Drawn(NamedTuple):
    """Drawn cells: codes, numbers or both, as `ColumnCells` has them."""

    codes: NDArray[np.int64] | None
    numbers: NDArray[Any] | None


def draw(
    law: Predictive,
    clusters: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    unseen: bool = False,
) -> Drawn:
    """One cell for each of `clusters`.

    A categorical cell is drawn from its law given that its value is one of the known ones, or with
    `unseen` from the whole law, in which "a value never seen" is the last code. A column without
    known values has nothing else to give.
    """
    match law:
        case CategoricalPredictive():
            whole = unseen or not has_values(law)
            log_probs = law.log_probs if whole else law.log_probs[:, :-1]
            return Drawn(_draw_codes(log_probs, clusters, rng), None)
        case RealPredictive():
            return Drawn(None, _draw_t(law, clusters, rng))
        case CountPredictive():
            rate = rng.standard_gamma(law.shape[clusters]) / law.rate[clusters]
            return Drawn(None, rng.poisson(rate))
        case SpikePredictive():
            codes = _draw_codes(law.log_probs, clusters, rng)
            numbers = np.where(codes == 0, _draw_t(law.real, clusters, rng), np.nan)
            return Drawn(codes, numbers)
        case _:
            assert_never(law)


def log_known(law: Predictive) -> NDArray[np.float64]:
    """[K + 1] log probability that a cell's value is one of the known ones."""
    if isinstance(law, CategoricalPredictive) and has_values(law):
        with np.errstate(divide="ignore"):
            return np.log1p(-np.minimum(np.exp(law.log_probs[:, -1]), 1.0))
    return np.zeros(len(law[0]))


def has_values(law: CategoricalPredictive) -> bool:
    """Whether the column has a known value: one whose cells are all missing has none."""
    return law.log_probs.shape[1] > 1


def _draw_codes(
    log_probs: NDArray[np.float64], clusters: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    codes = np.empty(len(clusters), np.int64)
    uniform = rng.random(len(clusters))
    order = np.argsort(clusters, kind="stable")
    found, starts = np.unique(clusters[order], return_index=True)
    stops = np.append(starts, len(order))[1:]
    for cluster, start, stop in zip(found, starts, stops, strict=True):
        rows = order[start:stop]
        codes[rows] = draw_index(log_probs[cluster], uniform[rows])
    return codes


def draw_index(log_weights: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each uniform number an index, with probability proportional to its weight."""
    total = np.cumsum(np.exp(log_weights - log_weights.max()))
    last = np.searchsorted(total, total[-1])  # a product may round up to the total
    drawn = np.searchsorted(total, uniform * total[-1], side="right")
    return np.minimum(drawn, last)


def _draw_t(
    law: RealPredictive, clusters: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    return law.loc[clusters] + law.scale[clusters] * rng.standard_t(law.df[clusters])


def concatenate(parts: Sequence[Any]) -> Any:
    """Named tuples of arrays, of None and of named tuples: one whose arrays are end to end."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    return type(first)(*(concatenate(members) for members in zip(*parts, strict=True)))
