"""A logistic regression on many rows: exact draws that read a few of them a step.

Rows are bounded in how much they can say about a step, so that a random few of them can decide for
all. About the mode those bounds are small. HMC on all rows says whether it is right.
"""

import jax
import numpy as np

import temperance as tp
from temperance.diagnostics import effective_size

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
    whole = tp.sample(problem, "plain", "hmc", num_draws=150, num_warmup=150, progress=False)
    apart = whole["posterior"]["x"].values.mean((0, 1)) - draws.mean((0, 1))
    print(f"terms evaluated in a step: {rows:.0f}, for {NUM_ROWS} rows")
    print(f"worst effective size {effective_size(draws).min():.0f} of {draws[..., 0].size} draws")
    print(f"furthest from HMC on all rows {np.abs(apart / draws.std((0, 1))).max():.3f} deviations")
