"""Mini-batch kernels on finite spaces with one slip each; enumeration rejects them all."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from temperance.moves.minibatch.batch_law import BatchLaw
from temperance.testing import minibatches
from temperance.testing.enumeration import JointMatrix, Matrix
from temperance.testing.minibatches import Weights
from temperance.testing.subsamples import Terms


def a_batch_for_each_end(law: BatchLaw, terms: Terms, proposal: Matrix) -> Matrix:
    """Draws a batch for x and another for x*, anew at every step, and compares across them."""
    logs = minibatches.log_weights(law, terms)
    ratio = logs[None, :, None, :] - logs[:, None, :, None]  # (x, y, batch of x, batch of y)
    chance = np.exp(np.minimum(ratio, 0.0)).mean(axis=(2, 3))
    return filled(proposal * chance)


def one_batch_both_ways(weights: Weights, proposals: Sequence[Matrix]) -> JointMatrix:
    """Judges the way back from x* by the batch of x, where it is the batch of x* that proposes."""
    num_states, num_batches = weights.shape
    matrix = np.zeros((num_states, num_batches, num_states, num_batches))
    for x, s, y, t in product(*map(range, matrix.shape)):
        there, back = proposals[s][x, y], proposals[s][y, x]
        chance = min(1.0, np.exp(weights[y, t] - weights[x, s]) * back / there) if there else 0.0
        matrix[x, s, y, t] = there * chance / num_batches
    return filled(matrix.reshape(weights.size, weights.size))


def a_redraw_of_the_batch(weights: Weights) -> JointMatrix:
    """Gives the state another batch, whatever its law says."""
    num_states, num_batches = weights.shape
    return np.kron(np.eye(num_states), np.full((num_batches, num_batches), 1.0 / num_batches))


def first_term_alone(variance: np.ndarray, _: int) -> np.ndarray:
    """The penalty of a variance that is known, for one that is estimated."""
    return 0.5 * variance


def two_terms(variance: np.ndarray, count: int) -> np.ndarray:
    """The penalty's series, cut one term short."""
    return 0.5 * variance + variance**2 / (4 * (count + 1))


def filled(moves: np.ndarray) -> np.ndarray:
    matrix = moves - np.diag(np.diag(moves))
    return matrix + np.diag(1.0 - matrix.sum(axis=1))
