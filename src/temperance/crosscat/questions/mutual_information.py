"""How much one column says about another, in nats.

The mutual information of columns a and b under one state is 0 where they are in different views,
and else, with w_k the probabilities of the view's clusters given what is known,

    I_s = E log p_s(a, b) - log p_s(a) - log p_s(b),   p_s(a, b) = sum over k of w_k p_k(a) p_k(b).

The answer is the posterior mean of I_s, with states weighed by what they gave the known cells. It
is not the mutual information of the averaged law: states that disagree about two marginals would
give even independent columns some of that. Columns that share no view in any state have exactly 0.

Two columns of codes are summed over. Other pairs are averaged over `num_samples` draws a state from
p_s(a, b), and the standard error of that average is stated; it is 0 for a sum.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells, ColumnCells
from temperance.crosscat.questions.cell_laws import Drawn, draw, draw_index, log_laws
from temperance.crosscat.questions.conditioning import state_weights, weigh
from temperance.crosscat.questions.log_probability import log_sum_exp
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.views.predictive import CategoricalPredictive, Predictive

# Pairs of values that are summed over rather than drawn.
MOST_PAIRS = 1 << 22


class MutualInformation(NamedTuple):
    """In nats; `standard_error` is that of the Monte Carlo average, 0 where the sum is exact."""

    value: float
    standard_error: float


def mutual_information(
    posterior: Posterior,
    a: int,
    b: int,
    given: Cells,
    known: NDArray[np.bool_],
    num_samples: int,
    rng: np.random.Generator,
) -> MutualInformation:
    """The posterior mean of the states' mutual information of two columns."""
    evidence = weigh(posterior, given, known)
    shares = state_weights(evidence.states)[:, 0]
    value = variance = 0.0
    for state, share in enumerate(shares):
        view = int(posterior.views[state, a])
        if view != posterior.views[state, b]:
            continue
        log_weights = evidence.clusters[state][view][:, 0]
        laws = posterior.law(state, a), posterior.law(state, b)
        found, error = _of_state(*laws, log_weights, num_samples, rng)
        value += share * found
        variance += (share * error) ** 2
    return MutualInformation(float(value), float(np.sqrt(variance)))


def _of_state(
    a: Predictive,
    b: Predictive,
    log_weights: NDArray[np.float64],
    num_samples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    if (
        isinstance(a, CategoricalPredictive)
        and isinstance(b, CategoricalPredictive)
        and a.log_probs.shape[1] * b.log_probs.shape[1] <= MOST_PAIRS
    ):
        return _summed(np.exp(a.log_probs), np.exp(b.log_probs), np.exp(log_weights)), 0.0
    clusters = draw_index(log_weights, rng.random(num_samples))
    log_a = log_laws(a, _as_cells(draw(a, clusters, rng, unseen=True)))
    log_b = log_laws(b, _as_cells(draw(b, clusters, rng, unseen=True)))
    w = log_weights[:, None]
    each = log_sum_exp(w + log_a + log_b) - log_sum_exp(w + log_a) - log_sum_exp(w + log_b)
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(num_samples))


def _summed(a: NDArray[np.float64], b: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    joint = (weights[:, None] * a).T @ b
    apart = (weights @ a)[:, None] * (weights @ b)
    some = joint > 0
    return max(0.0, float(np.sum(joint[some] * np.log(joint[some] / apart[some]))))


def _as_cells(drawn: Drawn) -> ColumnCells:
    num = len(drawn.codes if drawn.codes is not None else np.asarray(drawn.numbers))
    return ColumnCells(drawn.codes, drawn.numbers, np.zeros(num, bool))
