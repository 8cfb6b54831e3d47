"""Mini-batch tempered Metropolis whose state is a position with a batch of its own.

    f(x, S) ~ exp(m^alpha mean_S l(x)) p(x)^w                                     (batch_law.py)

is left invariant exactly, whatever the law of the terms. Two ways to move:

    fresh      x* ~ q(x, .) and S* ~ uniform together; accept with min(1, f(x*, S*) / f(x, S) ...),
               and keep the pair as it was otherwise: what paper 2 analyses
    exchange   x given S by Metropolis on that batch; then S given x by exchanges: a row of S for
               one outside it, accepted with min(1, f(x, S') / f(x, S))

The first sticks: where the noise of log f has the standard deviation s, a pair that was lucky waits
for another as lucky, and acceptance falls like 2 Phi(-s / sqrt 2). The second does not, since a
batch changes a row at a time. Langevin proposals use the slope of S at x, and of S* at x* for the
way back; using S both ways is biased.

The position alone has the law E_S f(x, S): the tempered law times about
exp(c^2 Var(mean_S l(x)) / 2).
That tilt is small for alpha < 1/2; `corrected` takes most of it out of f.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from temperance._types import Key, Point, Scalar
from temperance.ladders.ladder import Rung
from temperance.ladders.row_sums import Rows, rows_of
from temperance.moves.accept import choose, decide
from temperance.moves.langevin_proposal import log_way_back, proposed
from temperance.moves.minibatch.batch_law import BatchLaw
from temperance.moves.minibatch.penalty import AbstractBatchMove, slope_on
from temperance.moves.move import BatchInfo, Info, Params
from temperance.programs.random_numbers import normals_and_uniforms

# Where the noise of a state's own log density is above this, pairs stick and the tilt is not small.
MOST_VARIANCE = 1.0


class OwnBatch(NamedTuple):
    """The rows of a state's batch, and their terms there."""

    places: Int[Array, " m"]
    terms: Float[Array, " m"]


class PseudoMarginal(AbstractBatchMove):
    """Leaves f(x, S) invariant exactly, and is reversible where `exchange` is zero.

    With `exchange` rows a step it is two reversible kernels in a fixed order. `corrected` takes the
    first order of the tilt out of f. Needs independent rows, and runs on a `RowLadder`.
    """

    corrected: bool = eqx.field(static=True)
    exchange: int = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    reversible: bool = eqx.field(static=True, default=False)
    exact: bool = eqx.field(static=True, default=False)
    uses_gradient: bool = eqx.field(static=True, default=False)

    keeps_memory = True
    noise = "pseudo-marginal"
    references = ("li2017", "andrieu2009")

    def remember(self, point: Point, rung: Rung) -> Point:
        rows = rows_of(rung)
        places = jnp.arange(self.batch_size, dtype=jnp.int32)
        return point._replace(memory=OwnBatch(places, rows.at(point.position, places)))

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        rows = rows_of(rung)
        law = self.law(rows.num_rows)
        key_move, key_batch = jax.random.split(key)
        places = point.memory.places
        if not self.exchange:
            places = law.batches.places(key_batch, 0, self.batch_size)
        point, acceptance, accepted = self._moved(key_move, point, places, rung, law, params)
        if self.exchange:
            batch = self._exchanged(key_batch, rows, law, point)
            point = point._replace(memory=batch)
        dtype = acceptance.dtype
        variance = law.variance(jnp.var(point.memory.terms, ddof=1), self.batch_size)
        looked_at = self.batch_size * (1 + 2 * self.langevin) + self.exchange
        return point, Info(
            acceptance[None],
            accepted,
            jnp.asarray(False),
            jnp.asarray(1),
            jnp.asarray(1),
            batch=BatchInfo(
                jnp.asarray(looked_at, dtype),
                variance,
                jnp.zeros((), dtype),
                (variance <= MOST_VARIANCE).astype(dtype),
            ),
        )

    def _moved(
        self, key: Key, point: Point, places: Array, rung: Rung, law: BatchLaw, params: Params
    ) -> tuple[Point, Array, Array]:
        """The position moved, with the batch at `places` if it is accepted."""
        rows = rows_of(rung)
        flat, unravel = ravel_pytree(point.position)
        forth, uniform = normals_and_uniforms(key, flat.size, 1, flat.dtype)
        way_back, here = jnp.zeros(()), None
        if self.langevin:
            here = slope_on(rows, law, rows.take(point.memory.places), unravel)(flat)
        end = proposed(flat, forth, here, params)
        some = rows.take(places)
        if here is not None:
            there = slope_on(rows, law, some, unravel)(end)
            way_back = log_way_back(forth, here, there, params)
        proposal = rung.evaluate(unravel(end), gradient=False)
        batch = OwnBatch(places, rows.terms(proposal.position, some))
        proposal = proposal._replace(memory=batch)
        log_ratio = self._log_weight(law, proposal) - self._log_weight(law, point) + way_back
        decision = decide(uniform[0], log_ratio)
        kept = choose(decision.accepted, proposal, point)
        return kept, decision.probability, decision.accepted

    def _log_weight(self, law: BatchLaw, point: Point) -> Scalar:
        return law.log_weight(point.memory.terms, point.components[0], self.corrected)

    def _exchanged(self, key: Key, rows: Rows, law: BatchLaw, point: Point) -> OwnBatch:
        """The batch after one attempt for each of `exchange` candidates, in turn."""
        key_in, key_out, key_accept = jax.random.split(key, 3)
        candidates = jax.random.randint(key_in, (self.exchange,), 0, rows.num_rows, jnp.int32)
        slots = jax.random.randint(key_out, (self.exchange,), 0, self.batch_size, jnp.int32)
        terms = rows.at(point.position, candidates)
        uniforms = jax.random.uniform(key_accept, (self.exchange,))
        prior = point.components[0]

        def attempt(batch: OwnBatch, one: Any) -> tuple[OwnBatch, None]:
            candidate, slot, term, uniform = one
            new = OwnBatch(batch.places.at[slot].set(candidate), batch.terms.at[slot].set(term))
            log_ratio = law.log_weight(new.terms, prior, self.corrected) - law.log_weight(
                batch.terms, prior, self.corrected
            )
            allowed = jnp.asarray(self.replace) | jnp.all(batch.places != candidate)
            accepted = allowed & decide(uniform, log_ratio).accepted
            return choose(accepted, new, batch), None

        attempts = (candidates, slots, terms, uniforms)
        return jax.lax.scan(attempt, point.memory, attempts)[0]
