"""HMC whose single precision goes where it must not; the tests reject both."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung
from temperance.moves.hmc import Hmc, hmc, in_single
from temperance.moves.move import Info, Params


class DecidesInSingle(Hmc):
    """Compares densities of single precision, too."""

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        moved, info = super().step(key, *in_single((point, rung, params)))
        return jax.tree.map(lambda leaf: leaf.astype(float), moved), info


class KicksInSingleAtFirst(Hmc):
    """Kicks by single precision in the first step and by double in the others.

    On the way back those are other steps.
    """

    def _position_steps(
        self, point: Point, momentum: Array, size: Array, rung: Rung, params: Params
    ) -> tuple[Point, Array, Array]:
        first, rest = hmc(1, single="always"), hmc(self.num_steps - 1)
        point, momentum, slope = first._position_steps(point, momentum, size, rung, params)
        end, last, _ = rest._position_steps(point, momentum, size, rung, params)
        return end, last, jnp.asarray(slope)
