"""Any density, with a Gaussian base that covers it: two modes ten standard deviations apart.

Both numbers at the end are known: the weight of the first mode is 0.3, and log Z is 0.
"""

import jax
import jax.numpy as jnp

import temperance as tp

DIMENSION, WEIGHT, OFFSET = 10, 0.3, 5 / 10**0.5


def log_density(x):
    """0.3 N(-offset, I) + 0.7 N(offset, I), normalised."""
    sides = jnp.stack([-jnp.sum((x + OFFSET) ** 2) / 2, -jnp.sum((x - OFFSET) ** 2) / 2])
    weights = jnp.log(jnp.array([WEIGHT, 1 - WEIGHT]))
    return jax.nn.logsumexp(sides + weights) - DIMENSION / 2 * jnp.log(2 * jnp.pi)


def problem() -> tp.Target:
    return tp.Target(log_density, base=tp.Gaussian(jnp.zeros(DIMENSION), 6.0**2))


if __name__ == "__main__":
    tree = tp.sample(problem(), num_draws=500, num_warmup=500, seed=1, progress=False)
    log_z, error = tp.log_evidence(tree)
    first = float((tree["posterior"]["x"].sum("x_dim_0") < 0).mean())
    print(f"weight of the first mode {first:.3f}, known 0.300")
    print(f"log Z {log_z:.3f} +- {error:.3f}, known 0")
    print(tp.summary(tree))
