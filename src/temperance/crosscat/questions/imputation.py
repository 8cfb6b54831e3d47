"""One value for a cell that is not known, and how sure it is.

    categorical, boolean   the most probable known value, its probability, and the entropy of the
                           known values in nats
    real, count, spike     the median and a central interval; the mean on request

The law of the cell is the mixture of `conditioning`, given the row's known cells. Medians and
intervals always exist. The mean does not where Student's t has at most one degree of freedom; its
location, about which it is symmetric, then stands in for it.
"""

from typing import Any, NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells, column_cells, take_rows
from temperance.crosscat.questions.cell_laws import Drawn, concatenate, has_values
from temperance.crosscat.questions.conditioning import components, mixture_weights, weigh
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.questions.quantiles import count_quantiles, real_quantiles, spike_quantiles
from temperance.crosscat.views.predictive import (
    CategoricalPredictive,
    CountPredictive,
    RealPredictive,
    SpikePredictive,
)

STATISTICS = ("median", "mean")


class Guess(NamedTuple):
    """Guessed cells of one column, n of them.

    Attributes:
        cells: The values.
        probability: Of the value, for categorical and boolean columns, and of the spike; else NaN.
        entropy: In nats, for categorical and boolean columns; else NaN.
        low, high: Ends of the central interval, for the other kinds, where one was asked for.
    """

    cells: Drawn
    probability: NDArray[np.float64]
    entropy: NDArray[np.float64]
    low: Drawn | None
    high: Drawn | None


def known_probabilities(law: CategoricalPredictive, weights: NDArray[np.float64]) -> Any:
    """[n, V] probabilities of the known values, given that the value is one of them."""
    probabilities = weights.T @ np.exp(law.log_probs[:, :-1])
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def guess(
    posterior: Posterior,
    column: int,
    weights: NDArray[np.float64],
    statistic: str = "median",
    level: float | None = None,
) -> Guess:
    """Values for cells of one column from the weights of its mixture, [J, n].

    With a `level`, numbers have the central interval of that probability.
    """
    law = components(posterior, column)
    nothing = np.full(weights.shape[1], np.nan)
    if isinstance(law, CategoricalPredictive):
        if not has_values(law):
            return Guess(
                Drawn(np.zeros(len(nothing), np.int64), None), nothing, nothing, None, None
            )
        probabilities = known_probabilities(law, weights)
        codes = probabilities.argmax(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(probabilities > 0, probabilities * np.log(probabilities), 0.0)
        top = probabilities[np.arange(len(codes)), codes]
        return Guess(Drawn(codes, None), top, -terms.sum(axis=1), None, None)
    spike = _standard_spike(posterior, column)
    if statistic == "mean":
        middle = _means(law, weights, spike)
    else:
        middle = _quantiles(law, weights, 0.5, spike)
    low = high = None
    if level is not None:
        low = _quantiles(law, weights, 0.5 * (1.0 - level), spike)
        high = _quantiles(law, weights, 0.5 * (1.0 + level), spike)
    probability = nothing
    if isinstance(law, SpikePredictive):
        probability = weights.T @ np.exp(law.log_probs[:, 1])
    return Guess(middle, probability, nothing, low, high)


def _standard_spike(posterior: Posterior, column: int) -> float:
    found = posterior.schema.columns[column]
    return (found.spike - found.centre) / found.scale


def _quantiles(
    law: RealPredictive | CountPredictive | SpikePredictive,
    weights: NDArray[np.float64],
    level: float,
    spike: float,
) -> Drawn:
    match law:
        case RealPredictive():
            return Drawn(None, real_quantiles(law, weights, level))
        case CountPredictive():
            return Drawn(None, count_quantiles(law, weights, level))
        case SpikePredictive():
            found, on_spike = spike_quantiles(law, weights, level, spike)
            return Drawn(on_spike.astype(np.int64), np.where(on_spike, np.nan, found))
        case _:
            assert_never(law)


def _means(
    law: RealPredictive | CountPredictive | SpikePredictive,
    weights: NDArray[np.float64],
    spike: float,
) -> Drawn:
    if isinstance(law, CountPredictive):
        return Drawn(None, weights.T @ (law.shape / law.rate))
    real = law.real if isinstance(law, SpikePredictive) else law
    if isinstance(law, RealPredictive):
        return Drawn(None, weights.T @ real.loc)
    on, off = np.exp(law.log_probs[:, 1]), np.exp(law.log_probs[:, 0])
    means = weights.T @ (on * spike + off * real.loc)
    return Drawn(np.zeros(len(means), np.int64), means)


class Guesses(NamedTuple):
    """Guesses for the missing cells of one column: `rows`, [m], and what is guessed there."""

    rows: NDArray[np.int64]
    guess: Guess


def impute(
    posterior: Posterior, cells: Cells, columns: list[int], level: float | None = None
) -> dict[int, Guesses]:
    """A guess for each missing cell of `columns`, given the other cells of its row."""
    known = np.ones(posterior.num_columns, bool)
    missing = {c: column_cells(cells, posterior.features, c).missing for c in columns}
    found: dict[int, list[Guesses]] = {column: [] for column in columns}
    for block in posterior.blocks(cells):
        rows = np.arange(block.start, block.stop)
        if not any(missing[column][block].any() for column in columns):
            continue
        evidence = weigh(posterior, take_rows(cells, block), known)
        for column in columns:
            here = np.flatnonzero(missing[column][block])
            if len(here):
                weights = mixture_weights(posterior, evidence, column)[:, here]
                guessed = guess(posterior, column, weights, level=level)
                found[column].append(Guesses(rows[here], guessed))
    return {column: concatenate(parts) for column, parts in found.items() if parts}
