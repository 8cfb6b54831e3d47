"""How a log density bends at its maxima: second derivatives from differences of gradients.

    H e_i = (g(x - h_i e_i) - g(x + h_i e_i)) / (2 h_i),      h_i = a small share of 1 / sqrt H_ii

in two rounds, since the width that h_i depends on is what is asked for. The covariance of Laplace's
approximation is the inverse of H + g g': at a maximum g is zero; at the edge of the support, where
a density falls away from its end like exp(-g x), the width is 1 / g. Directions in which the
density does not bend down, or less than the starts are wide, get the spread of the starts.
"""

import numpy as np

from temperance.bases.polish import Climb

FIRST, SECOND = 1e-5, 0.03


def laplace(climb: Climb, centers: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The covariance at each of `centers`, (n, d, d)."""
    n, d = centers.shape
    widths = np.broadcast_to(climb.unit, (n, d)).copy() * FIRST
    bend = np.zeros((n, d, d))
    for _ in range(2):
        bend = _bend(climb, centers, slopes, widths)
        known = np.einsum("nii->ni", bend)
        local = np.where(known > 0, 1 / np.sqrt(np.where(known > 0, known, 1.0)), climb.unit)
        widths = SECOND * np.minimum(local, climb.unit)
    bend = bend + slopes[:, :, None] * slopes[:, None, :]
    scaled = bend * climb.unit[:, None] * climb.unit
    values, vectors = np.linalg.eigh(np.where(np.isfinite(scaled), scaled, 0.0))
    variances = 1 / np.maximum(values, 1.0)
    covariance = np.einsum("nij,nj,nkj->nik", vectors, variances, vectors)
    return covariance * climb.unit[:, None] * climb.unit


def _bend(climb: Climb, centers: np.ndarray, slopes: np.ndarray, widths: np.ndarray) -> np.ndarray:
    n, d = centers.shape
    steps = widths[:, :, None] * np.eye(d)
    ahead = (centers[:, None] + steps).reshape(-1, d)
    behind = (centers[:, None] - steps).reshape(-1, d)
    values, found = climb.gradients(np.concatenate([ahead, behind]))
    inside = np.isfinite(values).reshape(2, n, d, 1)
    both = found.reshape(2, n, d, d)
    # Beyond the edge of the support the gradient goes on as it changes on the other side.
    here = slopes[:, None]
    beyond = np.where(inside[::-1], 2 * here - both[::-1], here)
    up, down = np.where(inside, both, beyond)
    bend = (down - up) / (2 * widths[:, :, None])
    return 0.5 * (bend + bend.transpose(0, 2, 1))
