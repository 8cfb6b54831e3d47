"""Delayed acceptance with one slip each; the tests reject them all."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from temperance._types import Key, Point
from temperance.ladders.ladder import Rung
from temperance.ladders.row_sums import power_of, rows_of
from temperance.moves.langevin_proposal import proposed
from temperance.moves.minibatch.delayed import Delayed
from temperance.moves.move import Info, Params
from temperance.programs.random_numbers import normals_and_uniforms
from temperance.rows.batches import Batches


class LooseDelayed(Delayed):
    """A random walk in two stages as it is written, exposed to slips."""

    def second(self, log_true: Array, log_seen: Array, log_other: Array) -> Array:
        return log_true + jnp.minimum(-log_seen, 0.0) - jnp.minimum(log_seen, 0.0)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        rows, power = rows_of(rung), power_of(rung)
        key_noise, *key_batches = jax.random.split(key, 3)
        step, uniforms = normals_and_uniforms(
            key_noise, point.position.size, 2, point.position.dtype
        )
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
