"""Random numbers for a move: all that one transition needs from one call of the generator.

On a CPU a call of the generator costs more than the few numbers that a move needs. What it gives
are uniforms u on (-1, 1); a normal is sqrt(2) erf^{-1}(u), taken of all of them since a slice would
cost more than the few that are not used.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key
from temperance.programs.batched import elementwise

erf_inv = elementwise(jax.lax.erf_inv)


def normals_and_uniforms(
    key: Key, num_normals: int, num_uniforms: int, dtype: Any
) -> tuple[Float[Array, " normals"], Float[Array, " uniforms"]]:
    """Standard normals, and uniforms on (0, 1)."""
    least = np.nextafter(-1.0, 0.0, dtype=dtype)
    raw = jax.random.uniform(key, (num_normals + num_uniforms,), dtype, least, 1.0)
    normals = np.sqrt(2).astype(dtype) * erf_inv(raw)[:num_normals]
    return normals, 0.5 * (1.0 + raw[num_normals:])
