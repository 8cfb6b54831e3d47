"""Prediction at new inputs, averaged over the posterior of the hyperparameters.

Given one position, with k + q I = L L' and alpha = (k + q I)^{-1} y as in
`temperance.models.gaussian_process.covariance`, and k_* the correlations of a new input with the n rows,

    E f_* = k_*' alpha,    Var f_* = sigma_f^2 (1 - |L^{-1} k_*|^2),

and a noisy observation there has sigma_n^2 more. A kernel with a constant a^2 has 1 + a^2 for 1,
and a nugget r adds r^2 to q and sigma_f^2 r^2 to the noise. Over draws of the hyperparameters the
mean is the mean of the means, and by the law of total variance the variance is the mean of the
variances plus the variance of the means. Draws are taken one after the other and new inputs some at
a time, so that memory holds one matrix of n x n and one of n x `CHUNK`, whatever the numbers of
draws and of new inputs; functions drawn jointly at m new inputs also need one of m x m.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from temperance._types import Numbers
from temperance.errors import ArgumentError, DataError, ResultError
from temperance.problems.problem import Problem
from temperance.estimates.resampling import systematic
from temperance.models.gaussian_process.covariance import scaled_alike, squared_distances
from temperance.models.gaussian_process.fast_regression import FastGaussianProcessTerms
from temperance.models.gaussian_process.fast_prediction import (
    LEAST,
    WEIGHT,
    Ensembles,
    in_one,
    members_of,
    over_members,
)
from temperance.models.gaussian_process.regression import LEAVES, GaussianProcessTerms
from temperance.models.gaussian_process.kernels import AbstractKernel

# New inputs at a time.
CHUNK = 256


class Prediction(NamedTuple):
    """Mean and variance at each new input; `draws` has one function for each draw, if asked for."""

    mean: NDArray[np.floating]
    variance: NDArray[np.floating]
    draws: NDArray[np.floating] | None = None


def predict(
    problem: Problem,
    tree: Any,
    new_inputs: Numbers,
    *,
    noisy: bool = False,
    num_draws: int | None = 200,
    functions: bool = False,
    seed: int = 0,
    precision: str = "double",
) -> Prediction:
    """The function, or noisy observations of it, at `new_inputs` of shape (m, D).

    `tree` is what `sample` gave for `problem`. At most `num_draws` of its draws are used, evenly
    spaced over all chains, and as often as their weights say where they have any; None uses every
    one, at the cost of a factorisation each. With `functions=True` one function is drawn jointly at
    all new inputs for each of them.

    Where a run with `ensemble` kept its members, in the group `ensemble`, mean and variance average
    over all members of each draw by their weights; functions are drawn at the draws themselves.
    """
    terms = problem.terms
    if not isinstance(terms, GaussianProcessTerms | FastGaussianProcessTerms):
        raise ArgumentError(
            "problem: wanted one that gaussian_process or fast_gaussian_process made, got terms "
            f"{terms!r}; for another model compute predictions from tree.posterior"
        )
    if precision not in ("double", "single"):
        raise ArgumentError(f"precision: wanted 'double' or 'single', got {precision!r}")
    if num_draws is not None and (not isinstance(num_draws, int | np.integer) or num_draws < 1):
        raise ArgumentError(f"num_draws: wanted a whole number of at least 1, got {num_draws!r}")
    data: Any = problem.data
    new = _checked(new_inputs, data["inputs"].shape[1])
    members, logs = None, _log_weights(tree)
    positions, kept = _thinned(tree, num_draws, data["inputs"].shape[1], logs)
    if isinstance(terms, FastGaussianProcessTerms):
        members = members_of(tree, terms)
    found: Any = None
    with jax.enable_x64(precision == "double"):
        rows = {name: jnp.asarray(array, float) for name, array in data.items()}
        leaves = [jnp.asarray(positions[name], float) for name in LEAVES]
        points = jnp.asarray(new, float)
        key = jax.random.key(seed) if functions else None
        model = Model.of(terms)
        draws = None
        if members is None or functions:
            *found, draws = _moments(model, leaves, rows, points, noisy, key)
        if isinstance(terms, FastGaussianProcessTerms) and members is not None:
            if logs is not None:
                totals = np.logaddexp.reduce(members.log_weight, axis=1)
                positions, kept = _thinned(tree, num_draws, data["inputs"].shape[1], totals)
                leaves = [jnp.asarray(positions[name], float) for name in LEAVES]
            members = Ensembles(*(part if part is None else part[kept] for part in members))
            if terms.route == "cholesky":
                leaves = in_one(leaves, members)
                *found, _ = _moments(model, leaves, rows, points, noisy, None)
            else:
                found = over_members(terms, leaves[0], members, rows, in_chunks(points), noisy)
        means, variances = (np.asarray(part)[:, : len(new)] for part in found)
    variance = variances.mean(axis=0) + means.var(axis=0)
    functions_drawn = None if draws is None else np.asarray(draws)
    return Prediction(means.mean(axis=0), variance, functions_drawn)


class Model(eqx.Module):
    """The correlation of two inputs, and what is added where they are one and the same row."""

    kernel: AbstractKernel
    level: float = eqx.field(static=True)  # the kernel at distance zero
    nugget: float = eqx.field(static=True)
    jitter: float = eqx.field(static=True)

    @classmethod
    def of(cls, terms: GaussianProcessTerms | FastGaussianProcessTerms) -> "Model":
        if isinstance(terms, GaussianProcessTerms):
            return cls(terms.kernel, 1.0, 0.0, terms.jitter)
        return cls(terms.raised, 1.0 + terms.constant**2, terms.nugget, 0.0)


@functools.partial(jax.jit, static_argnames="noisy")
def _moments(
    model: Model,
    leaves: list[Array],
    rows: dict[str, Array],
    new: Float[Array, "m inputs"],
    noisy: bool,
    key: Any,
) -> tuple[Array, Array, Array | None]:
    """Means, variances and functions, one of each for each draw on the leading axis."""
    num_new = new.shape[0]
    kernel = model.kernel
    chunks = in_chunks(new)

    def of_one(inputs: tuple[list[Array], Array | None]) -> tuple[Array, Array, Array | None]:
        (log_length, log_scale, log_noise), key = inputs
        amplitude, noise = jnp.exp(2.0 * log_scale), jnp.exp(2.0 * log_noise)
        added = model.nugget**2 * amplitude + noise
        x, points = scaled_alike(log_length, rows["inputs"], chunks.reshape(-1, new.shape[1]))
        own = jnp.eye(x.shape[0], dtype=x.dtype)
        matrix = kernel(squared_distances(x, x)) + (added + model.jitter) / amplitude * own
        factor = jax.lax.linalg.cholesky(matrix, symmetrize_input=False)
        z = _solve(factor, rows["y"])

        def of_some(some: Array) -> tuple[Array, Array]:
            half = _solve(factor, kernel(squared_distances(x, some)))
            left = jnp.maximum(model.level - jnp.sum(half**2, 0), LEAST)
            return half.T @ z, amplitude * left + added * noisy

        mean, variance = jax.lax.map(of_some, points.reshape(chunks.shape))
        mean, variance = mean.reshape(-1)[:num_new], variance.reshape(-1)[:num_new]
        if key is None:
            return mean, variance, None
        points = points[:num_new]
        half = _solve(factor, kernel(squared_distances(x, points)))
        rest = kernel(squared_distances(points, points)) - half.T @ half
        ridge = (added * noisy + model.jitter) / amplitude + 100.0 * num_new * jnp.finfo(
            x.dtype
        ).eps
        spread = jax.lax.linalg.cholesky(rest + ridge * jnp.eye(num_new, dtype=x.dtype))
        normals = jax.random.normal(key, (num_new,), x.dtype)
        return mean, variance, mean + jnp.sqrt(amplitude) * (spread @ normals)

    keys = None if key is None else jax.random.split(key, leaves[0].shape[0])
    return jax.lax.map(of_one, (leaves, keys))


def in_chunks(new: Float[Array, "m inputs"]) -> Float[Array, "chunks some inputs"]:
    """New inputs some at a time, the last of them filled up with zeros."""
    size = min(CHUNK, new.shape[0])
    num_chunks = -(-new.shape[0] // size)
    padded = jnp.pad(new, ((0, num_chunks * size - new.shape[0]), (0, 0)))
    return padded.reshape(num_chunks, size, -1)


def _solve(factor: Array, right: Array) -> Array:
    return jax.scipy.linalg.solve_triangular(factor, right, lower=True)


def _checked(new_inputs: Numbers, num_inputs: int) -> np.ndarray:
    new = np.asarray(new_inputs, float)
    if new.ndim == 1 and num_inputs == 1:
        new = new[:, None]
    if new.ndim != 2 or new.shape[1] != num_inputs or not new.shape[0]:
        raise DataError(
            f"new_inputs: wanted shape (m, {num_inputs}), as the problem's inputs have "
            f"{num_inputs} columns, got {new.shape}"
        )
    if not np.isfinite(new).all():
        raise DataError("new_inputs: not all of them are finite")
    return new


def _log_weights(tree: Any) -> np.ndarray | None:
    """The weights of the draws, where they have any."""
    stats = getattr(tree, "sample_stats", None)
    return None if stats is None or WEIGHT not in stats else stats[WEIGHT].values


def _thinned(
    tree: Any, num_draws: int | None, num_inputs: int, log_weights: np.ndarray | None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Evenly spaced draws of all chains, by name, draws on the leading axis; and which they are.

    Where draws are weighted, each comes as often as its weight says.
    """
    posterior = getattr(tree, "posterior", None)
    missing = [name for name in LEAVES if posterior is None or name not in posterior]
    if posterior is None or missing:
        raise ResultError(
            f"tree: there is no {' or '.join(missing)} in its posterior; wanted what sample gave "
            "for this problem"
        )
    flat = {}
    for name in LEAVES:
        values = np.asarray(posterior[name].values)
        flat[name] = values.reshape(-1, *values.shape[2:])
    if flat["log_length"].shape[1:] != (num_inputs,):
        raise ResultError(
            f"tree: its draws have {flat['log_length'].shape[1:]} length scales, but the problem "
            f"has {num_inputs} input(s)"
        )
    total = len(flat["log_scale"])
    num = min(num_draws or total, total)
    if log_weights is None:
        kept = np.linspace(0, total - 1, num).round().astype(int)
    else:
        kept = systematic(log_weights, num, 0.5)
    return {name: values[kept] for name, values in flat.items()}, kept
