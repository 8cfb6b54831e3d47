"""How many leapfrog steps a second, and what bounds them.

A leapfrog step of C chains evaluates each chain's posterior and its gradient once: 4 x (50 x 200 + 200 x 200 +
200 x 784) multiplications and additions forward and twice that backward, 827,200 x C in all with the gradient of z
alone. Five loops are timed:

    bare    leapfrog steps of the posteriors and nothing else, as one compiled loop
    values  the same, which also adds up the log densities that it passes, as a sampler has to know them
    matmul  its six matrix products alone, without anything between them
    gibbs   Gibbs continuous tempering as the library runs it
    ais     anneals as the library runs them

At a thousand chains the time goes into starting kernels, and at many into matrix products.
"""

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from iwae import NUM_STEPS, STEP, anneal, run_chains
from iwae_model import Images, Networks, OneImage, generated, over_images

COUNTS = (1000, 16_000, 128_000)
BARE_STEPS = 2000


def work_of(networks: Networks) -> float:
    """Floating-point operations of one leapfrog step of one chain: forward, and back to z."""
    return float(sum(4 * matrix.size for matrix, _ in networks.decoder))


def bare_loop(num_steps: int, *, values: bool) -> Any:
    """Leapfrog steps of the posteriors alone."""

    def one(image: OneImage, z: Any, p: Any, sum_: Any) -> Any:
        value, slope = jax.value_and_grad(image.posterior)(z)
        p = p + STEP * slope
        return z + 0.01 * p, p, sum_ + value if values else sum_

    @eqx.filter_jit
    def run(networks: Networks, images: Images, z: Any) -> Any:
        step = over_images(images, one, networks)
        start = z, jnp.zeros_like(z), jnp.zeros_like(z[:, 0])
        return jax.lax.fori_loop(0, num_steps, lambda _, s: step(*s), start)

    return run


def products(num_steps: int) -> Any:
    """The matrix products of a step, forward and back, one after another."""

    @eqx.filter_jit
    def run(networks: Networks, images: Images, z: Any) -> Any:
        del images  # the others have them

        def step(_: Any, z: Any) -> Any:
            for matrix, _offset in networks.decoder:
                z = z @ matrix
            for matrix, _offset in reversed(networks.decoder):
                z = z @ matrix.T
            return z

        return jax.lax.fori_loop(0, num_steps, step, z)

    return run


def timed(function: Any, *args: Any, times: int = 3) -> float:
    """The shortest of some runs, after one that compiles."""
    jax.block_until_ready(function(*args))
    found = []
    for _ in range(times):
        began = time.perf_counter()
        jax.block_until_ready(function(*args))
        found.append(time.perf_counter() - began)
    return min(found)


def throughput(networks: Networks, name: str, given: Any) -> list[dict[str, Any]]:
    """One row for each loop and number of chains."""
    rows = []
    few = generated(networks, jax.random.key(0), given.num_images, 100)
    for count in COUNTS if given.num_images == COUNTS[0] else (given.num_images,):
        images = jax.tree.map(lambda leaf, c=count: jnp.resize(leaf, (c, *leaf.shape[1:])), few)
        steps = max(200, BARE_STEPS * COUNTS[0] // count) if count >= COUNTS[0] else 20
        loops = {
            "matmul": products(steps),
            "bare": bare_loop(steps, values=False),
            "values": bare_loop(steps, values=True),
        }
        seconds = {name: timed(f, networks, images, images.mean) for name, f in loops.items()}
        transitions = max(10, steps // NUM_STEPS)
        key = jax.random.key(1)
        advance, state = run_chains(networks, images, "gibbs", key, NUM_STEPS, transitions)
        seconds["gibbs"] = timed(advance, networks, images, state, key)
        run = anneal(transitions + 2, both=False)
        seconds["ais"] = timed(run, networks, images, key)
        for loop, spent in seconds.items():
            done = steps if loop in loops else transitions * NUM_STEPS
            rate = done / spent
            rows.append(
                {
                    "model": name, "loop": loop, "chains": count, "steps_per_second": rate,
                    "tflops": rate * count * work_of(networks) / 1e12,
                    "device": jax.devices()[0].device_kind,
                }
            )  # fmt: skip
            print(rows[-1], flush=True)
    return rows
