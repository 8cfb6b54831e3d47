"""The posteriors of paper 1, section 4, and real ones beside them.

**The mean of a multivariate normal.** theta ~ N(0, I), x_n ~ N(theta, S), S known. The paper prints
neither S nor the prior's variance. S is one draw of a Wishart law with 2 D degrees of freedom: its
variables are correlated, and its posterior widens with D as the paper's tables suggest. With a unit
S the paper's Metropolis step would never be accepted at D = 100, and the paper's HMC trajectory would
last half a period at N = 1024. With R the inverse of S's Cholesky factor a term is
-|R (x_n - theta)|^2 / 2 + const, evaluated as it stands, and costs D^2 multiplications.

**Hyperparameters of a Gaussian process** (eq. 21 to 25). Length scales, vertical scale and noise from
their priors, coordinates from N(0, s^2 I) with s the mean length scale, y from eq. 22.

The same seed gives the same rows whatever N, as the paper has it: those of N = 64 are the first of
those of N = 128.
"""

import functools
import gzip
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from logistic import LogisticTerms

import temperance as tp

SEED = 20140914
MOST_NORMAL_ROWS, MOST_GP_ROWS = 2048, 1024


class NormalTerms(eqx.Module):
    """Log N(x_n | theta, S), with `root` the inverse of the Cholesky factor of S."""

    root: Array
    log_norm: Array

    def __call__(self, theta: Array, rows: Array) -> Array:
        return self.log_norm - 0.5 * jnp.sum(((rows - theta[None]) @ self.root.T) ** 2, axis=1)


def normal_law(dimension: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """The covariance's lower factor, theta, and the generator that goes on to the rows."""
    generator = np.random.default_rng([SEED, dimension])
    factors = generator.normal(size=(2 * dimension, dimension))
    return np.linalg.cholesky(factors.T @ factors), generator.normal(size=dimension), generator


@functools.cache
def normal(num_rows: int, dimension: int) -> tp.Problem:
    """The mean of `num_rows` rows of a normal law with known covariance."""
    lower, theta, generator = normal_law(dimension)
    root = np.linalg.inv(lower)
    white = generator.normal(size=(MOST_NORMAL_ROWS, dimension))[:num_rows]
    log_norm = -np.log(np.diag(lower)).sum() - 0.5 * dimension * np.log(2 * np.pi)
    with jax.enable_x64(True):
        terms = NormalTerms(jnp.asarray(root), jnp.asarray(log_norm))
    prior = tp.Gaussian(np.zeros(dimension), 1.0)
    return tp.Problem(prior, terms, theta + white @ lower.T, prior.draw)


def gp_law(dimension: int) -> tuple[np.ndarray, float, float, np.random.Generator]:
    """Length scales, vertical scale and noise from the prior, and the generator that goes on."""
    generator = np.random.default_rng([SEED, dimension, 1])
    lengths = np.exp(0.5 + generator.normal(size=dimension))
    return lengths, generator.gamma(4.0, 1.0), generator.gamma(2.0, 0.5), generator


def gp_data(num_rows: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and responses of a Gaussian process whose hyperparameters are drawn from the prior."""
    lengths, scale, noise, generator = gp_law(dimension)
    inputs = lengths.mean() * generator.normal(size=(MOST_GP_ROWS, dimension))
    scaled = inputs / lengths
    square = np.sum(scaled**2, axis=1)
    distance = np.maximum(square[:, None] + square - 2 * scaled @ scaled.T, 0.0)
    covariance = scale**2 * np.exp(-0.5 * distance) + noise**2 * np.eye(MOST_GP_ROWS)
    # The first rows of a draw from the whole are a draw from the first rows.
    y = np.linalg.cholesky(covariance) @ generator.normal(size=MOST_GP_ROWS)
    return inputs[:num_rows], y[:num_rows]


@functools.cache
def gp(num_rows: int, dimension: int) -> tp.Problem:
    """The paper's Gaussian process, D + 2 parameters on the log."""
    return tp.gaussian_process(*gp_data(num_rows, dimension))


def truth(name: str, dimension: int) -> Any:
    """The parameters that the data were drawn with: a point of the posterior."""
    if name == "normal":
        return normal_law(dimension)[1]
    lengths, scale, noise, _ = gp_law(dimension)
    logs = {"log_length": lengths, "log_scale": scale, "log_noise": noise}
    return {name: np.log(value) for name, value in logs.items()}


# -- real data -------------------------------------------------------------------------------------


def adult(folder: Path, num_rows: int) -> tp.Problem:
    """Who earns much (a9a): logistic regression on 123 indicators and an intercept, prior N(0, 1)."""
    with gzip.open(folder / "classification" / "a9a.gz", "rt") as file:
        lines = [line.split() for line in file]
    rows, labels = np.zeros((len(lines), 124)), np.zeros(len(lines))
    for i, (label, *features) in enumerate(lines):
        labels[i] = float(label) > 0
        rows[i, [int(pair.split(":")[0]) for pair in features]] = 1.0
    rows[:, 0] = 1.0
    order = np.random.default_rng(SEED).permutation(len(lines))[:num_rows]
    prior = tp.Gaussian(np.zeros(124), 1.0)
    return tp.Problem(prior, LogisticTerms(), (rows[order], labels[order]), prior.draw)


def regression(folder: Path, name: str, num_rows: int) -> tp.Problem:
    """A Gaussian process on a random part of a table, every column standardised."""
    table = np.loadtxt(folder / "regression" / f"{name}.csv.gz", delimiter=",", ndmin=2)
    part = table[np.random.default_rng(SEED).permutation(len(table))[:num_rows]]
    spread = part.std(axis=0)
    part = (part - part.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    return tp.gaussian_process(part[:, :-1], part[:, -1])


class RadonTerms(eqx.Module):
    """Log radon given county, floor and uranium, with the county effects not centred."""

    def __call__(self, x: Any, data: Any) -> Array:
        county, floor, uranium, log_radon = data
        alpha = x["mu"][0] + jnp.exp(x["log_scale"][0]) * x["county"]
        beta = x["mu"][1] + jnp.exp(x["log_scale"][1]) * x["slope"]
        mean = alpha[county] + floor * beta[0] + uranium * beta[1]
        log_noise = x["log_scale"][2]
        z = (log_radon - mean) * jnp.exp(-log_noise)
        return -0.5 * z**2 - log_noise - 0.5 * jnp.log(2 * jnp.pi)


def radon_prior(x: Any) -> Array:
    """Half-Cauchy(2.5) scales on the log, N(0, 1) for all else."""
    ratio = x["log_scale"] - jnp.log(2.5)
    scales = jnp.log(2 / jnp.pi) + ratio - jax.nn.softplus(2 * ratio)
    normals = jnp.concatenate([x["mu"], x["county"], x["slope"]])
    return jnp.sum(scales) - 0.5 * jnp.sum(normals**2 + jnp.log(2 * jnp.pi))


def draw_radon(key: Any) -> Any:
    """A draw of `radon_prior`."""
    key_scale, key_mu, key_county, key_slope = jax.random.split(key, 4)
    uniform = jax.random.uniform(key_scale, (3,), minval=1e-6, maxval=1.0 - 1e-6)
    return {
        "log_scale": jnp.log(2.5 * jnp.tan(0.5 * jnp.pi * uniform)),
        "mu": jax.random.normal(key_mu, (2,)),
        "county": jax.random.normal(key_county, (85,)),
        "slope": jax.random.normal(key_slope, (2,)),
    }


def radon(folder: Path) -> tp.Problem:
    """Minnesota's radon: 919 houses in 85 counties, 92 dimensions."""
    path = folder / "radon" / "radon.csv"
    with path.open() as file:
        names = [name.strip().strip('"') for name in file.readline().split(",")]
        table = np.loadtxt(file, delimiter=",")
    by_name = dict(zip(names, table.T, strict=True))
    data = (
        by_name["county"].astype(int),
        by_name["floor"],
        by_name["log_uranium"],
        by_name["log_radon"],
    )
    return tp.Problem(radon_prior, RadonTerms(), data, draw_radon)


# Problems of real data, by name; the number is how many rows are used.
REAL = {
    "adult": lambda folder, n: adult(folder, n),
    "elevators": lambda folder, n: regression(folder, "elevators", n),
    "protein": lambda folder, n: regression(folder, "protein", n),
    "radon": lambda folder, _: radon(folder),
}
FILES = {
    "adult": "classification/a9a.gz",
    "elevators": "regression/elevators.csv.gz",
    "protein": "regression/protein.csv.gz",
    "radon": "radon/radon.csv",
}


@functools.cache
def problem_named(name: str, num_rows: int, dimension: int, data: Path | None) -> tp.Problem:
    """The problem of an experiment."""
    if name == "normal":
        return normal(num_rows, dimension)
    if name == "gp":
        return gp(num_rows, dimension)
    assert data is not None
    return REAL[name](data, num_rows)
