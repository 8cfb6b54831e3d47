"""The warm-up of `sample` on two modes in ten dimensions, round by round.

0.3 N(m, I) + 0.7 N(-m, I) with |m| = 5, heated towards N(0, 6^2 I): ten standard deviations between
the modes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from temperance import Gaussian, Target, hmc
from temperance.engine.loop import Blocks
from temperance.engine.method import Call
from temperance.engine.options import parsed
from temperance.methods import METHODS
from temperance.problems.problem import densities_of
from temperance.warmup.rounds import WarmUp, with_rejection

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
    method = METHODS["pt"]
    call = Call(
        target, densities_of(target), hmc(), parsed("pt", method.options, {"num_rungs": NUM_RUNGS}),
        NUM_CHAINS, NUM_WARMUP, 1, jax.random.key(0), "pt",
    )  # fmt: skip
    shared, stage = method.prepare(call), WarmUp()
    place, carry = stage.enter(shared, None)
    found = []
    while place is not None:
        say(f"warm-up on the mixture: round {place.round + 1}, {place.length} sweeps")
        blocks = Blocks(stage.sampler(shared, place, carry), shared.key(place), 1, 16)
        carry, _ = blocks.learn(carry, 0, place.length)
        last, rejection = place, with_rejection(place.rungs, carry[1]).rejection
        place, carry = stage.after(shared, place, carry)
        found.append(Round(len(found) + 1, last.length, last.rungs.betas, rejection))
    return found
