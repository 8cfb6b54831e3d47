"""Exact mini-batch kernels with one slip each; the tests reject them all."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung
from temperance.ladders.row_sums import power_of, rows_of
from temperance.moves.langevin_proposal import proposed
from temperance.moves.minibatch.delayed import Delayed
from temperance.moves.minibatch.laplace import Laplace
from temperance.moves.minibatch.poisson import Tuna
from temperance.moves.minibatch.poisson_law import PoissonLaw
from temperance.moves.move import Info, Params
from temperance.programs.random_numbers import noise
from temperance.rows.alias_table import WeightedRows
from temperance.rows.batches import Batches


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


class LooseDelayed(Delayed):
    """A random walk in two stages as it is written, exposed to slips."""

    def second(self, log_true: Array, log_seen: Array, log_other: Array) -> Array:
        return log_true + jnp.minimum(-log_seen, 0.0) - jnp.minimum(log_seen, 0.0)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        rows, power = rows_of(rung), power_of(rung)
        key_noise, *key_batches = jax.random.split(key, 3)
        step, uniforms = noise(key_noise, point.position.size, 2, point.position.dtype)
        end = rung.evaluate(proposed(point.position, step, None, params), gradient=False)

        def seen(key: Key) -> Array:
            places = Batches(rows.num_rows).places(key, 0, self.batch_size)
            change = rows.at(end.position, places) - rows.at(point.position, places)
            prior = rows.log_prior(end.position) - rows.log_prior(point.position)
            return prior + power * rows.num_rows * jnp.mean(change)

        log_seen, log_other = (seen(key) for key in key_batches)
        log_true = rung.log_density(end) - rung.log_density(point)
        first = jnp.log(uniforms[0]) < log_seen
        accepted = first & (jnp.log(uniforms[1]) < self.second(log_true, log_seen, log_other))
        kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), end, point)
        ones = jnp.ones_like(params.step_size)
        return kept, Info(ones, accepted, jnp.asarray(False), jnp.asarray(1))


class WithoutDividingByTheFirst(LooseDelayed):
    """Both stages ask for the whole ratio."""

    def second(self, log_true: Array, log_seen: Array, log_other: Array) -> Array:
        return log_true


class DividingByAnotherBatch(LooseDelayed):
    """A fresh batch says what the first stage is divided by."""

    def second(self, log_true: Array, log_seen: Array, log_other: Array) -> Array:
        return log_true - log_other


class WithAnotherBatchBack(LooseDelayed):
    """No slip: the first stage's way back may be judged by a batch of its own.

    Forth with S and back with S' is the same probability as the way back that draws S' and S.
    """

    def second(self, log_true: Array, log_seen: Array, log_other: Array) -> Array:
        return log_true + jnp.minimum(-log_other, 0.0) - jnp.minimum(log_seen, 0.0)


STAGES = (WithoutDividingByTheFirst, DividingByAnotherBatch)
