"""One column from all the others, row by row."""

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells, take_rows
from temperance.crosscat.questions.conditioning import components, mixture_weights, weigh
from temperance.crosscat.questions.imputation import Guess, guess, known_probabilities
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.views.predictive import CategoricalPredictive
from temperance.errors import ArgumentError


def predict(posterior: Posterior, cells: Cells, target: int, statistic: str) -> list[Guess]:
    """Guesses of the target given each row's other cells, block by block."""
    return [
        guess(posterior, target, weights, statistic)
        for weights in _weights(posterior, cells, target)
    ]


def predict_proba(posterior: Posterior, cells: Cells, target: int) -> NDArray[np.float64]:
    """[n, V] probabilities of the target's known values given each row's other cells."""
    law = components(posterior, target)
    if not isinstance(law, CategoricalPredictive):
        column = posterior.schema.columns[target]
        raise ArgumentError(
            f"predict_proba: column {column.name!r} is {column.kind}, and only categorical and "
            "boolean columns have a table of probabilities: use predict, or logp for a density"
        )
    parts = [known_probabilities(law, weights) for weights in _weights(posterior, cells, target)]
    return np.concatenate(parts) if parts else np.empty((0, law.log_probs.shape[1] - 1))


def _weights(posterior: Posterior, cells: Cells, target: int) -> list[NDArray[np.float64]]:
    known = np.ones(posterior.num_columns, bool)
    known[target] = False
    return [
        mixture_weights(posterior, weigh(posterior, take_rows(cells, block), known), target)
        for block in posterior.blocks(cells)
    ]
