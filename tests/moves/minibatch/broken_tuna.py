"""TunaMH with one slip each; the tests reject them all."""

import jax.numpy as jnp
from jaxtyping import Array

from temperance.moves.minibatch.laplace import Laplace
from temperance.moves.minibatch.poisson import Tuna
from temperance.moves.minibatch.poisson_law import PoissonLaw
from temperance.moves.move import Params
from temperance.rows.alias_table import WeightedRows


class WithHalfTheFactor(PoissonLaw):
    """artanh without the two before it."""

    def log_factor(self, share: Array, total: Array) -> Array:
        return 0.5 * super().log_factor(share, total)


class WithoutTheBoundInTheRate(PoissonLaw):
    """Rates without the c_i M that keeps them positive."""

    def counted(self, share: Array, total: Array) -> Array:
        rate = jnp.maximum(self.chi * total - 0.5 * share, 0.0)
        return rate / (self.chi * total + 1.0)


class ThinnedTheOtherWay(PoissonLaw):
    """Counts the rows that speak for the step more often, not less."""

    def counted(self, share: Array, total: Array) -> Array:
        return super().counted(-share, total)


class WithoutChiInTheFactor(PoissonLaw):
    """The factor of rates to which nothing was added."""

    def log_factor(self, share: Array, total: Array) -> Array:
        return 2.0 * jnp.arctanh(0.999 * share)


LAWS = (
    WithHalfTheFactor,
    WithoutTheBoundInTheRate,
    ThinnedTheOtherWay,
    WithoutChiInTheFactor,
)


class WithoutTheWayBack(Tuna):
    """An autoregressive step taken for a symmetric one."""

    def _proposed(self, here: Array, normals: Array, params: Params) -> tuple[Array, Array]:
        return super()._proposed(here, normals, params)[0], jnp.zeros((), here.dtype)


class WithRowsDrawnEvenly(WeightedRows):
    """Every row as likely as every other, whatever its bound."""

    def rows(self, bits: Array, coins: Array) -> Array:
        return (bits % jnp.uint32(self.num_rows)).astype(jnp.int32)


class WithoutTheCurvature(Laplace):
    """Remainders of second order against expansions of first."""

    def log_ratio(self, here: Array, there: Array) -> Array:
        return jnp.dot(there - here, jnp.asarray(self.slope))
