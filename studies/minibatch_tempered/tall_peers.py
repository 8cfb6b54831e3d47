"""Other people's samplers on tall data, each for some seconds: NUTS, HMCECS, SGLD with control variates.

All of them know the mode, in whose neighbourhood they start; HMCECS and SGLD need it for their control
variates. Compiling and warm-up are told apart. Times are CPU seconds of the process.
"""

import time
from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from tall_problem import DIMENSION, data, mode_and_root, tall

from temperance.problems.problem import densities_of

NUM_WARMUP = 500
BATCH = 1000
# Draws of one compiled block.
NUTS_BLOCK, SGLD_BLOCK, SGLD_THIN, ECS_BLOCK = 20, 200, 20, 50
# HMCECS exchanges one block of its subsample at a time.
ECS_BLOCKS = 100
# The step of SGLD times the largest curvature: a variance there is too large by half of it.
SGLD_STEP = 0.1


def drawn(
    block: Callable[[Any, Array], tuple[Any, Array]], state: Any, seed: int, seconds: float
) -> Any:
    """Draws (draw, d) of compiled blocks, with their wall and CPU seconds."""
    key = jax.random.key(seed)
    jax.block_until_ready(block(state, key))
    found, count = [], 0
    began, before = time.perf_counter(), time.process_time()
    while time.process_time() - before < seconds:
        state, positions = block(state, jax.random.fold_in(key, count))
        found.append(np.asarray(positions))
        count += 1
    wall, cpu = time.perf_counter() - began, time.process_time() - before
    return np.concatenate(found), {"wall": wall, "cpu": cpu, "num_draws": sum(map(len, found))}


def nuts(num_rows: int, seed: int, seconds: float) -> Any:
    """BlackJAX's NUTS with its window adaptation."""
    log_density = densities_of(tall(num_rows)).whole
    mode, root = mode_and_root(num_rows)
    began = time.process_time()
    key_start, key_warm = jax.random.split(jax.random.key(seed))
    start = mode + root @ jax.random.normal(key_start, (DIMENSION,))
    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, tuned), _ = jax.block_until_ready(adaptation.run(key_warm, start, num_steps=NUM_WARMUP))
    first = time.process_time() - began
    step = blackjax.nuts(log_density, **tuned).step

    @jax.jit
    def block(state: Any, key: Array) -> Any:
        def draw(state: Any, key: Array) -> Any:
            state, info = step(key, state)
            return state, (state.position, info.num_integration_steps)

        state, (positions, _) = jax.lax.scan(draw, state, jax.random.split(key, NUTS_BLOCK))
        return state, positions

    draws, timed = drawn(block, state, seed + 1, seconds)
    return draws, timed | {"warmup_cpu": first}


def sgld(num_rows: int, seed: int, seconds: float) -> Any:
    """BlackJAX's SGLD with control variates at the mode and a constant step."""
    gradients = blackjax.sgmcmc.gradients
    problem = tall(num_rows)
    rows, labels = (jnp.asarray(leaf) for leaf in data(num_rows))
    mode, root = mode_and_root(num_rows)

    def term(x: Array, row: Any) -> Array:
        logit = row[0] @ x
        return row[1] * logit - jax.nn.softplus(logit)

    began = time.process_time()
    estimator = gradients.grad_estimator(problem.log_prior, term, num_rows)
    estimator = gradients.control_variates(estimator, jnp.asarray(mode), (rows, labels))
    first = time.process_time() - began
    # The inverse Hessian's least eigenvalue is that of the direction with most curvature.
    size = SGLD_STEP * float(np.linalg.eigvalsh(root @ root.T)[0])
    kernel = blackjax.sgld(estimator)

    @jax.jit
    def block(x: Any, key: Array) -> Any:
        def draw(x: Any, key: Array) -> Any:
            def one(x: Array, key: Array) -> Any:
                key_rows, key_step = jax.random.split(key)
                chosen = jax.random.randint(key_rows, (BATCH,), 0, num_rows)
                return kernel.step(key_step, x, (rows[chosen], labels[chosen]), size), None

            x, _ = jax.lax.scan(one, x, jax.random.split(key, SGLD_THIN))
            return x, x

        return jax.lax.scan(draw, x, jax.random.split(key, SGLD_BLOCK))

    start = jnp.asarray(mode + root @ np.random.default_rng(seed).normal(size=DIMENSION))
    draws, timed = drawn(block, start, seed, seconds)
    return draws, timed | {"warmup_cpu": first}


def hmcecs(num_rows: int, seed: int, seconds: float) -> Any:
    """NumPyro's HMC with energy-conserving subsampling and its Taylor proxy."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import HMCECS, MCMC, NUTS

    rows, labels = (jnp.asarray(leaf) for leaf in data(num_rows))
    mode, root = mode_and_root(num_rows)

    def model() -> None:
        x = numpyro.sample("x", dist.Normal(jnp.zeros(DIMENSION), 1.0).to_event(1))
        with numpyro.plate("rows", num_rows, subsample_size=BATCH):
            some = numpyro.subsample(rows, event_dim=1)
            seen = numpyro.subsample(labels, event_dim=0)
            numpyro.sample("y", dist.Bernoulli(logits=some @ x), obs=seen)

    began = time.process_time()
    kernel = HMCECS(
        NUTS(model), num_blocks=ECS_BLOCKS, proxy=HMCECS.taylor_proxy({"x": jnp.asarray(mode)})
    )
    mcmc = MCMC(kernel, num_warmup=NUM_WARMUP, num_samples=ECS_BLOCK, progress_bar=False)
    start = mode + root @ np.random.default_rng(seed).normal(size=DIMENSION)
    mcmc.warmup(jax.random.key(seed), init_params={"x": jnp.asarray(start)})
    first = time.process_time() - began

    def block(state: Any, key: Array) -> Any:
        mcmc.post_warmup_state = state
        mcmc.run(key)
        return mcmc.last_state, mcmc.get_samples()["x"]

    draws, timed = drawn(block, mcmc.post_warmup_state, seed + 1, seconds)
    return draws, timed | {"warmup_cpu": first}
