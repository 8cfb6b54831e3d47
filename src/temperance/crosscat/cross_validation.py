"""How well a model foretells rows that it has not seen.

The rows are dealt at random into folds. Each fold is scored by a model that was fitted to all the
others: the mean over its rows of log p(row), states averaged in probability space. The columns'
kinds, known values and units are those of the whole table, so that scores are in the same units for
every fold.
"""

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.schema_inference import guess_schema
from temperance.crosscat.frames.frame import OpenFrame, open_frame
from temperance.crosscat.frames.schema import Schema
from temperance.crosscat.frames.typed_column import TypedColumn
from temperance.crosscat.random_state import seed_sequence
from temperance.errors import ArgumentError


class CrossValidation(NamedTuple):
    """Held-out scores.

    Attributes:
        scores: [folds] mean log score of each fold's rows.
        row_scores: [n] log score of each row, in the frame's order.
        fold: [n] the fold of each row.
        fit_seconds, score_seconds: [folds].
    """

    scores: NDArray[np.float64]
    row_scores: NDArray[np.float64]
    fold: NDArray[np.int64]
    fit_seconds: NDArray[np.float64]
    score_seconds: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """The mean log score of a row."""
        return float(self.row_scores.mean())

    @property
    def standard_error(self) -> float:
        """Of `mean`, over rows."""
        return float(self.row_scores.std(ddof=1) / np.sqrt(len(self.row_scores)))


def cross_validate(
    model: Any,
    frame: Any,
    folds: int = 8,
    *,
    schema: Any = None,
    random_state: Any = None,
    max_seconds: float | int | None = None,
    callback: Callable[..., Any] | None = None,
) -> CrossValidation:
    """Fit a copy of `model` to all folds but one, and score that one, for each of `folds`.

    `random_state` deals the rows; the model has its own. `max_seconds` and `callback` are those of
    each fit.
    """
    from sklearn.base import clone

    opened = open_frame(frame, schema if isinstance(schema, Schema) else None)
    if not 2 <= folds <= opened.num_rows:
        raise ArgumentError(
            f"folds: wanted 2 to {opened.num_rows}, the number of rows, got {folds}"
        )
    known = schema if isinstance(schema, Schema) else guess_schema(opened, schema)
    fold = deal(opened.num_rows, folds, random_state)
    row_scores = np.empty(opened.num_rows)
    seconds = np.empty((folds, 2))
    for number in range(folds):
        started = perf_counter()
        fresh: Any = clone(model)
        fitted = fresh.fit(
            take(opened, np.flatnonzero(fold != number)),
            schema=known,
            max_seconds=max_seconds,
            callback=callback,
        )
        between = perf_counter()
        here = np.flatnonzero(fold == number)
        row_scores[here] = fitted.score_samples(take(opened, here))
        seconds[number] = between - started, perf_counter() - between
    scores = np.array([row_scores[fold == number].mean() for number in range(folds)])
    return CrossValidation(scores, row_scores, fold, seconds[:, 0], seconds[:, 1])


def deal(num_rows: int, folds: int, random_state: Any) -> NDArray[np.int64]:
    """[num_rows] a fold for each row; sizes differ by one at most."""
    rng = np.random.default_rng(seed_sequence(random_state))
    return rng.permutation(np.arange(num_rows) % folds)


def take(opened: OpenFrame, rows: NDArray[np.int64]) -> OpenFrame:
    """Some rows of a table, still read column by column."""

    def read(name: str) -> TypedColumn:
        typed = opened.read(name)
        missing = None if typed.missing is None else typed.missing[rows]
        return replace(typed, values=typed.values[rows], missing=missing)

    return replace(opened, num_rows=len(rows), read=read)
