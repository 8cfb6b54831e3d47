"""Log densities and gradients at many points, from one small compiled program.

Hunts, curvatures, clouds and weights are sequences of such batches with a little arithmetic between
them, which NumPy does. So a new density costs one short compilation, and not one for each of these.
A density that JAX cannot differentiate is differentiated by differences, with 2 d + 1 values in d
dimensions.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from temperance._types import LogDensity
from temperance.programs.compiled import compiled


class BatchGradients:
    """Evaluates `density`, `chunk` points at a time, counts how many, and tells `told`."""

    def __init__(self, density: LogDensity, dimension: int, chunk: int):
        self.density, self.chunk = density, chunk
        self.num_evaluations = 0
        self.told: Callable[[int], None] = lambda _: None
        self.has_gradient = has_gradient(density, dimension)
        if self.has_gradient:
            example = jnp.zeros((chunk, dimension))
            # Found once, since looking for it takes longer than a small batch does.
            self._program, leaves = _value_and_slope.prepared(density, example)  # pyright: ignore[reportFunctionMemberAccess]
            self._leaves = leaves[:-1]

    def __call__(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and gradients; -inf and zeros where either is not finite."""
        if not self.has_gradient:
            return self._by_differences(points)
        n, chunk = len(points), self.chunk
        values, slopes = np.empty(n), np.empty(points.shape)
        for i in range(0, n, chunk):
            part = points[i : i + chunk]
            size = len(part)
            if size < chunk:
                part = np.concatenate([part, np.repeat(part[:1], chunk - size, axis=0)])
            value, slope = self._program(*self._leaves, jnp.asarray(part, float))
            values[i : i + chunk] = np.asarray(value)[:size]
            slopes[i : i + chunk] = np.asarray(slope)[:size]
        self.num_evaluations += n
        self.told(self.num_evaluations)
        bad = ~(np.isfinite(values) & np.isfinite(slopes).all(axis=1))
        values[bad], slopes[bad] = -np.inf, 0.0
        return values, slopes

    def values(self, points: np.ndarray) -> np.ndarray:
        """Values alone, -inf where one is not finite: cheaper where gradients are differences."""
        if self.has_gradient:
            return self(points)[0]
        values = self._values(points)
        return np.where(np.isfinite(values), values, -np.inf)

    def _by_differences(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradients from values on both sides along each axis."""
        n, d = points.shape
        widths = np.cbrt(np.finfo(float).eps) * np.maximum(np.abs(points), 1.0)
        steps = widths[:, :, None] * np.eye(d)
        around = np.stack([points[:, None] + steps, points[:, None] - steps])
        values = self._values(np.concatenate([points, around.reshape(-1, d)]))
        up, down = values[n:].reshape(2, n, d)
        with np.errstate(invalid="ignore"):
            slopes = (up - down) / (2 * widths)
        bad = ~(np.isfinite(values[:n]) & np.isfinite(slopes).all(axis=1))
        return np.where(bad, -np.inf, values[:n]), np.where(bad[:, None], 0.0, slopes)

    def _values(self, points: np.ndarray) -> np.ndarray:
        n, chunk = len(points), self.chunk
        values = np.empty(n)
        for i in range(0, n, chunk):
            part = points[i : i + chunk]
            size = len(part)
            part = np.concatenate([part, np.repeat(part[:1], chunk - size, axis=0)])
            values[i : i + chunk] = np.asarray(_value(self.density, jnp.asarray(part, float)))[
                :size
            ]
        self.num_evaluations += n
        self.told(self.num_evaluations)
        return values


def has_gradient(density: LogDensity, dimension: int) -> bool:
    """Whether JAX can differentiate a density: not through a callback to Python, for instance."""
    vector = jax.ShapeDtypeStruct((dimension,), jnp.result_type(float))
    try:
        jax.eval_shape(jax.grad(density), vector)
    except (ValueError, NotImplementedError, TypeError):
        return False
    return True


@compiled
def _value(density: LogDensity, points: Array) -> Array:
    return jax.lax.map(density, points)


@compiled
def _value_and_slope(density: LogDensity, points: Array) -> tuple[Array, Array]:
    return jax.vmap(jax.value_and_grad(density))(points)
