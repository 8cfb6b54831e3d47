"""Mini-batch moves with one slip each; the tests reject them all."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from temperance._types import Key, Point, Position
from temperance.ladders.ladder import Rung
from temperance.ladders.row_sums import Rows, rows_of
from temperance.moves.accept import acceptance_of
from temperance.moves.langevin_proposal import log_way_back, proposed
from temperance.moves.minibatch.batch_law import BatchLaw
from temperance.moves.minibatch.penalty import Mint, Moments, slope_on
from temperance.moves.minibatch.pseudo_marginal import OwnBatch, PseudoMarginal
from temperance.moves.move import Params
from temperance.programs.random_numbers import normals_and_uniforms
from temperance.rows.batches import Batches


class PairThatStoresTheNewTerms(PseudoMarginal):
    """Keeps the batch on rejection, and the terms of the batch that was refused."""

    def _moved(
        self, key: Key, point: Point, places: Array, rung: Rung, law: BatchLaw, params: Params
    ) -> tuple[Point, Array, Array]:
        kept, acceptance, accepted = super()._moved(key, point, places, rung, law, params)
        new = rows_of(rung).at(kept.position, places)
        terms = jnp.where(accepted, kept.memory.terms, new)
        return kept._replace(memory=kept.memory._replace(terms=terms)), acceptance, accepted


class PairThatComesBackByItsOwnBatch(PseudoMarginal):
    """Judges the way back from x* by the batch of x."""

    def _moved(
        self, key: Key, point: Point, places: Array, rung: Rung, law: BatchLaw, params: Params
    ) -> tuple[Point, Array, Array]:
        rows = rows_of(rung)
        flat, unravel = ravel_pytree(point.position)
        forth, uniform = normals_and_uniforms(key, flat.size, 1, flat.dtype)
        slope = slope_on(rows, law, rows.take(point.memory.places), unravel)
        here = slope(flat)
        end = proposed(flat, forth, here, params)
        way_back = log_way_back(forth, here, slope(end), params)
        proposal = rung.evaluate(unravel(end), gradient=False)
        batch = OwnBatch(places, rows.at(proposal.position, places))
        proposal = proposal._replace(memory=batch)
        acceptance, log_ratio = acceptance_of(
            self._log_weight(law, proposal) - self._log_weight(law, point) + way_back
        )
        accepted = jnp.log(uniform[0]) < log_ratio
        kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, point)
        return kept, acceptance, accepted


class PairThatExchangesFreely(PseudoMarginal):
    """Exchanges rows without asking the law of the pair."""

    def _exchanged(self, key: Key, rows: Rows, law: BatchLaw, point: Point) -> OwnBatch:
        flat = LawOfAnything(law.batches, law.batch_size, law.alpha, law.temper_prior)
        return super()._exchanged(key, rows, flat, point)


class PairWithRowsTwice(PseudoMarginal):
    """Lets a row into a batch that has it, though batches are sets."""

    def _exchanged(self, key: Key, rows: Rows, law: BatchLaw, point: Point) -> OwnBatch:
        free = replace(self, replace=True)
        return PseudoMarginal._exchanged(free, key, rows, law, point)


class PairScaledToAllRows(PseudoMarginal):
    """Scales a batch's sum to all rows instead of to m^alpha."""

    def law(self, num_rows: int) -> BatchLaw:
        return scaled(super().law(num_rows))


class PairUnderTheOtherPrior(PseudoMarginal):
    """Tempers the prior where it should not, and does not where it should."""

    def law(self, num_rows: int) -> BatchLaw:
        return replace(super().law(num_rows), temper_prior=not self.temper_prior)


class PairThatForgetsWhatIsLeft(PseudoMarginal):
    """Corrects as if batches were drawn with replacement."""

    def law(self, num_rows: int) -> BatchLaw:
        return replace(super().law(num_rows), batches=EndlessBatches(num_rows))


class MintScaledToAllRows(Mint):
    """Scales a batch's sum to all rows instead of to m^alpha."""

    def law(self, num_rows: int) -> BatchLaw:
        return scaled(super().law(num_rows))


class MintUnderTheOtherPrior(Mint):
    """Tempers the prior where it should not, and does not where it should."""

    def law(self, num_rows: int) -> BatchLaw:
        return replace(super().law(num_rows), temper_prior=not self.temper_prior)


class MintThatForgetsWhatIsLeft(Mint):
    """Fines for a variance that batches without replacement do not have."""

    def law(self, num_rows: int) -> BatchLaw:
        return replace(super().law(num_rows), batches=EndlessBatches(num_rows))


class MintThatDecidesByItsFirstBatch(Mint):
    """Looks at more rows until the noise is small, and takes the mean of those it began with."""

    def _compared(
        self, rows: Rows, law: BatchLaw, key: Key, here: Position, there: Position, known: Array
    ) -> Moments:
        seen = super()._compared(rows, law, key, here, there, known)
        first = rows.take(law.batches.places(key, 0, self.batch_size))
        return seen._replace(mean=jnp.mean(rows.terms(there, first) - rows.terms(here, first)))


class LawOfAnything(BatchLaw):
    """Every pair is as likely as every other."""

    def log_weight(self, terms: Float[Array, " m"], log_prior: Array, corrected: bool) -> Array:
        return 0.0 * super().log_weight(terms, log_prior, corrected)


class LawOfAllRows(BatchLaw):
    """c = n / m."""

    @property
    def scale(self) -> float:
        return self.batches.num_rows / self.batch_size


class EndlessBatches(Batches):
    """Batches of which no row is ever used up."""

    def left(self, count: Int[Array, ""] | int) -> Float[Array, ""]:
        return jnp.ones(())


def scaled(law: BatchLaw) -> BatchLaw:
    return LawOfAllRows(law.batches, law.batch_size, law.alpha, law.temper_prior)
