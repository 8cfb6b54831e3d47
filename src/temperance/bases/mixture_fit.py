"""Fitting a mixture of t densities to a cloud of points, and weighing its parts against a target.

**Shapes.** Expectation and maximisation for t densities (Peel and McLachlan 2000): with the share
r_ij of point i that belongs to component j, and u_ij = (nu_j + d) / (nu_j + delta_ij),

    m_j = sum_i r_ij u_ij x_i / sum_i r_ij u_ij
    S_j = sum_i r_ij u_ij (x_i - m_j) (x_i - m_j)' / sum_i r_ij

with S_j shrunk towards the covariance of all points by as much as d + 2 points would weigh. The
number of components, and the degrees of freedom that they share, are those under which the walkers
that were set aside are likeliest.

**Weights.** Of draws x of the whole mixture q with ratios p(x) / q(x) component j gets

    w_j <- sum_i (p / q)(x_i) r_ij / sum_i (p / q)(x_i)

a few times, without evaluating p again (Cappe, Douc, Guillin, Marin and Robert 2008).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from temperance.problems.mixture import StudentMixture

COUNTS, DOFS = (1, 2, 4, 8), (3.0, 8.0, np.inf)
ROUNDS, MORE_ROUNDS, WEIGHT_ROUNDS = 12, 25, 20
# Points that a component's covariance needs for each dimension.
POINTS_PER_DIMENSION = 3
# A count of components is better where held-out points gain so much each, in log density.
GAIN = 0.05


class Parts(NamedTuple):
    """Weights, means, scale matrices and degrees of freedom of a mixture's components."""

    weights: np.ndarray
    means: np.ndarray
    scales: np.ndarray
    dofs: np.ndarray

    def mixture(self) -> StudentMixture:
        return StudentMixture(*self)


def fit_cloud(cloud: np.ndarray, rng: np.random.Generator) -> Parts:
    """The parts for one mode's cloud, (walker, record, d)."""
    walkers, _, d = cloud.shape
    order = rng.permutation(walkers)
    aside, kept = order[: max(walkers // 4, 1)], order[max(walkers // 4, 1) :]
    if not kept.size:
        kept = aside
    train, test = cloud[kept].reshape(-1, d), cloud[aside].reshape(-1, d)
    best, best_score = None, -np.inf
    for count in COUNTS:
        if count > 1 and len(train) < count * POINTS_PER_DIMENSION * (d + 1):
            break
        found = []
        for dofs in DOFS:
            parts = _expect_and_maximise(train, count, dofs, ROUNDS)
            score = float(np.mean(logsumexp(parts.mixture().log_components(test), axis=1)))
            found.append((score, dofs))
        score, dofs = max(found, key=lambda one: one[0])
        if score < best_score + GAIN:
            break
        best, best_score = (count, dofs), score
    assert best is not None
    return _expect_and_maximise(cloud.reshape(-1, d), *best, MORE_ROUNDS)


def _expect_and_maximise(points: np.ndarray, count: int, dofs: float, rounds: int) -> Parts:
    n, d = points.shape
    whole = _covariance(points, np.ones(n))
    # Parts begin as slices along the longest axis, which is where a bent mode is bent.
    axis = np.linalg.eigh(whole)[1][:, -1]
    rank = np.argsort(np.argsort(points @ axis, kind="stable"), kind="stable")
    shares = np.eye(count)[np.minimum(rank * count // n, count - 1)]
    parts, reach = None, np.ones((n, count))
    for _ in range(rounds if count > 1 or np.isfinite(dofs) else 1):
        masses = shares.sum(axis=0)
        means, scales = [], []
        for j in range(count):
            weight = shares[:, j] * reach[:, j]
            mean = weight @ points / weight.sum()
            away = points - mean
            inside = (away.T * weight) @ away
            # Parts of one mode share its extent.
            prior, pulled = d + 2.0, whole / count ** (2.0 / d)
            scale = (inside + prior * pulled) / (masses[j] + prior)
            means.append(mean)
            scales.append(scale + 1e-12 * np.trace(scale) / d * np.eye(d))
        weights = np.maximum(masses, 1e-3 * n / count)
        parts = Parts(
            weights / weights.sum(), np.array(means), np.array(scales), np.full(count, dofs)
        )
        mixture = parts.mixture()
        logs = mixture.log_components(points)
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        if np.isfinite(dofs):
            for j in range(count):
                square = np.sum(((points - means[j]) @ mixture.inverses[j].T) ** 2, axis=1)
                reach[:, j] = (dofs + d) / (dofs + square)
    assert parts is not None
    return parts


def _covariance(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    mean = weights @ points / weights.sum()
    away = points - mean
    d = points.shape[1]
    covariance = (away.T * weights) @ away / weights.sum()
    return covariance + 1e-12 * max(np.trace(covariance) / d, 1e-300) * np.eye(d)


def weigh(log_ratios: np.ndarray, logs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """New weights of a mixture's parts, from draws of it.

    `log_ratios` is log p - log q, and `logs` (n, parts) the log of each part's own density.
    """
    importance = np.exp(log_ratios - logsumexp(log_ratios))
    for _ in range(WEIGHT_ROUNDS):
        joint = logs + np.log(np.maximum(weights, 1e-300))
        weights = importance @ np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return weights
