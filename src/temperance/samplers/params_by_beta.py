"""Parameters of moves at any beta, from those tuned at the rungs of a ladder.

Between two rungs step sizes and standard deviations are interpolated in their logarithms, and
triangular factors as they are (a convex mix of triangles with positive diagonals is one).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Scalar
from temperance.moves.move import Params


def params_at(knots: Float[Array, " rungs"], params: Params, beta: Scalar) -> Params:
    """The parameters at `beta`; those of the nearest end beyond the knots."""
    if knots.shape[0] == 1:
        return jax.tree.map(lambda leaf: leaf[0], params)
    last = knots.shape[0] - 1
    # Knots are few: to compare with all of them is quicker than to search.
    low = jnp.clip(jnp.sum(knots <= beta) - 1, 0, last - 1)
    share = jnp.clip((beta - knots[low]) / (knots[low + 1] - knots[low]), 0.0, 1.0)

    def between(values: Array) -> Array:
        if values.ndim == 3:
            return (1 - share) * values[low] + share * values[low + 1]
        return jnp.exp((1 - share) * jnp.log(values[low]) + share * jnp.log(values[low + 1]))

    return Params(between(params.step_size), between(params.factor))
