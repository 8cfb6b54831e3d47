"""Annealed importance sampling, and the same backwards: bounds of log Z from both sides.

    forward   x ~ pi_0 exactly;   log r = I_0(x);
              for k = 1, ..., K-2:   x <- T_k(x);   log r += I_k(x)
    reverse   x ~ pi_{K-1} exactly;   log r' = -I_{K-2}(x);
              for k = K-2, ..., 1:   x <- T~_k(x);   log r' -= I_{k-1}(x)

with I_k = log pi_{k+1} - log pi_k, T_k a move that leaves pi_k invariant and T~_k its reversal.
E[r] = Z_{K-1} / Z_0 and E[r'] = Z_0 / Z_{K-1} whatever the moves are (paper 4, equation 10; the
state after T_k is the one whose I_k counts). r is also the weight of the last x for the target. The
log of a mean of r is below log Z on average, and minus the log of a mean of r' above it: together
they are bidirectional Monte Carlo (Grosse et al. 2015), which needs an exact draw of the target. A
model's simulated data have one: the parameters that they were simulated with.

Every step of the sampler is a whole anneal, so its draws are independent. On nested subsamples each
anneal shuffles the rows anew, which no anneal looks at: a mean of unbiased weights is unbiased.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Position, Scalar
from temperance.errors import ArgumentError, MoveError
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import AbstractLadder, Rungs, fold_rungs, weighted
from temperance.ladders.prefix import PrefixLadder
from temperance.moves.move import AbstractMove, Params, refuse_few_rows
from temperance.samplers.params_by_beta import params_at


class AnnealedState(NamedTuple):
    """The end of an anneal, its log weight and, where one was run, that of a reverse anneal."""

    position: Position
    lp: Float[Array, ""]
    log_weight: Float[Array, ""]
    log_weight_reverse: Float[Array, ""] | None


class AnnealedInfo(NamedTuple):
    """Means of the moves, and sums of what they evaluated, with a rung axis of one."""

    acceptance: Float[Array, "1 parts"]
    diverging: Float[Array, "1"]
    num_evaluations: Float[Array, "1"]
    num_values: Float[Array, "1"]
    impossible: Float[Array, "1"]
    num_rows: Float[Array, ""]


class AnnealedImportance(eqx.Module):
    """Independent weighted draws of the target, and log Z; every move is exact or r means nothing.

    `ladder` must be drawn from exactly at its hottest rung. `params` belong to the rungs of the
    ladder, or to `knots` where those are given, a few betas between which they are interpolated.
    `draw_target(key)` makes exact draws of the target for reverse anneals: if they are not exact
    the upper bound is none, without any sign of it.
    """

    ladder: AbstractLadder
    move: AbstractMove
    params: Params
    knots: Float[Array, " knots"] | None = None
    draw_target: Callable[[Key], Position] | None = None

    def __check_init__(self):
        refuse_few_rows(self.move)
        self.move.check_ladder(self.ladder)
        if self.ladder.draw_hottest() is None:
            raise ArgumentError(
                "ladder: an anneal begins with an exact draw of the hottest rung, and nobody knows "
                "how to draw from this one: begin with beta = 0 (or no rows) and give draw_hot= "
                "(or draw_prior=)"
            )
        if not self.move.exact:
            raise MoveError(f"an anneal needs moves that are exact, and {self.move} is not")
        if self.draw_target is not None and self.move.reversal() is None:
            raise MoveError(
                f"a reverse anneal runs moves backwards, and nobody knows the reversal of "
                f"{self.move}: use metropolis, mala, hmc, autostep or nuts"
            )
        if self.knots is not None and not isinstance(self.ladder, GeometricLadder):
            raise ArgumentError("knots: they are betas, and belong to a GeometricLadder")

    @property
    def num_rungs(self) -> int:
        return 1

    @property
    def _gradient(self) -> bool:
        return self.move.uses_gradient and self.ladder.keeps_gradients

    def init(self, position: Position) -> AnnealedState:
        """Before the first anneal; nothing of it is used."""
        top = self.ladder.at(self.ladder.num_rungs - 1)
        lp = top.log_density(self.ladder.evaluate(position, gradient=False))
        none = jnp.zeros_like(lp)
        return AnnealedState(position, lp, none, None if self.draw_target is None else none)

    def step(self, key: Key, state: AnnealedState) -> tuple[AnnealedState, AnnealedInfo]:
        """One anneal, and one reverse anneal where the target can be drawn."""
        key_there, key_back, key_rows = jax.random.split(key, 3)
        ladder = self.ladder
        if isinstance(ladder, PrefixLadder):
            ladder = ladder.reshuffled(key_rows).cut()
        point, log_weight, info = self.forward(key_there, ladder)
        lp = ladder.at(ladder.num_rungs - 1).log_density(point)
        if self.draw_target is None:
            return AnnealedState(point.position, lp, log_weight, None), info
        reverse, back = self.reverse(key_back, ladder)
        both = jax.tree.map(jnp.add, info, back)._replace(
            acceptance=0.5 * (info.acceptance + back.acceptance)
        )
        return AnnealedState(point.position, lp, log_weight, reverse), both

    def forward(self, key: Key, ladder: AbstractLadder) -> tuple[Point, Scalar, AnnealedInfo]:
        """The end of an anneal, and log r."""
        draw = ladder.draw_hottest()
        assert draw is not None
        key_start, key_moves = jax.random.split(key)
        point = ladder.at(0).evaluate(draw(key_start), gradient=self._gradient)
        point = ladder.lift(0, point)
        log_weight = _increment(ladder, 0, point)

        def climb(carry: tuple[Point, Array], rung: Rungs, key: Key):
            point, log_weight = carry
            point, told = self._move(self.move, ladder, key, point, rung)
            point = ladder.lift(rung, point)
            return (point, log_weight + _increment(ladder, rung, point)), told

        rungs = list(range(1, ladder.num_rungs - 1))
        keys = jax.random.split(key_moves, len(rungs))
        (point, log_weight), told = fold_rungs(ladder, climb, (point, log_weight), rungs, keys)
        looked_at = ladder.num_added(0) if isinstance(ladder, PrefixLadder) else 0
        return point, _number(log_weight), _summed(told, len(rungs), looked_at)

    def reverse(self, key: Key, ladder: AbstractLadder) -> tuple[Scalar, AnnealedInfo]:
        """Log r' of an anneal from the target."""
        move = self.move.reversal()
        assert self.draw_target is not None
        assert move is not None
        key_start, key_moves = jax.random.split(key)
        point = ladder.evaluate(self.draw_target(key_start), gradient=self._gradient)
        top = ladder.num_rungs - 1
        log_weight = -_increment(ladder, top - 1, point)

        def descend(carry: tuple[Point, Array], rung: Rungs, key: Key):
            point, log_weight = carry
            point, told = self._move(move, ladder, key, point, rung)
            return (point, log_weight - _increment(ladder, rung - 1, point)), told

        rungs = list(range(top - 1, 0, -1))
        keys = jax.random.split(key_moves, len(rungs))
        (_, log_weight), told = fold_rungs(ladder, descend, (point, log_weight), rungs, keys)
        looked_at = ladder.num_rows if isinstance(ladder, PrefixLadder) else 0
        return _number(log_weight), _summed(told, len(rungs), looked_at)

    def _move(
        self, move: AbstractMove, ladder: AbstractLadder, key: Key, point: Point, rung: Rungs
    ) -> tuple[Point, AnnealedInfo]:
        if self.knots is None:
            params = jax.tree.map(lambda leaf: leaf[rung], self.params)
        else:
            assert isinstance(ladder, GeometricLadder)
            params = params_at(self.knots, self.params, ladder.betas[rung])
        point, info = move.step(key, point, ladder.at(rung), params)
        dtype = info.acceptance.dtype
        evaluations = jnp.asarray(info.num_evaluations, dtype)
        rows = 0.0
        if isinstance(ladder, PrefixLadder):
            assert isinstance(rung, int)
            rows = evaluations * ladder.sizes[rung] + ladder.num_added(rung)
        return point, AnnealedInfo(
            info.acceptance[None],
            jnp.asarray(info.diverging, dtype)[None],
            evaluations[None],
            jnp.asarray(info.num_values, dtype)[None],
            jnp.asarray(info.impossible, dtype)[None],
            jnp.asarray(rows, dtype),
        )

    def positions(self, state: AnnealedState) -> Position:
        """Where the last anneal ended, with a rung axis of one."""
        return jax.tree.map(lambda leaf: leaf[None], state.position)

    def trail(self, state: AnnealedState) -> dict[str, Array]:
        """The weights of every anneal."""
        found = {"log_weight": state.log_weight}
        if state.log_weight_reverse is not None:
            found["log_weight_reverse"] = state.log_weight_reverse
        return found

    def snapshot(self, state: AnnealedState) -> dict[str, Any]:
        """What a draw keeps."""
        return {"position": state.position, "lp": state.lp}


def _summed(told: AnnealedInfo, num_moves: int, looked_at: int) -> AnnealedInfo:
    """Sums over an anneal, with the one evaluation that is no move's; acceptance is a mean."""
    sums = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), told)
    return sums._replace(
        acceptance=sums.acceptance / max(num_moves, 1),
        num_evaluations=sums.num_evaluations + 1,
        num_rows=sums.num_rows + looked_at,
    )


def _increment(ladder: AbstractLadder, rung: Rungs, point: Point) -> Scalar:
    """I_k of a point, without a table of all rungs, of which there may be thousands."""
    return weighted(ladder.weights(rung + 1) - ladder.weights(rung), point.components)


def _number(log_weight: Scalar) -> Scalar:
    """A path through an impossible point has no weight."""
    return jnp.where(jnp.isnan(log_weight), -jnp.inf, log_weight)
