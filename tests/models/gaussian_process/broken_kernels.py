"""A broken twin of a kernel, named after its slip."""

import jax.numpy as jnp

from temperance.models.gaussian_process.kernels import Matern32, Squares


class Matern32WithTheSlopeOfMatern52(Matern32):
    """The factor of the gradient belongs to another kernel."""

    def pair(self, squares: Squares) -> tuple[Squares, Squares]:
        s = jnp.sqrt(3.0 * jnp.maximum(squares, 0.0))
        return super().pair(squares)[0], (1.0 + s) * jnp.exp(-s)
