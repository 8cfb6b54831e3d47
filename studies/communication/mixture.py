"""The warm-up of `sample` on two modes in ten dimensions, round by round.

0.3 N(m, I) + 0.7 N(-m, I) with |m| = 5, heated towards N(0, 6^2 I): ten standard deviations between
the modes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from temperance import Gaussian, Target, hmc
from temperance.engine.jobs import Blocks
from temperance.methods.plan import Plan
from temperance.problems.problem import densities_of

DIMENSION, NUM_CHAINS, NUM_WARMUP = 10, 4, 3000
# What the default call of `sample` chooses here.
NUM_RUNGS = 12


class Round(NamedTuple):
    """The betas of a round of warm-up, and the rejection that was seen at them."""

    number: int
    num_sweeps: int
    betas: tuple[float, ...]
    rejection: tuple[float, ...]


def log_density(x):
    center = jnp.full(DIMENSION, 5 / np.sqrt(DIMENSION))
    one = jnp.log(0.3) - 0.5 * jnp.sum((x - center) ** 2)
    other = jnp.log(0.7) - 0.5 * jnp.sum((x + center) ** 2)
    return jnp.logaddexp(one, other) - 0.5 * DIMENSION * jnp.log(2 * jnp.pi)


def warm_up(say) -> list[Round]:
    target = Target(log_density, base=Gaussian(np.zeros(DIMENSION), 36.0))
    plan = Plan(
        target,
        densities_of(target),
        "pt",
        hmc(),
        num_chains=NUM_CHAINS,
        num_warmup=NUM_WARMUP,
        num_draws=1,
        key=jax.random.key(0),
        num_rungs=NUM_RUNGS,
    )
    stage, carry = plan.first()
    found = []
    while stage.kind != "draw":
        say(f"warm-up on the mixture: round {stage.index + 1}, {stage.length} sweeps")
        betas, length = stage.betas, stage.length
        blocks = Blocks(plan.sampler_of(stage, carry), plan.stage_key(stage), 1, 16)
        carry, _ = blocks.learn(carry, 0, length)
        stage, carry = plan.after(stage, carry)
        found.append(Round(len(found) + 1, length, betas, stage.rejection))
    return found
