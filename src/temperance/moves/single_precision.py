"""Gradients in single precision, for trajectories that a value in double precision decides on.

A leapfrog step x <- x + a z, z <- z + b g(x) keeps volume and runs backwards whatever function of
the position g is. HMC's law rests on these two and on its acceptance, which is a ratio of
densities: a g that is a little off costs acceptance and nothing else. So g may be evaluated in
single precision, where a product of matrices takes half the time, as long as

    one function of the position gives every kick of a trajectory
    densities are compared in double precision

A gradient of single precision that is not finite, or belongs to a density that is not (a covariance
that rounding has made indefinite), is taken again in double: this, too, is a function of the
position alone. In a batch of chains or rungs both sides of that choice would be evaluated for all
of them, so that moves that kick like this run them one after another (`branches`).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from temperance._types import Position
from temperance.errors import ArgumentError
from temperance.ladders.ladder import Rung

# Where gradients are of single precision.
SINGLE = ("never", "hot", "always")

Kick = Callable[[Position], Float[Array, " d"]]


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
