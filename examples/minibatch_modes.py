"""A flattened look at very many rows: two modes, from forty rows a step.

An amplitude is measured by its square, with noise, a hundred thousand times. Both signs fit, and to
the power 1/T a chain crosses between them. What the mini-batch draws is compared with the tempered
law on a grid, with the penalty for the batch's noise and without.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import temperance as tp

NUM_ROWS, BATCH, ALPHA = 100_000, 40, 0.8
NOISE = 3.0


def simulate():
    return 1.0 + NOISE * np.random.default_rng(5).normal(size=NUM_ROWS)


def log_prior(amplitude):
    return norm.logpdf(amplitude, 0.4, 1.5)


def draw_prior(key):
    return 0.4 + 1.5 * jax.random.normal(key)


def terms(amplitude, rows):
    """log p(y_i | amplitude), one for each of the rows that are given."""
    return norm.logpdf(rows, amplitude**2, NOISE)


def known(data):
    """The tempered law's mean square and its weight above zero; the rows enter by two moments."""
    grid = np.linspace(-6.0, 6.0, 4001)
    misfit = np.mean(data**2) - 2 * grid**2 * np.mean(data) + grid**4
    logs = -0.5 * BATCH**ALPHA * misfit / NOISE**2 - 0.5 * ((grid - 0.4) / 1.5) ** 2
    density = np.exp(logs - logs.max())
    density /= density.sum()
    return float((density * grid**2).sum()), float(density[grid > 0].sum())


if __name__ == "__main__":
    data = simulate()
    problem = tp.Problem(log_prior, terms, jnp.asarray(data), draw_prior)
    square, positive = known(data)
    for noise in ("penalty", "common"):
        tree = tp.sample(
            problem, "mint", tp.metropolis(scale=2.0), batch_size=BATCH, alpha=ALPHA, noise=noise,
            temper_prior=False, num_draws=3000, num_warmup=200, sweeps_per_draw=4, progress=False,
        )  # fmt: skip
        x = tree["posterior"]["x"].values
        print(f"{noise}: mean square {np.mean(x**2):.3f}, known {square:.3f}")
        print(f"{noise}: weight above zero {np.mean(x > 0):.3f}, known {positive:.3f}")
    print(f"temperature {1 / tp.implied_beta(NUM_ROWS, BATCH, ALPHA):.0f}")
    share = tree.attrs["num_row_evaluations"] / (NUM_ROWS * tree.attrs["num_evaluations"])
    print(f"rows evaluated a step, as a share of all rows: {share:.5f}")
