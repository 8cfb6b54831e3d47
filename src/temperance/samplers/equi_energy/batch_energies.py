"""Energies of mini-batches, for rungs that are hot and cheap at once.

A state of rung k is a position x with the name of an order of the rows (rows/batches.py), whose
first m_k places are its batch S; with m_0 <= m_1 <= ... <= m_{K-1} = n the batch R of the next
hotter rung is the beginning of S. Its energy is

    h(x, S) = -(n / m) sum_{i in S} l_i(x) - log p(x),

and the rung is f_k(x, S) ~ exp(-max(h(x, S), H_k) / T_k), over positions and orders together. The
target's batch is all rows, and its law the posterior.

**Sizes.** T = n / m^alpha, as for every mini-batch here (batch_law.py): m_k = (n / T_k)^(1/alpha),
and all rows where that is more. At a given x the log density of a rung then varies from batch to
batch by (n / T)^2 s^2 / m (1 - m/n), that is m^(2 alpha - 1) s^2 (1 - m/n) with s^2 the variance of
the terms: for alpha = 1/2 about the variance of one term, whatever the heat.
"""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, UInt32

from temperance._types import Key, LogDensity, Point, Position, Scalar
from temperance.ladders.ladder import AbstractUniformLadder, Rungs
from temperance.ladders.row_sums import Rows
from temperance.rows.batches import Batches

Name = UInt32[Array, "2"]


class BatchLadder(AbstractUniformLadder):
    """The log density -h(x, S) of one batch, as the single rung of a ladder.

    A point's components are -h(x, S) and -h(x, R), with R the first `hotter` places of the order
    that `name` names; its memory is the name.
    """

    rows: Rows
    name: Name
    size: int = eqx.field(static=True)
    hotter: int = eqx.field(static=True)

    @property
    def num_rungs(self) -> int:
        return 1

    def densities(self) -> Sequence[LogDensity]:
        return (lambda position: self._both(position)[0],)

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        return jnp.ones((1,))

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        flat, unravel = ravel_pytree(position)
        if not gradient:
            return Point(position, jnp.stack(self._both(position)), None, self.name)
        (own, other), slope = jax.value_and_grad(
            lambda vector: self._both(unravel(vector)), has_aux=True
        )(flat)
        return Point(position, jnp.stack([own, other]), (slope,), self.name)

    def _both(self, position: Position) -> tuple[Scalar, Scalar]:
        """-h of the rung's own batch, and of the next hotter rung's."""
        n, log_prior = self.rows.num_rows, self.rows.log_prior(position)
        order, batches = as_key(self.name), Batches(self.rows.num_rows)
        if self.size == n:
            terms = self.rows.terms(position, self.rows.data)
            fewer = terms
            if self.hotter < n:
                fewer = jax.lax.stop_gradient(terms)[batches.places(order, 0, self.hotter)]
        else:
            terms = self.rows.at(position, batches.places(order, 0, self.size))
            fewer = jax.lax.stop_gradient(terms)[: self.hotter]
        scales = n / self.size, n / self.hotter
        own, other = (s * jnp.sum(t) for s, t in zip(scales, (terms, fewer), strict=True))
        return log_prior + own, jax.lax.stop_gradient(log_prior) + other


def as_key(name: Name) -> Key:
    """The random key that a name is."""
    return jax.random.wrap_key_data(name)


def batch_sizes(num_rows: int, temperatures: Sequence[float], alpha: float) -> tuple[int, ...]:
    """Rows of each rung's batch, m = (n / T)^(1/alpha); all of them at the target."""
    wanted = [(num_rows / heat) ** (1 / alpha) for heat in temperatures[:-1]]
    return (*(int(np.clip(math.ceil(m - 1e-9), 2, num_rows)) for m in wanted), num_rows)
