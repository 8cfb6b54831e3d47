"""Logistic regression of ones against sevens: MNIST, 784 pixels between 0 and 1, and an intercept.

13,007 rows to learn from and 2,163 to test on. The coefficients are independent N(0, 1): pixels lie between
0 and 1, about a hundred are lit, and a logit is then N(0, 10^2) before any data are seen, which takes nothing
for granted. A flat prior, which the paper has, leaves no posterior here: some pixels are dark in all rows.
"""

import functools
from pathlib import Path

import numpy as np
from logistic import LogisticTerms
from scipy.optimize import minimize
from scipy.special import expit

import temperance as tp

FILE = "mnist/mnist_1v7.npz"
SEVEN = 7
DIMENSION = 785


@functools.cache
def images(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows with an intercept in front, and labels: 1 for a seven."""
    with np.load(folder / FILE) as file:
        pixels, digits = file[f"x_{part}"], file[f"y_{part}"]
    rows = np.c_[np.ones(len(pixels)), pixels.reshape(len(pixels), -1) / 255]
    return rows, (digits == SEVEN).astype(float)


@functools.cache
def mnist(folder: Path) -> tp.Problem:
    """The posterior of the coefficients."""
    prior = tp.Gaussian(np.zeros(DIMENSION), 1.0)
    return tp.Problem(prior, LogisticTerms(), images(folder, "train"), prior.draw)


def accuracy(folder: Path, coefficients: np.ndarray) -> np.ndarray:
    """Shares of test images that coefficients (..., d) put right."""
    rows, labels = images(folder, "test")
    return np.mean((np.asarray(coefficients) @ rows.T > 0) == labels, axis=-1)


def log_terms(folder: Path, coefficients: np.ndarray) -> np.ndarray:
    """The log likelihood of every row."""
    rows, labels = images(folder, "train")
    logits = rows @ coefficients
    return labels * logits - np.logaddexp(0.0, logits)


@functools.cache
def best(folder: Path) -> np.ndarray:
    """The posterior's mode."""
    rows, labels = images(folder, "train")

    def energy(x: np.ndarray) -> tuple[float, np.ndarray]:
        logits = rows @ x
        value = np.sum(labels * logits - np.logaddexp(0.0, logits)) - 0.5 * x @ x
        return -float(value), x - rows.T @ (labels - expit(logits))

    start = np.zeros(DIMENSION)
    return minimize(energy, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x
