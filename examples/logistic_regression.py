"""A problem with rows, in a run that survives: stopped after 200 draws and continued to 500.

The second call finds the checkpoint, draws only what is missing, and gives the very draws that an
uninterrupted run would have given. Kill it at any moment and call again: the same holds.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import temperance as tp

NUM_ROWS, NAMES = 300, ("intercept", "age", "dose", "weight")


def simulate():
    draws = np.random.default_rng(7)
    x = np.column_stack([np.ones(NUM_ROWS), draws.normal(size=(NUM_ROWS, len(NAMES) - 1))])
    odds = x @ np.array([-0.5, 1.0, 2.0, 0.0])
    return {"x": x, "y": (draws.random(NUM_ROWS) < 1 / (1 + np.exp(-odds))).astype(float)}


def log_prior(position):
    return jnp.sum(norm.logpdf(position["slope"], 0.0, 2.5))


def draw_prior(key):
    return {"slope": 2.5 * jax.random.normal(key, (len(NAMES),))}


def terms(position, data):
    """log p(y_i | x_i), one for each row; data come as an argument and are never closed over."""
    odds = data["x"] @ position["slope"]
    return data["y"] * odds - jnp.logaddexp(0.0, odds)


def problem() -> tp.Problem:
    return tp.Problem(
        log_prior,
        terms,
        simulate(),
        draw_prior,
        dims={"slope": ["predictor"]},
        coords={"predictor": list(NAMES)},
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "checkpoint": Path(folder) / "run.zarr",
            "num_warmup": 300,
            "num_rungs": 6,
            "progress": False,
        }
        asked = problem()
        short = tp.sample(asked, num_draws=200, **options)
        tree = tp.sample(asked, num_draws=500, **options)
    same = np.array_equal(short["posterior"]["slope"], tree["posterior"]["slope"][:, :200])
    print(f"the first 200 draws are the same, bit for bit: {same}")
    print(tp.summary(tree))
    print("log evidence: {:.3f} +- {:.3f}".format(*tp.log_evidence(tree)))
