"""Parallel tempering from its parts: a ladder, a move and the move's parameters.

A sampler built by hand is run as it is: nothing of it is tuned, so every rung's step size is ours
to say. Here hotter rungs are wider, and their steps longer.
"""

import jax
import jax.numpy as jnp
import numpy as np

import temperance as tp

DIMENSION = 2
BETAS = np.array([0.0, 0.02, 0.06, 0.15, 0.35, 0.65, 1.0])


def log_density(x):
    """Two unit Gaussians at -4 and 4 on every axis, with weights 1/4 and 3/4."""
    sides = jnp.stack([-jnp.sum((x + 4) ** 2) / 2, -jnp.sum((x - 4) ** 2) / 2])
    return jax.nn.logsumexp(sides + jnp.log(jnp.array([0.25, 0.75])))


def sampler(base: tp.Gaussian) -> tp.ParallelTempering:
    ladder = tp.GeometricLadder(base, log_density, BETAS, bridge=True, draw_hot=base.draw)
    # At power beta the bridge between N(0, 6^2) and a unit Gaussian is this wide.
    width = 1 / np.sqrt((1 - BETAS) / 6.0**2 + BETAS)
    params = tp.Params(
        step_size=np.full((len(BETAS), 1), 0.7),
        factor=np.repeat(width[:, None], DIMENSION, axis=1),
    )
    return tp.ParallelTempering(ladder, tp.hmc(num_steps=4), params, scheme="deo")


if __name__ == "__main__":
    base = tp.Gaussian(np.zeros(DIMENSION), 6.0**2)
    target = tp.Target(log_density, base=base)
    tree = tp.sample(target, sampler(base), num_draws=1000, num_warmup=100, progress=False)
    right = float((tree["posterior"]["x"].sum("x_dim_0") > 0).mean())
    log_z, error = tp.log_evidence(tree)
    print(f"weight of the right mode {right:.3f}, known 0.750")
    print(f"log Z {log_z:.3f} +- {error:.3f}, known {DIMENSION / 2 * np.log(2 * np.pi):.3f}")
    print("swaps accepted:", np.round(tree["tempering"]["swap_acceptance"].values, 2))
