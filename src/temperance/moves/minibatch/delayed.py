"""Delayed acceptance: a mini-batch refuses most bad proposals, all rows decide on the others.

With a fresh batch S of m rows for each step, and at a rung with the likelihood to the power beta,

    pi_S(x) ~ p(x) exp(beta (n / m) sum_{i in S} l_i(x)),      pi(x) ~ p(x) exp(beta sum_i l_i(x))
    first stage    x* from a step of any move that is reversible for pi_S
    second stage   only if x* is not x: accept with min(1, pi(x*) pi_S(x) / (pi(x) pi_S(x*)))

*Why it is exact.* Given S, pi_S(x) K_S(x, x*) = pi_S(x*) K_S(x*, x). So the second ratio is that of
Metropolis and Hastings for the proposal K_S: its own acceptance is in it, both ways with the same
batch (Christen and Fox 2005). S is drawn without a look at x, and a mixture of kernels that leave
pi invariant does. To divide by the ratio of another batch is biased. For a random walk the first
stage is min(1, pi_S(x*) / pi_S(x)).

*When it pays.* The second stage undoes the batch's noise, whose variance is about
V = (beta n)^2 s_d^2 / m, with s_d the spread over rows of l_i(x*) - l_i(x), and accepts like
2 Phi(-sqrt(V) / 2). Batches have to be large, steps short or rungs hot for V to be near one. About
the mode (`around`) rows are replaced by their remainders and the expansions (laplace.py), whose
noise is small.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Data, Key, LogDensity, Point, Position, Scalar
from temperance.errors import ArgumentError, MoveError, unknown_name
from temperance.ladders.ladder import AbstractLadder, AbstractUniformLadder, Rung, Rungs
from temperance.ladders.row_sums import RowLadder, Rows, power_of, rows_of
from temperance.moves.accept import choose, decide
from temperance.moves.hmc import hmc
from temperance.moves.mala import mala
from temperance.moves.metropolis import metropolis
from temperance.moves.minibatch.laplace import Laplace
from temperance.moves.move import AbstractMove, BatchInfo, Info, Params
from temperance.problems.checks import check_count
from temperance.rows.batches import Batches

PROPOSALS = {"metropolis": metropolis, "mala": mala, "hmc": hmc}
# The second stage takes its share of what a move is best tuned to accept alone.
SHARE = 0.6


class BatchLikelihood(eqx.Module):
    """The log likelihood as a batch sees it: (n / m) times the sum over its rows."""

    rows: Rows
    some: Data
    around: Laplace | None

    def __call__(self, position: Position) -> Scalar:
        terms = self.rows.terms(position, self.some)
        scale = self.rows.num_rows / terms.shape[0]
        if self.around is None:
            return scale * jnp.sum(terms)
        return self._expanded(position, scale)

    def _expanded(self, x: Float[Array, " d"], scale: float) -> Scalar:
        """The expansion of all rows at the mode, with the remainders of the batch."""
        around = self.around
        assert around is not None
        mode = jnp.asarray(around.mode)
        left = around.remainders(lambda v: self.rows.terms(v, self.some), mode, x)
        return around.log_ratio(mode, x) + scale * jnp.sum(left)


class StageLadder(AbstractUniformLadder):
    """One rung: the density that a batch stands for."""

    log_prior: LogDensity
    log_likelihood: BatchLikelihood
    power: Float[Array, ""]

    @property
    def num_rungs(self) -> int:
        return 1

    def densities(self) -> Sequence[LogDensity]:
        return self.log_prior, self.log_likelihood

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        return jnp.stack([jnp.ones_like(self.power), self.power])


class Delayed(AbstractMove):
    """Leaves a rung of independent rows invariant, exactly and reversibly, if `first` is.

    A first stage that is not reversible, or a second one that sees another batch, biases the draws
    without a sign of it. All rows are read only where the first stage moved; chains and rungs
    therefore run one after another. Needs a rung whose rows can be read one by one.
    """

    first: AbstractMove
    batch_size: int = eqx.field(static=True)
    around: Laplace | None
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    branches = True

    @property
    def references(self) -> tuple[str, ...]:
        return ("christen2005", *self.first.references)

    def longest_steps(self) -> tuple[float, ...]:
        return self.first.longest_steps()

    def draw_start(self) -> Callable[[Key], Float[Array, " d"]] | None:
        return None if self.around is None else self.around.draw

    def check_ladder(self, ladder: AbstractLadder) -> None:
        rows = rows_of(ladder.at(ladder.num_rungs - 1))
        if isinstance(ladder, RowLadder):
            raise MoveError(
                "delayed acceptance reads all rows in its second stage, and on a RowLadder nobody "
                "does: run it with a method by name, or on a GeometricLadder"
            )
        if self.batch_size > rows.num_rows:
            raise MoveError(
                f"batch_size: wanted at most {rows.num_rows}, the number of rows, got "
                f"{self.batch_size}"
            )

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        rows = rows_of(rung)
        key_batch, key_first, key_second = jax.random.split(key, 3)
        some = rows.take(Batches(rows.num_rows).places(key_batch, 0, self.batch_size))
        seen = BatchLikelihood(rows, some, self.around)
        batch = StageLadder(rows.log_prior, seen, power_of(rung)).at(0)
        start = batch.evaluate(point.position, gradient=self.first.uses_gradient)
        end, info = self.first.step(key_first, start, batch, params)
        log_seen = batch.log_density(end) - batch.log_density(start)
        here = point._replace(gradients=None)

        def decided() -> tuple[Point, Array, Array]:
            proposal = rung.evaluate(end.position, gradient=False)
            log_true = rung.log_density(proposal) - rung.log_density(point)
            log_ratio = second_stage(log_true, log_seen)
            uniform = jax.random.uniform(key_second, dtype=log_ratio.dtype)
            decision = decide(uniform, log_ratio)
            kept = choose(decision.accepted, proposal, here)
            return kept, decision.probability, decision.accepted

        def refused() -> tuple[Point, Array, Array]:
            return here, jnp.zeros_like(log_seen), jnp.asarray(False)

        kept, acceptance, accepted = jax.lax.cond(info.accepted, decided, refused)
        full = info.accepted.astype(int)
        return kept, info._replace(
            acceptance=jnp.broadcast_to(acceptance, info.acceptance.shape),
            accepted=accepted,
            num_evaluations=full,
            num_values=full,
            slope=None,
            batch=self._batch(info, log_seen),
        )

    def _batch(self, info: Info, log_seen: Array) -> BatchInfo:
        """The start, and every evaluation of the first stage; a remainder looks at the mode too."""
        passes = (1 + info.num_evaluations) * (1 if self.around is None else 3)
        dtype = log_seen.dtype
        zero = jnp.zeros((), dtype)
        num_rows = (passes * self.batch_size).astype(dtype)
        return BatchInfo(num_rows, zero, info.accepted.astype(dtype), zero + 1.0)


def second_stage(log_true: Array, log_seen: Array) -> Array:
    """The second stage's log ratio, from those of pi and of pi_S between the same two points."""
    return log_true - log_seen


def delayed(
    proposal: str | AbstractMove = "metropolis",
    *,
    batch_size: int = 1000,
    around: Laplace | None = None,
) -> Delayed:
    """Delayed acceptance: `proposal` on a fresh batch of rows, then all rows if that has moved.

    `proposal` is "metropolis", "mala" or "hmc", or any exact and reversible move; `tp.repeat(move,
    times)` takes several steps on the batch. Exact whatever the batch; how often all rows refuse
    what the batch took depends on its noise. `around=tp.laplace(problem)` takes most of that away
    near the mode.
    """
    if isinstance(proposal, str):
        if proposal not in PROPOSALS:
            raise unknown_name("proposal of delayed", proposal, PROPOSALS)
        proposal = PROPOSALS[proposal]()
    if not isinstance(proposal, AbstractMove) or proposal.reads_rows:
        raise MoveError(
            f"proposal: wanted a move that knows its density, such as tp.metropolis(), got "
            f"{proposal!r}"
        )
    if not (proposal.reversible and proposal.exact):
        raise MoveError(
            f"proposal: the second stage takes the first for exact and reversible, and {proposal} "
            "is not"
        )
    if around is not None and not isinstance(around, Laplace):
        raise ArgumentError(f"around: wanted tp.laplace(problem), got {type(around).__name__}")
    return Delayed(
        first=proposal,
        batch_size=check_count("batch_size", batch_size, 1),
        around=around,
        step_sizes=proposal.step_sizes,
        metric=proposal.metric,
        target_acceptance=tuple(SHARE * target for target in proposal.target_acceptance),
    )
