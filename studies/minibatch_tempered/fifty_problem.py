"""Fifty modes: x ~ (1/50) sum_j N(theta_j, 1), 10^5 rows drawn with theta = (2, 0, ..., 0).

The labels are exchangeable, so that the posterior has one mode for every coordinate that may stand
near 2, all of the same weight. The paper's prior is flat; here theta_j ~ N(0, 3^2), independent, which
is as exchangeable, proper, and wider than anything that 10^5 rows leave open.

The data speak of the theta_j through the moments of their empirical law alone. With c = 1/50,

    m_2 = c sum theta_j^2 = 0.08,  m_3 = c sum theta_j^3 = 0.16,  ...

known to about sqrt(k! / n): 0.0045 for m_2. The 49 coordinates near zero may share 50 * 0.0045 between
their squares, so that each of them has a standard deviation of some hundredths, and none comes near 2.

**The likelihood** is l_i = log c sum_j exp(x_i theta_j - theta_j^2 / 2) - x_i^2 / 2 - log(2 pi) / 2: one
product and one exponential for each pair. In double precision exp overflows beyond x theta = 700, which
rows within 8 and coordinates within 80 never reach. Rows go through in blocks that stay in the cache,
and the value's pass makes the gradient too: autodiff would store and read five million numbers.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import temperance as tp

SEED = 20160713
NUM_COMPONENTS = 50
TRUE_TOP = 2.0
PRIOR_SCALE = 3.0
BLOCK = 1000
HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


class MixtureTerms(eqx.Module):
    """Log density of each row under an equal mixture of unit normals."""

    def __call__(self, theta: Array, rows: Array) -> Array:
        return row_terms(theta, rows)


@jax.custom_vjp
def row_terms(theta: Array, rows: Array) -> Array:
    """The terms, a block at a time."""
    whole = rows.size // BLOCK * BLOCK
    last = block_terms(theta, rows[whole:])
    if not whole:
        return last
    blocks = rows[:whole].reshape(-1, BLOCK)
    first = jax.lax.map(functools.partial(block_terms, theta), blocks).ravel()
    return jnp.concatenate([first, last])


def block_terms(theta: Array, rows: Array) -> Array:
    """The terms of a block."""
    powers = jnp.outer(rows, theta) - 0.5 * theta[None] ** 2
    return jnp.log(jnp.mean(jnp.exp(powers), axis=1)) - 0.5 * rows**2 - HALF_LOG_2PI


def _terms_forward(theta: Array, rows: Array) -> tuple[Array, tuple[Array, Array]]:
    return row_terms(theta, rows), (theta, rows)


def _terms_backward(kept: tuple[Array, Array], slopes: Array) -> tuple[Array, Array]:
    """Weights again, which takes less time than reading them from memory."""
    theta, rows = kept
    whole = rows.size // BLOCK * BLOCK

    def pull(rows: Array, slopes: Array) -> Array:
        weights = jnp.exp(jnp.outer(rows, theta) - 0.5 * theta[None] ** 2)
        share = slopes / jnp.sum(weights, axis=1)
        sums = weights.T @ jnp.stack([share * rows, share], axis=1)
        return sums[:, 0] - theta * sums[:, 1]

    total = pull(rows[whole:], slopes[whole:])
    if whole:
        blocks = rows[:whole].reshape(-1, BLOCK), slopes[:whole].reshape(-1, BLOCK)
        total, _ = jax.lax.scan(lambda sums, block: (sums + pull(*block), None), total, blocks)
    return total, jnp.zeros_like(rows)


row_terms.defvjp(_terms_forward, _terms_backward)


def block_sums(theta: Array, rows: Array) -> tuple[Array, Array]:
    """The sum of a block's terms, and its gradient."""
    weights = jnp.exp(jnp.outer(rows, theta) - 0.5 * theta[None] ** 2)
    total = jnp.sum(weights, axis=1)
    value = jnp.sum(jnp.log(total) - 0.5 * rows**2)
    value -= rows.size * (HALF_LOG_2PI + jnp.log(float(theta.size)))
    sums = weights.T @ jnp.stack([rows / total, 1 / total], axis=1)
    return value, sums[:, 0] - theta * sums[:, 1]


def all_sums(theta: Array, rows: Array) -> tuple[Array, Array]:
    """The same of all rows, a block at a time."""
    whole = rows.size // BLOCK * BLOCK
    sums = block_sums(theta, rows[whole:])
    if whole:

        def add(sums: tuple[Array, Array], block: Array) -> tuple[tuple[Array, Array], None]:
            value, gradient = block_sums(theta, block)
            return (sums[0] + value, sums[1] + gradient), None

        sums, _ = jax.lax.scan(add, sums, rows[:whole].reshape(-1, BLOCK))
    return sums


@jax.custom_vjp
def log_likelihood(theta: Array, rows: Array) -> Array:
    """The sum of the terms."""
    return all_sums(theta, rows)[0]


def _backward(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    gradient, rows = kept
    return slope * gradient, jnp.zeros_like(rows)


def _forward(theta: Array, rows: Array) -> tuple[Array, tuple[Array, Array]]:
    value, gradient = all_sums(theta, rows)
    return value, (gradient, rows)


log_likelihood.defvjp(_forward, _backward)


@functools.cache
def data(num_rows: int) -> np.ndarray:
    """Rows drawn with theta = (2, 0, ..., 0)."""
    generator = np.random.default_rng(SEED)
    component = generator.integers(NUM_COMPONENTS, size=num_rows)
    return generator.normal(size=num_rows) + TRUE_TOP * (component == 0)


@functools.cache
def fifty_modes(num_rows: int) -> tp.Problem:
    """The posterior of the fifty means."""
    prior = tp.Gaussian(np.zeros(NUM_COMPONENTS), PRIOR_SCALE**2)
    return tp.Problem(
        prior, MixtureTerms(), data(num_rows), prior.draw, log_likelihood=log_likelihood
    )
