"""Classes instead of values: a Gaussian process behind a logistic likelihood, latent values fast.

Latent values are f = L w with L L' the covariance of the process and w standard normal. Once
hyperparameters have been factored, new latent values cost a product of L with a vector, so that
many of them can be tried for one factorisation.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import temperance as tp
from temperance.moves.fast_slow.two_stage import counted, stages

ROWS, JITTER = 30, 1e-6
FAST = ("white",)


def simulate():
    rng = np.random.default_rng(3)
    x = rng.uniform(-2.0, 2.0, size=(ROWS, 2))
    odds = 3.0 * np.sin(1.5 * x[:, 0])  # the second input does nothing
    return {"x": x, "y": (rng.random(ROWS) < 1 / (1 + np.exp(-odds))).astype(float)}


class Prior(eqx.Module):
    """Length scales and vertical scale of the order of one, and standard normal white values."""

    def __call__(self, position):
        slow = norm.logpdf(position["log_length"], 0.0, 1.0), norm.logpdf(position["log_scale"])
        return sum(jnp.sum(part) for part in (*slow, norm.logpdf(position["white"])))

    def draw(self, key):
        of_length, of_scale, of_white = jax.random.split(key, 3)
        return {
            "log_length": jax.random.normal(of_length, (2,)),
            "log_scale": jax.random.normal(of_scale),
            "white": jax.random.normal(of_white, (ROWS,)),
        }

    @property
    def fast_base(self):
        return tp.Gaussian(np.zeros(ROWS), 1.0)


def latent(position, x):
    scaled = x * jnp.exp(-position["log_length"])[None, :]
    squares = jnp.sum((scaled[:, None] - scaled[None]) ** 2, -1)
    matrix = jnp.exp(-0.5 * squares) + JITTER * jnp.eye(x.shape[0])
    factor = jnp.linalg.cholesky(matrix)
    return jnp.exp(position["log_scale"]) * (factor @ position["white"][: x.shape[0]])


def terms(position, data):
    f = latent(position, data["x"])
    return data["y"] * f - jnp.logaddexp(0.0, f)


def problem() -> tp.Problem:
    prior = Prior()
    return tp.Problem(prior, terms, simulate(), prior.draw, independent=False)


def what_is_fast(asked: tp.Problem) -> tuple[int, int]:
    """Factorisations for new hyperparameters, and for new latent values."""
    position = asked.draw_prior(jax.random.key(0))
    fast = {name: position[name] for name in FAST}
    slow = {name: leaf for name, leaf in position.items() if name not in fast}

    def density(slow, fast):
        both = slow | fast
        return asked.log_prior(both) + jnp.sum(asked.terms(both, asked.data))

    found = stages(density, slow, fast)
    return counted(found.slow)["cholesky"], counted(found.fast)["cholesky"]


if __name__ == "__main__":
    asked = problem()
    print("factorisations for new length scales, for new latent values:", *what_is_fast(asked))
    # Thirty latent values are too many for members drawn far away: near ones let the length scales
    # move, and updates of the latent values alone, which cost no factorisation, move the rest.
    near = tp.exchangeable(np.full(ROWS, 0.2))
    tree = tp.sample(
        asked,
        "plain",
        move=tp.extra_updates(tp.ensemble(fast=FAST, members=20, base=near), FAST, times=50),
        num_draws=500,
        num_warmup=500,
        progress=False,
    )
    length = np.exp(tree["posterior"]["log_length"]).median(("chain", "draw")).values
    print("median length scales", *np.round(length, 2))
    print("largest R-hat", round(float(tp.summary(tree).table["r_hat"].max()), 2))
