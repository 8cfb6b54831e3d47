"""Which inputs matter? A Gaussian process with one length scale for each of three inputs.

Only the first two act on y. The posterior of the third length scale stays long, and predictions
average over what the data leave open.
"""

import numpy as np

import temperance as tp

ROWS = 60


def truth(inputs: np.ndarray) -> np.ndarray:
    return np.sin(2.0 * inputs[:, 0]) + 0.5 * inputs[:, 1]


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1.5, 1.5, size=(ROWS, 3))
    y = truth(inputs) + 0.1 * rng.normal(size=ROWS)
    problem = tp.gaussian_process(inputs, y)
    tree = tp.sample(
        problem, method="plain", move="hmc", num_draws=200, num_warmup=200, num_chains=2,
        progress=False,
    )  # fmt: skip
    length = np.exp(tree["posterior"]["log_length"]).median(("chain", "draw")).values
    print("median length scales", *np.round(length, 2))
    noise = np.exp(tree["posterior"]["log_noise"])
    print(f"noise {float(noise.mean()):.3f} +- {float(noise.std()):.3f}, known 0.100")
    new = rng.uniform(-1.2, 1.2, size=(200, 3))
    found = tp.predict(problem, tree, new, num_draws=100)
    inside = np.abs(found.mean - truth(new)) < 2 * np.sqrt(found.variance)
    print(f"truth within two standard deviations at {inside.mean():.2f} of new inputs")
