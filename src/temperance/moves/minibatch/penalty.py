"""Mini-batch tempered Metropolis (MINT) with a fresh batch for both ends of a step.

    S ~ uniform;   x* ~ q(x, .);    d_i = l_i(x*) - l_i(x) for i in S
    log r = m^alpha mean_S d + w (log p(x*) - log p(x)) + log q(x*, x) - log q(x, x*)
    penalty   accept with min(1, exp(log r - u(V))),    V estimated from the d_i
    common    accept with min(1, exp(log r)):           paper 2, Algorithm 1

`moves/minibatch/batch_law.py` has u, V and what is meant: the posterior to the power 1/T, T = n /
m^alpha.

While V is more than `MOST_VARIANCE`, m more rows are looked at, since acceptance falls like
2 Phi(-sqrt(V) / 2); the temperature stays that of `batch_size`. No more are asked for where the
noise cannot change the answer, |log r| > V/2 + `SURE` sqrt(V): such a step is refused, or accepted,
but for a chance of exp(-16) at most. V and |log r| are the same from x* to x, so the way back stops
at as many rows.

**What it leaves invariant.** *penalty*: the tempered law, where a mean of d over a batch is normal;
the noise of the variance itself is made good by the series' next terms. *common*: nothing with a
name. In the normal limit it is flatter than the tempered law by kappa(V) for steps of that noise,
0.88 at V = 0.1 and 0.69 at V = 1.

**Langevin proposals** take their slope from rows. For *penalty* those are a batch of their own,
used at both ends: given that batch the proposal is a fixed kernel, and the noise of the ratio does
not know it. For *common* it is the batch of the ratio.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from temperance._types import Data, Key, Point, Position
from temperance.ladders.ladder import Rung
from temperance.ladders.row_sums import Rows, rows_of
from temperance.moves.accept import Decision, choose, decide
from temperance.moves.langevin_proposal import log_way_back, proposed
from temperance.moves.minibatch.batch_law import BatchLaw, implied_beta
from temperance.moves.move import AbstractMove, BatchInfo, Info, Params
from temperance.programs.random_numbers import normals_and_uniforms
from temperance.rows.batches import Batches

# Above this variance of the noise a step looks at more rows.
MOST_VARIANCE = 4.0
# So many standard deviations of the noise leave no doubt.
SURE = 6.0
# The penalty's series is good to a thousandth while the variance is a small share of the rows.
MOST_SHARE = 0.05


class Moments(NamedTuple):
    """Number, mean and sum of squares about the mean of the differences seen so far."""

    number: Int[Array, ""]
    mean: Float[Array, ""]
    square: Float[Array, ""]

    @property
    def spread(self) -> Float[Array, ""]:
        return self.square / jnp.maximum(self.number - 1, 1)

    def joined(self, values: Float[Array, " m"]) -> "Moments":
        """With `values` seen as well."""
        number = self.number + values.shape[0]
        mean = jnp.mean(values)
        apart = mean - self.mean
        share = values.shape[0] / number
        square = jnp.sum((values - mean) ** 2) + apart**2 * self.number * share
        return Moments(number, self.mean + apart * share, self.square + square)


class AbstractBatchMove(AbstractMove):
    """A move for the posterior to the power 1/T, T = n / batch_size^alpha, that reads few rows."""

    batch_size: int = eqx.field(static=True)
    alpha: float = eqx.field(static=True)
    temper_prior: bool = eqx.field(static=True)
    replace: bool = eqx.field(static=True)
    langevin: bool = eqx.field(static=True)

    reads_rows = True

    def law(self, num_rows: int) -> BatchLaw:
        """What is meant to be sampled from."""
        implied_beta(num_rows, self.batch_size, self.alpha)
        batches = Batches(num_rows, self.replace)
        return BatchLaw(batches, self.batch_size, self.alpha, self.temper_prior)

    def batch_law(self, num_rows: int) -> BatchLaw:
        return self.law(num_rows)


class Mint(AbstractBatchMove):
    """MINT with one fresh batch for both ends of a step; `noise` is "penalty" or "common".

    Leaves the tempered law invariant up to the normality of a batch's mean ("penalty"), or a
    flatter law without a name ("common"). Needs independent rows: it is blind to what a row says
    of the others. Runs on a `RowLadder`.
    """

    noise: str = eqx.field(static=True)
    most_rows: int | None = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=False)
    uses_gradient: bool = eqx.field(static=True, default=False)

    references = ("li2017", "ceperley1999")

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        rows = rows_of(rung)
        law = self.law(rows.num_rows)
        key_noise, key_batch, key_slope = jax.random.split(key, 3)
        if self.noise == "common":
            key_slope = key_batch
        flat, unravel = ravel_pytree(point.position)
        forth, uniform = normals_and_uniforms(key_noise, flat.size, 1, flat.dtype)
        way_back, slope = jnp.zeros(()), self._slope(rows, law, key_slope, unravel)
        here = slope(flat)
        there = proposed(flat, forth, here, params)
        if here is not None:
            way_back = log_way_back(forth, here, slope(there), params)
        proposal = rung.evaluate(unravel(there), gradient=False)
        prior = proposal.components[0] - point.components[0]
        known = law.prior_power * prior + way_back
        seen = self._compared(rows, law, key_batch, point.position, proposal.position, known)
        variance = law.variance(seen.spread, seen.number)
        if self.noise == "penalty":
            log_ratio = law.log_ratio(seen.mean, prior, variance, seen.number)
        else:
            log_ratio = law.log_density(seen.mean, prior)
        decision = decide(uniform[0], log_ratio + way_back)
        kept = choose(decision.accepted, proposal, point)
        sure = _sure(law.scale * seen.mean + known, variance)
        return kept, self._info(decision, seen, variance, sure)

    def _info(self, decision: Decision, seen: Moments, variance: Array, sure: Array) -> Info:
        dtype = decision.probability.dtype
        gradients = 2 * self.batch_size * self.langevin
        trusted = (variance <= MOST_VARIANCE) & (variance <= MOST_SHARE * seen.number)
        return Info(
            decision.probability[None],
            decision.accepted,
            jnp.asarray(False),
            jnp.asarray(1),
            jnp.asarray(1),
            ~jnp.isfinite(seen.mean),
            batch=BatchInfo(
                2.0 * seen.number.astype(dtype) + gradients,
                variance,
                (seen.number > self.batch_size).astype(dtype),
                (trusted | sure).astype(dtype),
            ),
        )

    def _compared(
        self, rows: Rows, law: BatchLaw, key: Key, here: Position, there: Position, known: Array
    ) -> Moments:
        """The differences of a batch that grows while its noise is too large."""
        size, most = self.batch_size, self._most(rows.num_rows)

        def more(seen: Moments) -> Moments:
            some = rows.take(law.batches.places(key, seen.number, size))
            return seen.joined(rows.terms(there, some) - rows.terms(here, some))

        def noisy(seen: Moments) -> Array:
            variance = law.variance(seen.spread, seen.number)
            loud = jnp.isfinite(variance) & (variance > MOST_VARIANCE)
            loud &= ~_sure(law.scale * seen.mean + known, variance)
            return loud & (seen.number + size <= most)

        zero = jnp.zeros((), jnp.result_type(float))
        seen = more(Moments(jnp.zeros((), int), zero, zero))
        if self.noise == "common" or 2 * size > most:
            return seen
        return jax.lax.while_loop(noisy, more, seen)

    def _most(self, num_rows: int) -> int:
        return min(num_rows, self.most_rows or num_rows)

    def _slope(self, rows: Rows, law: BatchLaw, key: Key, unravel: Any) -> Any:
        """The slope of the tempered law on a batch, as a function of the vector."""
        if not self.langevin:
            return lambda _: None
        some = rows.take(law.batches.places(key, 0, self.batch_size))
        return slope_on(rows, law, some, unravel)


def _sure(log_ratio: Array, variance: Array) -> Array:
    """Whether noise of this variance leaves no doubt about a step."""
    return jnp.abs(log_ratio) > 0.5 * variance + SURE * jnp.sqrt(variance)


def slope_on(
    rows: Rows, law: BatchLaw, some: Data, unravel: Callable[[Array], Position]
) -> Callable[[Float[Array, " d"]], Float[Array, " d"]]:
    """The slope of the tempered law as `some` rows see it, by vector."""

    def log_density(flat: Array) -> Array:
        position = unravel(flat)
        return law.log_density(jnp.mean(rows.terms(position, some)), rows.log_prior(position))

    return jax.grad(log_density)
