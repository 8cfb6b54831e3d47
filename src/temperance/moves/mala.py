"""The Metropolis-adjusted Langevin algorithm.

    x* = x + (s^2/2) F F' grad log pi(x) + s F z,      z ~ N(0, I).

Seen from x*, the noise that leads back is z* = -(z + (s/2) F'(g + g*)), so that

    log ratio = log pi(x*) - log pi(x) - |z*|^2/2 + |z|^2/2.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung
from temperance.moves.accept import choose, decide
from temperance.moves.langevin_proposal import log_way_back, proposed
from temperance.moves.move import AbstractMove, Info, Params, checked_metric, checked_step, slope_at
from temperance.programs.random_numbers import normals_and_uniforms


class Mala(AbstractMove):
    """Leaves the rung's density invariant, and is reversible, for any step size and factor."""

    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(0.574,))
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=True)

    references = ("roberts1996",)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, unravel = ravel_pytree(point.position)
        forth, uniform = normals_and_uniforms(key, flat.size, 1, flat.dtype)
        gradient = slope_at(rung, point)
        end = proposed(flat, forth, gradient, params)
        proposal = rung.evaluate(unravel(end), gradient=True)
        way_back = log_way_back(forth, gradient, slope_at(rung, proposal), params)
        log_density = rung.log_density(proposal)
        decision = decide(uniform[0], log_density - rung.log_density(point) + way_back)
        kept = choose(decision.accepted, proposal, point)
        bare = point.gradients is None  # then both ends are evaluated for it, and the value apart
        return kept, Info(
            decision.probability[None],
            decision.accepted,
            jnp.asarray(False),
            jnp.asarray(3 if bare else 1),
            jnp.asarray(1 if bare else 0),
            ~jnp.isfinite(log_density),
            gradient if bare else None,
        )


def mala(step_size: float | None = None, metric: str = "diagonal") -> Mala:
    """Langevin steps; `step_size=None` is tuned in warm-up to accept 57 % of proposals."""
    size = checked_step(step_size, "step_size")
    return Mala(step_sizes=(size,), metric=checked_metric(metric))
