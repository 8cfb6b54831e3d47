"""Logistic regression whose coefficients have a t prior, with the prior's own parameters fast.

The likelihood depends on the coefficients alone, and takes a product with all rows. The width and
the degrees of freedom of the coefficients' t prior enter through as many numbers as there are
coefficients: many of them can be tried for one pass over the rows.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm, t

import temperance as tp
from temperance.moves.fast_slow.two_stage import counted, stages

NUM_ROWS, NUM_SLOPES = 200, 8
FAST = ("log_degrees", "log_width")
# Means and standard deviations of the logarithms, in this order.
MEANS, SPREADS = (1.5, -0.5), (0.7, 1.0)


def simulate():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(NUM_ROWS, NUM_SLOPES))
    odds = x @ np.array([2.0, -1.5, *[0.0] * (NUM_SLOPES - 2)])  # two slopes of eight matter
    return {"x": x, "y": (rng.random(NUM_ROWS) < 1 / (1 + np.exp(-odds))).astype(float)}


class Prior(eqx.Module):
    """A t density of each slope, and log-normals of its degrees of freedom and its width."""

    def __call__(self, position):
        degrees, width = jnp.exp(position["log_degrees"]), jnp.exp(position["log_width"])
        slopes = jnp.sum(t.logpdf(position["slope"], degrees, 0.0, width))
        each = zip(FAST, MEANS, SPREADS, strict=True)
        return slopes + sum(norm.logpdf(position[name], mean, sd) for name, mean, sd in each)

    def draw(self, key):
        of_hyper, of_slope = jax.random.split(key)
        hyper = dict(zip(FAST, self.fast_base.draw(of_hyper), strict=True))
        standard = jax.random.t(of_slope, jnp.exp(hyper["log_degrees"]), (NUM_SLOPES,))
        return hyper | {"slope": jnp.exp(hyper["log_width"]) * standard}

    @property
    def fast_base(self):
        return tp.Gaussian(MEANS, np.square(SPREADS))


def terms(position, data):
    odds = data["x"] @ position["slope"]
    return data["y"] * odds - jnp.logaddexp(0.0, odds)


def problem() -> tp.Problem:
    prior = Prior()
    return tp.Problem(prior, terms, simulate(), prior.draw, dims={"slope": ["predictor"]})


def what_is_fast(asked: tp.Problem) -> tuple[int, int]:
    """Products with the rows for new slopes, and for a new width and degrees of freedom."""
    position = asked.draw_prior(jax.random.key(0))
    fast = {name: position[name] for name in FAST}
    slow = {name: leaf for name, leaf in position.items() if name not in fast}

    def density(slow, fast):
        both = slow | fast
        return asked.log_prior(both) + jnp.sum(asked.terms(both, asked.data))

    found = stages(density, slow, fast)
    return counted(found.slow)["dot_general"], counted(found.fast)["dot_general"]


if __name__ == "__main__":
    asked = problem()
    print("products with the rows for new slopes, for a new width:", *what_is_fast(asked))
    tree = tp.sample(
        asked,
        "plain",
        move=tp.ensemble(fast=FAST, members=20),
        num_draws=500,
        num_warmup=500,
        progress=False,
    )
    slope = tree["posterior"]["slope"].mean(("chain", "draw")).values
    print("mean slopes", *np.round(slope, 2))
    width = np.exp(tree["posterior"]["log_width"])
    print(f"width {float(width.mean()):.2f} +- {float(width.std()):.2f}")
