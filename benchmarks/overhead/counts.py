"""How often a sweep evaluates the likelihood of all rows, and how often its gradient.

A callback on the host counts evaluations that really run, whatever the program says: a compiler
that computes a density twice, or a loop that evaluates where it need not, shows.
"""

from collections import Counter

import jax
import numpy as np
from programs import NUM_LEAPFROG, NUM_RUNGS, tempered

from temperance.engine.loop import Blocks
from temperance.ladders.geometric import GeometricLadder
from temperance.samplers.parallel.tempering import ParallelTempering

NUM_CHAINS, NUM_SWEEPS = 4, 25


def counting(density, counts: Counter):
    """`density`, with a count of points at which its value, and its gradient, is computed."""

    def tick(kind):
        def call(x):
            counts[kind] += int(np.prod(np.shape(x)[:-1], dtype=int))
            return np.zeros(np.shape(x)[:-1], np.int32)

        return call

    def tap(kind, x):
        zero = jax.ShapeDtypeStruct((), np.int32)
        return jax.pure_callback(tick(kind), zero, x, vmap_method="broadcast_all")

    @jax.custom_vjp
    def counted(x):
        return density(x) + tap("values", x)

    def forward(x):
        value, pull = jax.vjp(density, x)
        return value + tap("values", x), (pull, x)

    def backward(residual, cotangent):
        pull, x = residual
        return (pull(cotangent)[0] + tap("gradients", x),)

    counted.defvjp(forward, backward)
    return counted


def evaluations(exact_hottest: bool) -> dict[str, float]:
    """Points a sweep and chain at which the likelihood is computed, measured and as needed.

    With L leapfrog steps at each of K rungs that is K L, with a gradient each time. A hottest rung
    that is drawn afresh takes one instead of L. Swaps take none.
    """
    setting = tempered(NUM_CHAINS, exact_hottest)
    old, counts = setting.sampler.ladder, Counter()
    ladder = GeometricLadder(
        old.hot, counting(old.cold, counts), np.asarray(old.betas), draw_hot=old.draw_hot
    )
    sampler = ParallelTempering(ladder, setting.sampler.move, setting.sampler.params)
    blocks = Blocks(sampler, jax.random.key(0), 1, NUM_SWEEPS)
    state = jax.block_until_ready(jax.vmap(sampler.init_replicas)(setting.start))

    def after(num_sweeps: int) -> Counter:
        counts.clear()
        blocks.draw((state, None), 0, num_sweeps)
        jax.effects_barrier()
        return Counter(counts)

    short, long = after(1), after(NUM_SWEEPS)
    share = NUM_CHAINS * (NUM_SWEEPS - 1)
    needed = (NUM_RUNGS - 1) * NUM_LEAPFROG + 1 if exact_hottest else NUM_RUNGS * NUM_LEAPFROG
    return {
        "values": (long["values"] - short["values"]) / share,
        "gradients": (long["gradients"] - short["gradients"]) / share,
        "needed": needed,
    }
