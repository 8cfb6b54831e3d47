"""A logistic regression on many rows: exact draws that read a few of them a step.

Rows are bounded in how much they can say about a step, so that a random few of them can decide for
all. About the mode those bounds are small. Whether it is right is seen by weighting draws from the
Gaussian at the mode, on all rows.
"""

import jax
import jax.numpy as jnp
import numpy as np

import temperance as tp
from temperance.estimates.diagnostics import effective_size

NUM_ROWS, NUM_COEFFICIENTS = 20_000, 5


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(7)
    design = generator.normal(size=(NUM_ROWS, NUM_COEFFICIENTS))
    design[:, 0] = 1.0
    truth = generator.normal(size=NUM_COEFFICIENTS)
    return design, (generator.random(NUM_ROWS) < 1 / (1 + np.exp(-design @ truth))).astype(float)


def terms(x, rows):
    design, label = rows
    return label * (design @ x) - jax.nn.softplus(design @ x)


def weighted_mean(problem: tp.Problem, around: tp.Laplace) -> np.ndarray:
    """The posterior mean by importance sampling: a pass over the data for each of many draws."""

    def log_weight(x):
        log_density = problem.log_prior(x) + jnp.sum(problem.terms(x, problem.data))
        return log_density + 0.5 * jnp.sum(around.white(x) ** 2)

    with jax.enable_x64(True):
        draws = jax.vmap(around.draw)(jax.random.split(jax.random.key(1), 4000))
        weights = jax.nn.softmax(jax.jit(lambda: jax.lax.map(log_weight, draws))())
        return np.asarray(weights @ draws)


if __name__ == "__main__":
    design, label = data()
    prior = tp.Gaussian(np.zeros(NUM_COEFFICIENTS), 4.0)
    problem = tp.Problem(prior, terms, (design, label), prior.draw)

    around = tp.laplace(problem)  # Newton's steps on all rows, once
    move = tp.tuna(tp.lipschitz(design, "logistic", around=around))
    tree = tp.sample(problem, "plain", move, num_draws=2000, num_warmup=300, progress=False)
    print(tp.summary(tree))

    draws = tree["posterior"]["x"].values
    rows = float(tree["sample_stats"]["batch_rows"].mean())
    apart = (weighted_mean(problem, around) - draws.mean((0, 1))) / draws.std((0, 1))
    print(f"terms evaluated in a step: {rows:.0f}, for {NUM_ROWS} rows")
    print(f"worst effective size {effective_size(draws).min():.0f} of {draws[..., 0].size} draws")
    print(f"means are within {np.abs(apart).max():.3f} standard deviations of weighted draws")
