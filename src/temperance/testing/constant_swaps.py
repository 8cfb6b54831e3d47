"""A ladder on which every swap is accepted with a given probability, whatever the replicas do.

On it the replicas' walk over the rungs is the one that the theory of round trips assumes, so that
what is a rule of thumb elsewhere is a law: the rate under `deo`, exact where nothing is rejected.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Key, LogDensity, Point, Position, Scalar
from temperance.ladders.ladder import AbstractUniformLadder, Rung, Rungs
from temperance.moves.move import AbstractMove, Info, Params


class ConstantSwaps(AbstractUniformLadder):
    """A ladder on which the swap of rungs k and k+1 is accepted with `acceptances[k]`, always.

    A position is a number, and `ResetToRung` puts the replica at rung k to k, so that with

        I_k(x) = -log a_k [x > k]:     exp(I_k(k) - I_k(k + 1)) = a_k.

    Replicas then walk as in the theory of Syed et al. (2022), and under `deo` complete
    1 / (2 + 2 sum r_k / (1 - r_k)) round trips a sweep in all, with r_k = 1 - a_k.
    """

    acceptances: Float[Array, " pairs"]

    @property
    def num_rungs(self) -> int:
        return self.acceptances.shape[0] + 1

    def densities(self) -> Sequence[LogDensity]:
        return [_Threshold(self.acceptances[k], k) for k in range(self.num_rungs - 1)]

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        return (jnp.arange(self.num_rungs - 1) < rung).astype(self.acceptances.dtype)

    def rate(self) -> Scalar:
        """Round trips a sweep under `deo`."""
        rejections = 1 - self.acceptances
        return 1 / (2 + 2 * jnp.sum(rejections / self.acceptances))


class _Threshold(eqx.Module):
    acceptance: Float[Array, ""]
    rung: int = eqx.field(static=True)

    def __call__(self, position: Position) -> Scalar:
        return jnp.where(position[0] > self.rung, -jnp.log(self.acceptance), 0.0)


class ResetToRung(AbstractMove):
    """Puts a replica of `ConstantSwaps` to its rung's index: local exploration with no memory."""

    step_sizes: tuple[float | None, ...] = eqx.field(static=True, default=(1.0,))
    metric: str = eqx.field(static=True, default="unit")
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(1.0,))
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        index = jnp.sum(rung.weights, keepdims=True)
        one = jnp.ones((1,), point.components.dtype)
        return rung.evaluate(index, gradient=False), Info(
            one, jnp.asarray(True), jnp.asarray(False), jnp.asarray(1)
        )
