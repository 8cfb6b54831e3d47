"""TensorFlow Probability: replica exchange with HMC, on the last JAX it imports with; log Z by stepping stones.

Set by hand: the ladder, HMC's step size at each rung, the numbers of chains and steps (tuned on this problem for least
error per CPU second); swaps are even-odd rather than the default random ones. Single precision, its default.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import problem
from tensorflow_probability.substrates import jax as tfp

PACKAGES = ["tensorflow-probability", "jax"]

NUM_CHAINS = 64
NUM_RUNGS = 8
NUM_LEAPFROG = 3
NUM_WARMUP = 200
NUM_DRAWS = 1000

# Powers are listed from the target down to the base, as the kernel wants them. Between them the precision of a mode
# goes from 1/36 to 1: geometric in the precision.
precision = np.geomspace(1, problem.BASE_SCALE**-2, NUM_RUNGS)
betas = (precision - precision[-1]) / (1 - precision[-1])
step_size = (0.6 / np.sqrt(precision))[:, None, None]


@jax.jit
def chains(key, positions):
    kernel = tfp.mcmc.ReplicaExchangeMC(
        target_log_prob_fn=None,
        untempered_log_prob_fn=problem.log_base,
        tempered_log_prob_fn=functools.partial(problem.log_likelihood, logaddexp=jnp.logaddexp),
        inverse_temperatures=jnp.asarray(betas, jnp.float32),
        make_kernel_fn=lambda log_density: tfp.mcmc.HamiltonianMonteCarlo(
            log_density,
            step_size=jnp.asarray(step_size, jnp.float32),
            num_leapfrog_steps=NUM_LEAPFROG,
        ),
        swap_proposal_fn=tfp.mcmc.even_odd_swap_proposal_fn(1.0),
    )
    return tfp.mcmc.sample_chain(
        NUM_DRAWS,
        positions,
        kernel=kernel,
        num_burnin_steps=NUM_WARMUP,
        trace_fn=lambda _, results: -results.potential_energy,
        seed=key,
    )


def run(seed):
    x, log_likelihoods = chains(
        jax.random.key(seed), jnp.asarray(problem.draw_base(seed, NUM_CHAINS))
    )
    increments = -np.diff(betas)[:, None] * np.moveaxis(np.asarray(log_likelihoods, float), 1, 0)[
        1:
    ].reshape(NUM_RUNGS - 1, -1)
    log_z = (np.logaddexp.reduce(increments, axis=1) - np.log(increments.shape[1])).sum()
    num_evaluations = (NUM_WARMUP + NUM_DRAWS) * NUM_CHAINS * NUM_RUNGS * NUM_LEAPFROG
    return problem.first_weight(x), float(log_z), num_evaluations
