"""BlackJAX: adaptive tempered SMC with an HMC kernel, the whole run compiled as one loop.

10,000 particles, target ESS 0.5, five moves of ten leapfrog steps at each temperature. The metric is the particles'
variances, and the step size follows the acceptance rate to 0.7. Outside of the support the log likelihood is -1e10 in
place of -inf, without which no first temperature keeps half of the particles. It gives no warnings.
"""

import blackjax
import blackjax.smc.resampling
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

PACKAGES = ["blackjax", "jax"]

NUM_PARTICLES = 10_000
NUM_MOVES = 5
NUM_LEAPFROG = 10
TARGET_ESS = 0.5
ACCEPTANCE = 0.7
MOST_STEPS = 1000
LOWEST = -1e10


def run(case, seed):
    def log_likelihood(x):
        return jnp.maximum(case.log_likelihood(x), LOWEST)

    def step(carry):
        key, state, log_z, step_size, num_steps = carry
        key, key_step = jax.random.split(key)
        mean = jnp.sum(state.weights[:, None] * state.particles, axis=0)
        variances = jnp.sum(state.weights[:, None] * (state.particles - mean) ** 2, axis=0)
        algorithm = blackjax.adaptive_tempered_smc(
            case.base,
            log_likelihood,
            blackjax.hmc.build_kernel(),
            blackjax.hmc.init,
            {
                "step_size": step_size[None],
                "inverse_mass_matrix": variances[None],
                "num_integration_steps": jnp.array([NUM_LEAPFROG]),
            },
            blackjax.smc.resampling.systematic,
            target_ess=TARGET_ESS,
            num_mcmc_steps=NUM_MOVES,
        )
        state, info = algorithm.step(key_step, state)
        rate = jnp.mean(jnp.nan_to_num(info.update_info.acceptance_rate))
        step_size = step_size * jnp.exp(2 * (rate - ACCEPTANCE))
        return key, state, log_z + info.log_likelihood_increment, step_size, num_steps + 1

    @jax.jit
    def climb(key):
        key_base, key = jax.random.split(key)
        particles = jax.vmap(case.base.draw)(jax.random.split(key_base, NUM_PARTICLES))
        state = blackjax.smc.tempered.init(particles)._replace(tempering_param=jnp.zeros(()))
        carry = (key, state, jnp.zeros(()), jnp.asarray(0.7 * case.dimension**-0.25), 0)
        return jax.lax.while_loop(
            lambda carry: (carry[1].tempering_param < 1) & (carry[4] < MOST_STEPS), step, carry
        )

    _, state, log_z, _, num_steps = climb(jax.random.key(seed))
    if not state.tempering_param >= 1:
        raise RuntimeError(f"at {float(state.tempering_param)} after {int(num_steps)} temperatures")
    inside = case.event(jax.device_get(state.particles))
    return {"probability": float(jax.device_get(state.weights) @ inside), "log_z": float(log_z)}
