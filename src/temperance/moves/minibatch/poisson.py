"""TunaMH: Metropolis for the posterior itself that reads a random number of rows.

    x* ~ q(x, .),      B ~ Poisson(t + chi t^2) rows, thinned,     t = C M(x, x*)
    log r = sum over the counted rows of 2 artanh(...) + log p(x*)/p(x) + log q(x*, x)/q(x, x*)

`moves/minibatch/poisson_law.py` has the decision and why it is exact, `moves/minibatch/bounds.py`
the c_i and M. With bounds about a mode, rows are their remainders, and what the expansions say of x
and x*, all rows together, joins the prior (`moves/minibatch/laplace.py`).

**Two proposals.** *metropolis*: x* = x + s F z. *autoregressive*: in the coordinates e in which the
Gaussian at the mode is a standard normal,

    e* = sqrt(1 - s^2) e + s z,      log q(x*, x) / q(x, x*) = (|e*|^2 - |e|^2) / 2,

which that Gaussian would always accept. s = 1 draws from it afresh. Only the remainders, and what
of the prior is not Gaussian, are left to decide.

**Chunks.** B is random and shapes are not. The B rows are the points of a Poisson process of rate
one before the time t + chi t^2: gaps between them are exponential, and a loop takes `chunk` of
them at a time until they are past the end. The last chunk's tail is evaluated and not used.

**Never more than a pass.** Where t + chi t^2 is more than `most_rows`, the same loop reads all rows
in their order and accepts with the ordinary ratio. Both are reversible, and which of them it is
depends on x and x* alike. So a start far from the mode costs a pass over the data a step, and not
the many rows that loose bounds ask for there.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, UInt32

from temperance._types import Key, Point
from temperance.errors import MoveError
from temperance.ladders.ladder import AbstractLadder, Rung
from temperance.ladders.row_sums import Rows, rows_of
from temperance.moves.accept import choose, decide
from temperance.moves.langevin_proposal import proposed
from temperance.moves.minibatch.bounds import Bounds
from temperance.moves.minibatch.poisson_law import PoissonLaw
from temperance.moves.move import AbstractMove, BatchInfo, Info, Params
from temperance.programs.random_numbers import normals_and_uniforms
from temperance.rows.alias_table import WeightedRows

# Differences of terms are not known better than their rounding, and a bound is not broken by it.
ROUNDING = 64


class Tally(NamedTuple):
    """What a step has seen: the time on the Poisson process, rows, log ratio, noise, slips."""

    time: Float[Array, ""]
    seen: Int[Array, ""]
    log_ratio: Float[Array, ""]
    variance: Float[Array, ""]
    beyond: Float[Array, ""]


class Tuna(AbstractMove):
    """Leaves the posterior of independent rows invariant, exactly and reversibly, if `bounds` hold.

    A row that changes by more than its bound biases the draws: its rate would be negative, and is
    taken as zero. Steps in which a row was seen to do so are not `trusted`; rows that nobody read
    are not checked. Runs on a `RowLadder`.
    """

    bounds: Bounds
    table: WeightedRows
    law: PoissonLaw
    proposal: str = eqx.field(static=True)
    chunk: int = eqx.field(static=True)
    most_rows: int = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    reads_rows = True
    # Side by side, every chain would wait for the one that reads most.
    branches = True
    references = ("zhang2020",)

    def longest_steps(self) -> tuple[float, ...]:
        return (1.0,) if self.proposal == "autoregressive" else (np.inf,)

    def draw_start(self) -> Callable[[Key], Float[Array, " d"]] | None:
        # Far from the mode the Gaussian is far too light, and a draw from it is hardly ever taken.
        return None if self.bounds.around is None else self.bounds.around.draw

    def check_ladder(self, ladder: AbstractLadder) -> None:
        rows = rows_of(ladder.at(0))
        if rows.num_rows != self.bounds.num_rows:
            raise MoveError(
                f"bounds: they are of {self.bounds.num_rows} rows, and the problem has "
                f"{rows.num_rows}; give one scale for each row of the data, in their order"
            )

    def remember(self, point: Point, rung: Rung) -> Point:
        around, dimension = self.bounds.around, ravel_pytree(point.position)[0].size
        if around is not None and around.dimension != dimension:
            raise MoveError(
                f"bounds: they are about a mode of {around.dimension} values, and a position has "
                f"{dimension}; use tp.laplace of the same problem"
            )
        return point

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        rows, around = rows_of(rung), self.bounds.around
        key_noise, key_rows = jax.random.split(key)
        here, unravel = ravel_pytree(point.position)
        normals, uniform = normals_and_uniforms(key_noise, here.size, 1, here.dtype)
        there, log_known = self._proposed(here, normals, params)
        proposal = rung.evaluate(unravel(there), gradient=False)
        log_known += proposal.components[0] - point.components[0]
        if around is not None:
            log_known += around.log_ratio(here, there)

        def differences(places: Array) -> tuple[Array, Array]:
            some = rows.take(places)
            old, new = (rows.terms(unravel(x), some) for x in (here, there))
            size = jnp.abs(old) + jnp.abs(new)
            if around is None:
                return new - old, size
            return around.remainders(lambda x: rows.terms(unravel(x), some), here, there), size

        apart = self.bounds.distance(here, there)
        tally, whole = self._compared(key_rows, rows, differences, apart)
        decision = decide(uniform[0], tally.log_ratio + log_known)
        kept = choose(decision.accepted, proposal, point)
        dtype, ends = decision.probability.dtype, 2 if around is None else 3
        return kept, Info(
            decision.probability[None],
            decision.accepted,
            jnp.asarray(False),
            jnp.asarray(1),
            jnp.asarray(1),
            ~jnp.isfinite(proposal.components[0]),
            batch=BatchInfo(
                ends * tally.seen.astype(dtype),
                tally.variance,
                whole.astype(dtype),
                (tally.beyond == 0).astype(dtype),
            ),
        )

    def _proposed(self, here: Array, normals: Array, params: Params) -> tuple[Array, Array]:
        """x*, and the log ratio of the way back to the way there."""
        around = self.bounds.around
        if self.proposal == "metropolis" or around is None:
            return proposed(here, normals, None, params), jnp.zeros((), here.dtype)
        size = params.step_size[0]
        white = around.white(here)
        new = jnp.sqrt(1.0 - size**2) * white + size * normals
        return around.coloured(new), 0.5 * (jnp.sum(new**2) - jnp.sum(white**2))

    def _compared(
        self, key: Key, rows: Rows, differences: Callable[..., tuple[Array, Array]], apart: Array
    ) -> tuple[Tally, Bool[Array, ""]]:
        """What rows say of the step, and whether all of them were read."""
        n, chunk, dtype = rows.num_rows, self.chunk, apart.dtype
        scales = jnp.asarray(self.bounds.scales)
        total = jnp.asarray(self.bounds.total) * apart
        end = self.law.mean_rows(total)
        whole = ~(end <= self.most_rows)
        spots = jnp.arange(chunk)

        def more(tally: Tally) -> Tally:
            bits = jax.random.bits(_numbered(key, tally.seen), (4, chunk), jnp.uint32)
            gaps, coins, thins = (unit(row, dtype) for row in bits[:3])
            times = tally.time - jnp.cumsum(jnp.log(gaps))
            drawn = self.table.rows(bits[3], coins)
            places = jnp.where(whole, jnp.minimum(tally.seen + spots, n - 1), drawn)
            change, size = differences(places)
            allowed = apart * scales[places]
            share = jnp.where(allowed > 0, change / allowed, 0.0)
            inside = jnp.where(whole, tally.seen + spots < n, times < end)
            slack = ROUNDING * jnp.finfo(dtype).eps * size
            beyond = inside & ~whole & ~(jnp.abs(change) <= allowed + slack)
            share = jnp.clip(share, -1.0, 1.0)
            counted = inside & (thins < self.law.counted(share, total))
            factors = jnp.where(counted, self.law.log_factor(share, total), 0.0)
            added = jnp.where(whole, jnp.where(inside, change, 0.0), factors)
            return Tally(
                times[-1],
                tally.seen + chunk,
                tally.log_ratio + jnp.sum(added),
                tally.variance + jnp.where(whole, 0.0, jnp.sum(factors**2)),
                tally.beyond + jnp.sum(beyond.astype(dtype)),
            )

        def unfinished(tally: Tally) -> Array:
            return jnp.where(whole, tally.seen < n, tally.time < end)

        zero = jnp.zeros((), dtype)
        first = Tally(zero, jnp.zeros((), jnp.int32), zero, zero, zero)
        return jax.lax.while_loop(unfinished, more, first), whole


def _numbered(key: Key, number: Int[Array, ""]) -> Key:
    """A key of its own for each number; keys that differ in a counter are as good as any."""
    data = jax.random.key_data(key)
    data = data.at[-1].set(data[-1] ^ number.astype(data.dtype))
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))


def unit(bits: UInt32[Array, " m"], dtype: np.dtype) -> Float[Array, " m"]:
    """Uniforms on (0, 1), at the middles of as many cells as `dtype` tells apart."""
    digits = 32 if dtype == jnp.float64 else 23
    return ((bits >> (32 - digits)).astype(dtype) + 0.5) * 2.0**-digits
