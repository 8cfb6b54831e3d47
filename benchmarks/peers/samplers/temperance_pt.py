"""Temperance: parallel tempering by the default call. Nothing was set by hand."""

import jax.numpy as jnp
import problem

import temperance as tp

PACKAGES = ["temperance", "jax"]

target = tp.Target(
    lambda position: problem.log_target(position["x"], jnp.logaddexp),
    base=tp.Gaussian(
        jnp.zeros(problem.NUM_DIMS), problem.BASE_SCALE**2 * jnp.eye(problem.NUM_DIMS)
    ),
    example={"x": jnp.zeros(problem.NUM_DIMS)},
)


def run(seed):
    tree = tp.sample(target, method="pt", seed=seed, progress=False)
    log_z, _ = tp.log_evidence(tree)
    return problem.first_weight(tree["posterior"]["x"].values), float(log_z), float("nan")
