"""Log densities and gradients at many points, from one small compiled program.

Hunts, curvatures, clouds and weights are sequences of such batches with a little arithmetic between
them, which NumPy does. So a new density costs one short compilation, and not one for each of these.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from temperance._types import LogDensity
from temperance.programs.compiled import compiled


class BatchGradients:
    """Evaluates `density`, `chunk` points at a time, and counts how many."""

    def __init__(self, density: LogDensity, chunk: int):
        self.density, self.chunk = density, chunk
        self.num_evaluations = 0

    def __call__(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and gradients; -inf and zeros where either is not finite."""
        n, chunk = len(points), self.chunk
        values, slopes = np.empty(n), np.empty(points.shape)
        for i in range(0, n, chunk):
            part = points[i : i + chunk]
            size = len(part)
            if size < chunk:
                part = np.concatenate([part, np.repeat(part[:1], chunk - size, axis=0)])
            value, slope = _value_and_slope(self.density, jnp.asarray(part, float))
            values[i : i + chunk] = np.asarray(value)[:size]
            slopes[i : i + chunk] = np.asarray(slope)[:size]
        self.num_evaluations += n
        bad = ~(np.isfinite(values) & np.isfinite(slopes).all(axis=1))
        values[bad], slopes[bad] = -np.inf, 0.0
        return values, slopes


@compiled
def _value_and_slope(density: LogDensity, points: Array) -> tuple[Array, Array]:
    return jax.vmap(jax.value_and_grad(density))(points)


Gradients = Callable[[np.ndarray], tuple[Any, Any]]
