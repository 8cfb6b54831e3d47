"""BlackJAX: adaptive tempered SMC with an HMC kernel, the whole run compiled as one loop.

Set by hand: the number of particles, target ESS, HMC's step size and length (tuned on this problem for least error per
CPU second). Single precision, its default.
"""

import functools

import blackjax
import blackjax.smc.resampling
import jax
import jax.numpy as jnp
import problem

PACKAGES = ["blackjax", "jax"]

NUM_PARTICLES = 20_000
NUM_MOVES = 2
NUM_LEAPFROG = 4
STEP_SIZE = 1.0

algorithm = blackjax.adaptive_tempered_smc(
    problem.log_base,
    functools.partial(problem.log_likelihood, logaddexp=jnp.logaddexp),
    blackjax.hmc.build_kernel(),
    blackjax.hmc.init,
    {
        "step_size": jnp.array([STEP_SIZE]),
        "inverse_mass_matrix": jnp.ones((1, problem.NUM_DIMS)),
        "num_integration_steps": jnp.array([NUM_LEAPFROG]),
    },
    blackjax.smc.resampling.systematic,
    target_ess=0.6,
    num_mcmc_steps=NUM_MOVES,
)


@jax.jit
def climb(key):
    key_base, key = jax.random.split(key)
    particles = problem.BASE_SCALE * jax.random.normal(key_base, (NUM_PARTICLES, problem.NUM_DIMS))
    state = algorithm.init(particles)._replace(tempering_param=jnp.zeros(()))

    def step(carry):
        key, state, log_z, num_steps = carry
        key, key_step = jax.random.split(key)
        state, info = algorithm.step(key_step, state)
        return key, state, log_z + info.log_likelihood_increment, num_steps + 1

    _, state, log_z, num_steps = jax.lax.while_loop(
        lambda carry: carry[1].tempering_param < 1, step, (key, state, jnp.zeros(()), 0)
    )
    return state.particles, state.weights, log_z, num_steps


def run(seed):
    particles, weights, log_z, num_steps = climb(jax.random.key(seed))
    num_evaluations = int(num_steps) * NUM_PARTICLES * NUM_MOVES * NUM_LEAPFROG
    return problem.first_weight(particles, weights), float(log_z), num_evaluations
