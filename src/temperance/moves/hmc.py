"""Hamiltonian Monte Carlo with fresh momentum, in the rung's isotropic coordinates.

With x = F y the momentum z of y is N(0, I) and a leapfrog step of size s is

    z <- z + (s/2) F' grad log pi(x);    x <- x + s F z;    z <- z + (s/2) F' grad log pi(x).

After L steps: log ratio = log pi(x*) - log pi(x) - |z*|^2/2 + |z|^2/2. The mass matrix is
(F F')^{-1}, and no linear system is solved. The step size is multiplied by a uniform factor in
[1 - jitter, 1 + jitter], drawn anew for every trajectory whatever the state, which breaks
resonances between the trajectory's length and the target's periods. In the isotropic coordinates
those periods are near 2 pi, so a tuned step is at most (pi/2) / L: longer ones turn back.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.errors import ArgumentError
from temperance.ladder import Rung
from temperance.move import AbstractMove, Info, Params, acceptance_of, colour, whiten
from temperance.moves.metropolis import checked_metric, checked_step
from temperance.noise import noise

DIVERGENCE = 1000.0


class Hmc(AbstractMove):
    """Leaves the rung's density invariant, and is reversible since the momentum is fresh."""

    num_steps: int = eqx.field(static=True)
    jitter: float = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=True)

    def longest_steps(self) -> tuple[float, ...]:
        """A Gaussian's trajectory is farthest after a quarter period, s L = pi / 2."""
        return (0.5 * math.pi / self.num_steps,)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, unravel = ravel_pytree(point.position)
        momentum, uniforms = noise(key, flat.size, 2, flat.dtype)
        size = params.step_size[0] * (1 + self.jitter * (2 * uniforms[1] - 1))

        def kick(momentum: Array, point: Point, time: Array) -> Array:
            return momentum + time * whiten(params.factor, rung.gradient(point))

        def leapfrog(carry: tuple[Array, Point], _: None) -> tuple[Any, None]:
            momentum, point = carry
            flat = ravel_pytree(point.position)[0] + size * colour(params.factor, momentum)
            point = rung.evaluate(unravel(flat), gradient=True)
            return (kick(momentum, point, size), point), None

        # Rolled up on purpose: flat, XLA fuses the steps and evaluates densities several times.
        (last, proposal), _ = jax.lax.scan(
            leapfrog, (kick(momentum, point, 0.5 * size), point), length=self.num_steps
        )
        last = kick(last, proposal, -0.5 * size)
        acceptance, log_ratio = acceptance_of(
            rung.log_density(proposal)
            - rung.log_density(point)
            - 0.5 * jnp.sum(last**2)
            + 0.5 * jnp.sum(momentum**2)
        )
        accepted = jnp.log(uniforms[0]) < log_ratio
        kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, point)
        diverging = log_ratio < -DIVERGENCE
        return kept, Info(acceptance[None], accepted, diverging, jnp.asarray(self.num_steps))


def hmc(
    num_steps: int = 5,
    step_size: float | None = None,
    metric: str = "diagonal",
    jitter: float = 0.2,
    target_acceptance: float = 0.8,
) -> Hmc:
    """HMC of `num_steps` leapfrog steps; `step_size=None` is tuned to `target_acceptance`.

    `metric` is "diagonal", "dense" or "unit": the covariance of the rung that warm-up learns.
    """
    if isinstance(num_steps, bool) or not isinstance(num_steps, int) or num_steps < 1:
        raise ArgumentError(f"num_steps: wanted a whole number of at least 1, got {num_steps!r}")
    if not 0 <= jitter < 1:
        raise ArgumentError(f"jitter: wanted a number in [0, 1), got {jitter!r}")
    if not 0 < target_acceptance < 1:
        raise ArgumentError(
            f"target_acceptance: wanted a number between 0 and 1, got {target_acceptance!r}"
        )
    size = checked_step(step_size, "step_size")
    return Hmc(
        num_steps=num_steps,
        jitter=float(jitter),
        step_sizes=(size,),
        metric=checked_metric(metric),
        target_acceptance=(target_acceptance,),
    )
