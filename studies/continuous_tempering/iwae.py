"""Log marginal likelihoods of generated images under autoencoders: figure 4 of the paper.

    python studies/continuous_tempering/iwae.py --data FOLDER                       # an accelerator
    python studies/continuous_tempering/iwae.py --data FOLDER --throughput          # leapfrog steps a second
    python studies/continuous_tempering/iwae.py --data FOLDER --out small --small   # a few images, any machine

For each model 1000 images are drawn. The posterior of each image is a density of its own, with a base of its own from
the encoder, and all of them are sampled at once. The sum over images of log p(x) is estimated

    ais     by one anneal for each image, through 50 to 2000 betas (sigmoidally spaced)
    st      by simulated tempering over 1000 betas, Rao-Blackwellised
    gibbs   by Gibbs continuous tempering
    joint   by joint continuous tempering

as run time grows, ten times each, between bounds of bidirectional Monte Carlo: 16 anneals there and 16 back for each
image, through 10,000 betas. All moves are HMC of the same length, with the encoder's standard deviations for scales.
Of the library this needs what runs beside JAX and equinox alone.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from iwae_model import NAMES, Images, Networks, OneImage, generated, load, made, over_images
from iwae_results import FOLDER, keep_model, keep_speed

from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.joint import JointLadder
from temperance.moves.hmc import hmc
from temperance.moves.move import Params
from temperance.samplers.annealing.importance import AnnealedImportance
from temperance.samplers.continuous import GibbsTempering, JointTempering
from temperance.samplers.simulated import SimulatedTempering

NUM_IMAGES, NUM_RUNS, NUM_STEPS = 1000, 10, 10
# In standard deviations of the base; of the control in the joint chain its own.
STEP, JOINT_STEP, CONTROL_SCALE = 0.35, 0.3, 1.8
ANNEALS = (50, 100, 200, 500, 1000, 2000)
ST_RUNGS = 1000
NUM_BLOCKS, BLOCK = 20, 100
BOUND_BETAS, BOUND_RUNS = 10_000, 16
CHAINS = ("gibbs", "joint", "st")


def sigmoidal(count: int, steepness: float = 4.0) -> np.ndarray:
    """Betas from 0 to 1, dense at both ends."""
    values = 1 / (1 + np.exp(-steepness * np.linspace(-1, 1, count)))
    return (values - values[0]) / (values[-1] - values[0])


def bridge(base: Any, posterior: Any, betas: np.ndarray) -> GeometricLadder:
    return GeometricLadder(base, posterior, betas, bridge=True, draw_hot=base.draw)


def params_of(base: Any, num_rungs: int) -> Params:
    dtype = base.std.dtype
    factor = jnp.broadcast_to(base.std, (num_rungs, *base.std.shape))
    return Params(jnp.full((num_rungs, 1), STEP, dtype), factor)


def chain_of(method: str, image: OneImage, num_steps: int) -> Any:
    """The sampler of one image."""
    move = hmc(num_steps)
    base, posterior, log_zeta, _ = image
    if method == "gibbs":
        ladder = bridge(base, posterior, np.array([0.0, 1.0]))
        profile = jnp.stack([jnp.zeros_like(log_zeta), log_zeta])
        return GibbsTempering(ladder, move, params_of(base, 2), profile)
    if method == "st":
        betas = np.linspace(0, 1, ST_RUNGS)
        weights = -jnp.asarray(betas, base.std.dtype) * log_zeta
        ladder = bridge(base, posterior, betas)
        # Every rung has the same parameters: one row of them, looked up by any rung.
        return SimulatedTempering(ladder, move, params_of(base, 1), weights)
    ladder = JointLadder(base, posterior, log_zeta, True)
    scale = jnp.asarray([CONTROL_SCALE], base.std.dtype)
    factor = jnp.concatenate([base.std, scale])[None]
    size = jnp.full((1, 1), JOINT_STEP, base.std.dtype)
    return JointTempering(ladder, move, Params(size, factor))


def run_chains(
    networks: Networks, images: Images, method: str, key: Any, num_steps: int, block: int
) -> tuple[Callable[..., Any], Any]:
    """A compiled block of steps of every image's chain, and the chains' start."""

    def start(image: OneImage, key: Any) -> Any:
        return chain_of(method, image, num_steps).init(image.base.draw(key))

    def one(image: OneImage, key: Any, state: Any) -> tuple[Any, Any]:
        sampler = chain_of(method, image, num_steps)
        state, info = sampler.step(key, state)
        trail = sampler.trail(state)
        return state, (trail["log_weight"], trail["log_weight_base"], info.acceptance.mean())

    num = images.pixels.shape[0]

    # The networks are arguments: as constants they would be folded into the program.
    @eqx.filter_jit
    def advance(networks: Networks, images: Images, state: Any, key: Any) -> tuple[Any, Any]:
        def step(carry: Any, key: Any) -> tuple[Any, None]:
            state, one_, zero, accepted = carry
            keys = jax.random.split(key, num)
            state, (up, down, rate) = over_images(images, one, networks)(keys, state)
            sums = jnp.logaddexp(one_, up), jnp.logaddexp(zero, down), accepted + rate.mean()
            return (state, *sums), None

        nothing = jnp.full_like(images.log_zeta, -jnp.inf)
        carry = state, nothing, nothing, jnp.zeros((), nothing.dtype)
        (state, *sums), _ = jax.lax.scan(step, carry, jax.random.split(key, block))
        return state, sums

    first = eqx.filter_jit(over_images(images, start, networks))(jax.random.split(key, num))
    return advance, first


def chain_curve(
    networks: Networks, images: Images, method: str, seed: int, given: "Settings"
) -> Iterator[dict[str, Any]]:
    """After each block the run time and the sum of the estimates of log p(x)."""
    key = jax.random.fold_in(jax.random.key(seed), CHAINS.index(method))
    key_start, key_try, key_run = jax.random.split(key, 3)
    advance, state = run_chains(networks, images, method, key_start, NUM_STEPS, given.block)
    jax.block_until_ready(advance(networks, images, state, key_try))
    one = zero = np.full(images.log_zeta.shape, -np.inf)
    seconds = 0.0
    for number in range(given.num_blocks):
        began = time.perf_counter()
        state, sums = advance(networks, images, state, jax.random.fold_in(key_run, number))
        jax.block_until_ready(sums)
        seconds += time.perf_counter() - began
        up, down, accepted = (np.asarray(value, float) for value in sums)
        one, zero = np.logaddexp(one, up), np.logaddexp(zero, down)
        yield {
            "method": method, "seed": seed, "transitions": (number + 1) * given.block,
            "seconds": seconds, "acceptance": float(accepted / given.block),
            # Counted from log zeta, for these weights of ST too.
            "total": float(np.sum(np.asarray(images.log_zeta, float) + one - zero)),
        }  # fmt: skip


def anneal(count: int, *, both: bool) -> Callable[..., Any]:
    """Compiled anneals through `count` betas of every image, there or there and back."""
    betas = sigmoidal(count)

    def one(image: OneImage, key: Any) -> Any:
        ladder = bridge(image.base, image.posterior, betas)
        back = (lambda _: image.exact) if both else None
        knots = jnp.array([0.0, 1.0], image.exact.dtype)
        params = params_of(image.base, 2)
        sampler = AnnealedImportance(ladder, hmc(NUM_STEPS), params, knots, back)
        state, info = sampler.step(key, sampler.init(image.exact))
        return state.log_weight, state.log_weight_reverse, info.acceptance.mean()

    @eqx.filter_jit
    def run(networks: Networks, images: Images, key: Any) -> Any:
        keys = jax.random.split(key, images.pixels.shape[0])
        return over_images(images, one, networks)(keys)

    return run


def anneal_points(networks: Networks, images: Images, given: "Settings") -> Iterator[dict]:
    """One estimate for each number of betas and each seed."""
    for count in given.anneals:
        run = anneal(count, both=False)
        jax.block_until_ready(run(networks, images, jax.random.key(2**31 - 1)))
        for seed in range(given.num_runs):
            began = time.perf_counter()
            there, _, accepted = jax.block_until_ready(
                run(networks, images, jax.random.fold_in(jax.random.key(seed), count))
            )
            yield {
                "method": "ais", "seed": seed, "transitions": count - 2,
                "seconds": time.perf_counter() - began, "acceptance": float(accepted.mean()),
                "total": float(np.sum(np.asarray(there, float))),
            }  # fmt: skip


def bounds(networks: Networks, images: Images, given: "Settings") -> dict[str, Any]:
    """Stochastic bounds of the sum of log p(x), from below and from above."""
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf, given.bound_runs, axis=0), images)
    run = anneal(given.bound_betas, both=True)
    began = time.perf_counter()
    there, back, accepted = jax.block_until_ready(run(networks, many, jax.random.key(7)))
    shape = (-1, given.bound_runs)
    low = np.logaddexp.reduce(np.asarray(there, float).reshape(shape), axis=1)
    high = -np.logaddexp.reduce(np.asarray(back, float).reshape(shape), axis=1)
    log_count = np.log(given.bound_runs)
    return {
        "lower": float(np.sum(low - log_count)), "upper": float(np.sum(high + log_count)),
        "acceptance": float(accepted.mean()), "seconds": time.perf_counter() - began,
        "log_zeta": float(np.sum(np.asarray(images.log_zeta, float))),
        "num_images": int(images.pixels.shape[0]),
    }  # fmt: skip


class Settings(argparse.Namespace):
    """How much of everything."""

    num_images: int = NUM_IMAGES
    num_runs: int = NUM_RUNS
    anneals: tuple[int, ...] = ANNEALS
    num_blocks: int = NUM_BLOCKS
    block: int = BLOCK
    bound_betas: int = BOUND_BETAS
    bound_runs: int = BOUND_RUNS


def small() -> Settings:
    """A few images and short runs."""
    return Settings(
        num_images=10, num_runs=2, anneals=(20, 50), num_blocks=3, block=10, bound_betas=100,
        bound_runs=4,
    )  # fmt: skip


def study(networks: Networks, given: Settings, name: str) -> dict[str, Any]:
    """Everything about one model."""
    images = generated(networks, jax.random.key(NAMES.index(name)), given.num_images)
    found: dict[str, Any] = {"model": name, "device": jax.devices()[0].device_kind}
    found["bounds"] = bounds(networks, images, given)
    print(name, found["bounds"], flush=True)
    rows = list(anneal_points(networks, images, given))
    for method in CHAINS:
        for seed in range(given.num_runs):
            rows += chain_curve(networks, images, method, seed, given)
        print(name, rows[-1], flush=True)
    return found | {"rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, help="the folder that has iwae/; without it, networks nobody trained"
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder of the tables")
    parser.add_argument("--models", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--throughput", action="store_true")
    asked = parser.parse_args()
    given = small() if asked.small else Settings()
    for name in asked.models:
        networks = load(asked.data / "iwae" / name) if asked.data else made(jax.random.key(0))
        if asked.throughput:
            from iwae_throughput import throughput

            keep_speed(throughput(networks, name, given), asked.out)
        else:
            keep_model(study(networks, given, name), asked.out)


if __name__ == "__main__":
    main()
