"""The prior of the fast variables by themselves.

Where the prior is a product of one of the slow and one of the fast variables,

    log p(x1, x2) = log p(x1) + log p(x2),

its density at any fixed x1 is that of x2 up to a constant, and the fast leaves of its draws are
draws of x2. That it is a product is tried on a few draws; a prior may also say what the law of its
fast variables is, by an attribute `fast_base`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key, LogDensity, Scalar
from temperance.problems.slow_fast_vector import Fork
from temperance.errors import ArgumentError
from temperance.problems.problem import Problem, Target, densities_of

# Draws by which a product is told, and what rounding may leave of a difference, relatively.
TRIALS, ROUNDING = 4, 1e3


class PriorAlongFast(eqx.Module):
    """The prior's density along the fast variables, at one value of the slow ones."""

    log_prior: LogDensity
    draw_prior: Callable[[Key], Array]
    fork: Fork
    slow: Array

    def __call__(self, fast: Float[Array, " fast"]) -> Scalar:
        return self.log_prior(self.fork.whole(self.slow, fast))

    def draw(self, key: Key) -> Float[Array, " fast"]:
        return self.fork.split(self.draw_prior(key))[1]


def prior_of_fast(problem: Problem | Target, fork: Fork) -> Any:
    """A density of the fast variables with a sampler: their prior."""
    if not isinstance(problem, Problem):
        raise ArgumentError(
            "base: an ensemble of independent members draws them from the prior, and a Target has "
            "none: give base=independent(Gaussian(mean, covariance)), or base='exchangeable'"
        )
    known = getattr(problem.log_prior, "fast_base", None)
    if known is not None:
        return known
    densities = densities_of(problem)
    keys = jax.random.split(jax.random.key(0), TRIALS)
    slow, fast = jax.vmap(lambda key: fork.split(densities.draw(key)))(keys)
    assert densities.hot is not None
    prior = PriorAlongFast(densities.hot, densities.draw, fork, slow[0])
    along = [replace(prior, slow=one) for one in slow]
    table = np.stack([np.asarray(jax.vmap(one)(fast)) for one in along])
    apart = table - table[:1] - table[:, :1] + table[:1, :1]
    allowed = ROUNDING * float(jnp.finfo(fast.dtype).eps) * max(1.0, float(np.abs(table).max()))
    if not np.abs(apart).max() <= allowed:
        raise ArgumentError(
            "base: the prior of the fast variables depends on the slow ones, so that it cannot be "
            "the law of an ensemble's members: give base=independent(density) with a density of "
            "the fast variables alone, or base='exchangeable' or 'grid'"
        )
    return prior
