"""BlackJAX: NUTS with window adaptation, four chains from the base. The plain sampler, which stays in its mode.

Set by hand: nothing but the numbers of draws, 1000 after 1000 of warm-up. Single precision, its default.
"""

import functools

import blackjax
import jax
import jax.numpy as jnp
import problem

PACKAGES = ["blackjax", "jax"]

NUM_CHAINS = 4
log_density = functools.partial(problem.log_target, logaddexp=jnp.logaddexp)
warmup = blackjax.window_adaptation(blackjax.nuts, log_density)


@jax.jit
@jax.vmap
def chain(key, position):
    key_warmup, key = jax.random.split(key)
    (state, parameters), _ = warmup.run(key_warmup, position, num_steps=1000)
    step = blackjax.nuts(log_density, **parameters).step

    def draw(state, key):
        state, _ = step(key, state)
        return state, state.position

    return jax.lax.scan(draw, state, jax.random.split(key, 1000))[1]


def run(seed):
    keys = jax.random.split(jax.random.key(seed), NUM_CHAINS)
    x = chain(keys, jnp.asarray(problem.draw_base(seed, NUM_CHAINS)))
    return problem.first_weight(x), float("nan"), float("nan")
