"""Tall data: logistic regression with 100,000 rows and 20 coefficients, and its moments.

Columns are an intercept and 19 normal ones with correlations 0.5^|i - j|; coefficients are drawn from
N(0, 1/4), and have N(0, 1) priors. With so many rows the posterior is nearly normal. Draws of the normal law
at the mode, weighted by the posterior over that law, have its moments, and their effective share tells how
near the two laws are. What the weights change is added to the moments of the normal law, which are
known, so that little is left to chance.
"""

import functools
from typing import Any

import numpy as np
from logistic import LogisticTerms
from scipy.special import expit

import temperance as tp

SEED = 20191125
NUM_ROWS, DIMENSION = 100_000, 20
CORRELATION = 0.5
NUM_WEIGHTED = 2000


@functools.cache
def data(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with an intercept in front, and labels."""
    generator = np.random.default_rng(SEED)
    apart = np.abs(np.subtract.outer(np.arange(DIMENSION - 1), np.arange(DIMENSION - 1)))
    root = np.linalg.cholesky(CORRELATION**apart)
    columns = generator.normal(size=(num_rows, DIMENSION - 1)) @ root.T
    rows = np.c_[np.ones(num_rows), columns]
    coefficients = 0.5 * generator.normal(size=DIMENSION)
    return rows, (generator.uniform(size=num_rows) < expit(rows @ coefficients)).astype(float)


@functools.cache
def tall(num_rows: int) -> tp.Problem:
    """The posterior of the coefficients."""
    prior = tp.Gaussian(np.zeros(DIMENSION), 1.0)
    return tp.Problem(prior, LogisticTerms(), data(num_rows), prior.draw)


def log_posterior(points: np.ndarray, num_rows: int) -> np.ndarray:
    """The log posterior at points (many, d), up to a constant."""
    rows, labels = data(num_rows)
    found = []
    for some in np.array_split(points, max(1, len(points) // 20)):
        logits = some @ rows.T
        # Logits are far below 700, where exp ends.
        terms = logits @ labels - np.log1p(np.exp(logits)).sum(1)
        found.append(terms - 0.5 * np.sum(some**2, axis=1))
    return np.concatenate(found)


@functools.cache
def mode_and_root(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The mode, by Newton's method, and a lower root of the inverse Hessian there."""
    rows, labels = data(num_rows)
    x = np.zeros(DIMENSION)
    for _ in range(30):
        chance = expit(rows @ x)
        hessian = (rows * (chance * (1 - chance))[:, None]).T @ rows + np.eye(DIMENSION)
        step = np.linalg.solve(hessian, rows.T @ (labels - chance) - x)
        x = x + step
        if np.abs(step).max() < 1e-12:
            break
    return x, np.linalg.cholesky(np.linalg.inv(hessian))


@functools.cache
def moments(num_rows: int, num_draws: int = NUM_WEIGHTED) -> dict[str, Any]:
    """Means and standard deviations of the posterior, from weighted draws of a normal law."""
    mode, root = mode_and_root(num_rows)
    white = np.random.default_rng(0).normal(size=(num_draws // 2, DIMENSION))
    # Pairs on either side of the mode: what is odd about the posterior cancels.
    white = np.concatenate([white, -white])
    points = mode + white @ root.T
    log_weight = log_posterior(points, num_rows) + 0.5 * np.sum(white**2, axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    change = weight - 1 / num_draws
    shift = change @ (white @ root.T)
    second = np.diag(root @ root.T) + change @ (white @ root.T) ** 2
    return {
        "mean": (mode + shift).tolist(),
        "sd": np.sqrt(second - shift**2).tolist(),
        "share": float(1 / np.sum(weight**2) / num_draws),
        "normal_sd": np.sqrt(np.diag(root @ root.T)).tolist(),
    }
