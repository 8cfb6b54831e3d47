"""Temperance: sequential Monte Carlo by the default call. Set by hand: 4000 particles in each of its four islands
(num_draws), where the default is 1000, for about the errors of parallel tempering; nothing else."""

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
    tree = tp.sample(target, method="smc", num_draws=4000, seed=seed, progress=False)
    log_z, _ = tp.log_evidence(tree)
    weight = problem.first_weight(tree["posterior"]["x"].values)
    return weight, float(log_z), int(tree.attrs["num_evaluations"])
