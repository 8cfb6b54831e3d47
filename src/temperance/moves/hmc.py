"""Hamiltonian Monte Carlo with fresh momentum, in the rung's isotropic coordinates.

With x = F y the momentum z of y is N(0, I). A leapfrog step of size s is, in either order,

    velocity   z <- z + (s/2) F' g(x);   x <- x + s F z;   z <- z + (s/2) F' g(x)
    position   x <- x + (s/2) F z;   z <- z + s F' g(x);   x <- x + (s/2) F z

with g = grad log pi. After L steps: log ratio = log pi(x*) - log pi(x) - |z*|^2/2 + |z|^2/2. The
mass matrix is (F F')^{-1}, and no linear system is solved. Both orders are reversible and keep
volume, and on a Gaussian their energy errors have the same law. L velocity steps evaluate L
gradients, if that of the starting point is known. L position steps evaluate L gradients on the way
and one value at the end; they ask for no gradient at either end, so that a point that changes its
rung needs none.

**Gradients in single precision.** The law rests on volume, on the way back and on the ratio of
densities: a g that is a little off costs acceptance and nothing else. So g may be evaluated in
single precision, where a product of matrices takes half the time, as long as one function of the
position gives every kick of a trajectory and densities are compared in double precision. Position
steps are for that, since they keep no gradient. Where a density or gradient of single precision is
not finite (a covariance that rounding has made indefinite) the gradient is taken again in double:
this, too, is a function of the position alone.

The step size is multiplied by a uniform factor in [1 - jitter, 1 + jitter], drawn anew for every
trajectory whatever the state, which breaks resonances between the trajectory's length and the
target's periods. In the isotropic coordinates those periods are near 2 pi, so a tuned step is at
most (pi/2) / L: longer ones turn back.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from temperance._types import Key, Point, Position
from temperance.errors import ArgumentError, unknown_name
from temperance.ladders.ladder import Rung
from temperance.moves.accept import choose, decide
from temperance.moves.move import (
    AbstractMove,
    Info,
    Params,
    checked_metric,
    checked_step,
    colour,
    whiten,
)
from temperance.problems.checks import check_count
from temperance.programs.random_numbers import normals_and_uniforms

DIVERGENCE = 1000.0
INTEGRATORS = ("velocity", "position")
# Where gradients are of single precision.
SINGLE = ("never", "hot", "always")

Kick = Callable[[Position], Float[Array, " d"]]


class Hmc(AbstractMove):
    """Leaves the rung's density invariant, and is reversible since the momentum is fresh.

    From a point that carries no gradient the order of a step is "position", whatever was asked.
    """

    num_steps: int = eqx.field(static=True)
    jitter: float = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    uses_gradient: bool = eqx.field(static=True, default=True)
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    single: str = eqx.field(static=True, default="never")

    references = ("duane1987", "neal2011")

    def sees_gradients(self) -> bool:
        return True

    @property
    def branches(self) -> bool:
        # A batch of chains would take both gradients for each of them.
        # Rungs of nested subsamples, where alone it is "hot", are never a batch.
        return self.single == "always"

    def longest_steps(self) -> tuple[float, ...]:
        """A Gaussian's trajectory is farthest after a quarter period, s L = pi / 2."""
        return (0.5 * math.pi / self.num_steps,)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, _ = ravel_pytree(point.position)
        momentum, uniforms = normals_and_uniforms(key, flat.size, 2, flat.dtype)
        size = params.step_size[0] * (1 + self.jitter * (2 * uniforms[1] - 1))
        bare = point.gradients is None
        follow = self._position_steps if bare else self._velocity_steps
        proposal, last, slope = follow(point, momentum, size, rung, params)
        log_density = rung.log_density(proposal)
        kinetic = 0.5 * jnp.sum(last**2), 0.5 * jnp.sum(momentum**2)
        log_ratio = log_density - rung.log_density(point) - kinetic[0] + kinetic[1]
        decision = decide(uniforms[0], log_ratio)
        kept = choose(decision.accepted, proposal, point)
        return kept, Info(
            decision.probability[None],
            decision.accepted,
            decision.log_ratio < -DIVERGENCE,
            jnp.asarray(self.num_steps + int(bare)),
            jnp.asarray(int(bare)),
            ~jnp.isfinite(log_density),
            slope,
        )

    def _velocity_steps(
        self, point: Point, momentum: Array, size: Array, rung: Rung, params: Params
    ) -> tuple[Point, Array, None]:
        _, unravel = ravel_pytree(point.position)

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
        return proposal, kick(last, proposal, -0.5 * size), None

    def _position_steps(
        self, point: Point, momentum: Array, size: Array, rung: Rung, params: Params
    ) -> tuple[Point, Array, Array]:
        """The end, its momentum, and the gradient half a step from the start."""
        flat, unravel = ravel_pytree(point.position)
        kick = kicks(rung, self.single)

        def drift(flat: Array, momentum: Array, time: Array) -> Array:
            return flat + time * colour(params.factor, momentum)

        def leapfrog(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            momentum, flat, kept = carry
            slope = kick(unravel(flat))
            momentum = momentum + size * whiten(params.factor, slope)
            return momentum, drift(flat, momentum, size), jnp.where(i == 0, slope, kept)

        start = momentum, drift(flat, momentum, 0.5 * size), jnp.zeros_like(flat)
        last, flat, slope = jax.lax.fori_loop(0, self.num_steps, leapfrog, start)
        end = rung.evaluate(unravel(drift(flat, last, -0.5 * size)), gradient=False)
        return end, last, slope


def hmc(
    num_steps: int = 5,
    step_size: float | None = None,
    metric: str = "diagonal",
    jitter: float = 0.2,
    target_acceptance: float = 0.8,
    integrator: str = "velocity",
    single: str = "never",
) -> Hmc:
    """HMC of `num_steps` leapfrog steps; `step_size=None` is tuned to `target_acceptance`.

    `metric` is "diagonal", "dense" or "unit": the covariance of the rung that warm-up learns.
    `integrator` is the order of a step; on nested subsamples it is always "position". `single` says
    where gradients are evaluated in single precision, at half the price and with the same law:
    "hot" is every rung of nested subsamples but the target, "always" is everywhere, in position
    order and one chain after another. Densities stay in double precision.
    """
    if single not in SINGLE:
        raise unknown_name("single", single, SINGLE)
    if integrator not in INTEGRATORS:
        raise unknown_name("integrator", integrator, INTEGRATORS)
    if not 0 <= jitter < 1:
        raise ArgumentError(f"jitter: wanted a number in [0, 1), got {jitter!r}")
    if not 0 < target_acceptance < 1:
        raise ArgumentError(
            f"target_acceptance: wanted a number between 0 and 1, got {target_acceptance!r}"
        )
    size = checked_step(step_size, "step_size")
    return Hmc(
        num_steps=check_count("num_steps", num_steps, 1),
        jitter=float(jitter),
        step_sizes=(size,),
        metric=checked_metric(metric),
        target_acceptance=(target_acceptance,),
        uses_gradient=integrator == "velocity" and single != "always",
        single=single,
    )


def kicks(rung: Rung, single: str) -> Kick:
    """The rung's gradient, as a trajectory uses it."""
    if single == "never" or (single == "hot" and not rung.is_hot):
        return rung.slope
    light = in_single(rung)

    def slope(position: Position) -> Float[Array, " d"]:
        flat, unravel = ravel_pytree(in_single(position))
        try:
            value, found = jax.value_and_grad(lambda vector: light(unravel(vector)))(flat)
        except TypeError as error:
            # The same density has been evaluated in double precision already.
            raise ArgumentError(
                f"single={single!r}: the density cannot be evaluated in single precision. Arrays "
                "of double precision that it closes over, or that a loop starts from, have to come "
                "in through the position or the data; otherwise use single='never'. JAX says: "
                f"{error}"
            ) from error
        found = found.astype(jnp.result_type(float))
        good = jnp.isfinite(value) & jnp.all(jnp.isfinite(found))
        return jax.lax.cond(good, lambda: found, lambda: rung.slope(position))

    return slope


def in_single(tree: Any) -> Any:
    """The same, with every array of double precision in single."""

    def halved(leaf: Any) -> Any:
        is_double = isinstance(leaf, jax.Array | np.ndarray) and leaf.dtype == np.float64
        return leaf.astype(np.float32) if is_double else leaf

    return jax.tree.map(halved, tree)
