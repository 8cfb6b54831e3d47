"""Tempered transitions: climb to the hottest rung, come down again, accept or stay.

From x at the target (rung K-1) with log rho = 0:

    climb     for k = K-2, ..., 0:   log rho -= I_k(x);   x <- T_k(x)
    descend   log rho += I_0(x);   for k = 1, ..., K-2:   x <- T_k(x);   log rho += I_k(x)
    accept    the end point with probability min(1, exp(log rho))

where I_k = log pi_{k+1} - log pi_k and T_k is reversible with respect to pi_k; the hottest rung is
moved once. A T_k that is not reversible is run backwards on the way down, at the hottest rung
too. (Paper 1 counts m = K-1-k.) Since pi_k(a) T_k(a, b) = pi_k(b) T_k(b, a), the path run
backwards has the density of the path times rho, which is detailed balance. Paper 1's Algorithm 2
prints three slips: it descends with the kernel of the rung it arrives at instead of the one it
leaves, adds the ratios instead of multiplying them, and on acceptance returns the starting point.
The order here is the one its equation (3) belongs to. Each iteration begins with an ordinary move
at the target.

On nested subsamples every transition draws new ones. They do not look at the state, and a mixture
of kernels that leave the target invariant leaves it invariant.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Position
from temperance.errors import MoveError
from temperance.ladders.ladder import AbstractLadder, Rungs, fold_rungs
from temperance.ladders.prefix import PrefixLadder
from temperance.moves.accept import choose, decide
from temperance.moves.move import AbstractMove, Info, Params, refuse_few_rows
from temperance.programs.random_streams import Sweep, stream


class TransitionState(NamedTuple):
    """The point at the target."""

    point: Point


class TransitionInfo(NamedTuple):
    """How the moves at each rung and the whole transition fared.

    `first_look` says that new subsamples had to be looked at apart from any move.
    """

    acceptance: Float[Array, "rungs parts"]
    diverging: Float[Array, " rungs"]
    num_evaluations: Float[Array, " rungs"]
    num_values: Float[Array, " rungs"]
    impossible: Float[Array, " rungs"]
    transition_acceptance: Float[Array, ""]
    transition_accepted: Float[Array, ""]
    log_ratio: Float[Array, ""]
    first_look: Float[Array, ""]
    batch_rows: Float[Array, " rungs"] | None = None


class TemperedTransitions(eqx.Module):
    """A Metropolis-Hastings sampler for the top rung of `ladder`; its state is a position.

    The acceptance ratio reads the climb as the descent run backwards, so a move that is not
    reversible must have a `reversal`, which takes its place on the way down. HMC with fresh
    momentum is reversible; a fixed order of several moves is not, and its reversal is the other
    order. A kernel that declares itself reversible and is not (HMC that keeps its momentum) is
    biased without any sign of it in the output.
    """

    ladder: AbstractLadder
    move: AbstractMove
    params: Params

    def __check_init__(self):
        refuse_few_rows(self.move)
        self.move.check_ladder(self.ladder)
        if self.move.reversal() is None or not self.move.exact:
            raise MoveError(
                f"tempered transitions need an exact move with a reversal, and {self.move} is not: "
                "use metropolis, mala, hmc, autostep or nuts, or repeat or alternate some of them"
            )

    @property
    def num_rungs(self) -> int:
        return self.ladder.num_rungs

    @property
    def _gradient(self) -> bool:
        return self.move.uses_gradient and self.ladder.keeps_gradients

    def init(self, position: Position) -> TransitionState:
        point = self.ladder.evaluate(position, gradient=self._gradient)
        if self.move.gathers:
            point = self.move.remember(point, self.ladder.at(self.num_rungs - 1))
        return TransitionState(point)

    def step(self, key: Key, state: TransitionState) -> tuple[TransitionState, TransitionInfo]:
        """A move at the target, then one tempered transition.

        What a draw keeps of its move is about the target only if the move came last: then the two
        change places.
        """
        top = self.num_rungs - 1
        key_target, key_hottest, key_climb, key_descend, key_accept = jax.random.split(key, 5)
        ladder = self.ladder
        if isinstance(ladder, PrefixLadder):
            ladder = ladder.reshuffled(stream(key, Sweep.ROWS)).cut()
        start, at_target = state.point._replace(memory=None), None
        if not self.move.gathers:
            start, at_target = self._move(ladder, key_target, state.point, top)
        point, first_look = start, jnp.asarray(0.0)
        if isinstance(ladder, PrefixLadder):
            assert at_target is not None
            # A point that has just moved knows the new blocks; one that has not must look.
            below = ladder.at(top - 1)
            point = jax.lax.cond(
                at_target.accepted,
                lambda: start,
                lambda: below.evaluate(start.position, gradient=False),
            )
            log_rho = below.log_density(point) - ladder.at(top).log_density(start)
            first_look = 1.0 - at_target.accepted.astype(log_rho.dtype)
        else:
            log_rho = -_increment(ladder, top - 1, start)

        between = list(range(1, top))
        keys_climb = jax.random.split(key_climb, len(between))
        keys_descend = jax.random.split(key_descend, len(between))

        def climb(carry: tuple[Point, Array], rung: Rungs, key: Key):
            point, log_rho = carry
            point, info = self._move(ladder, key, point, rung)
            return (point, log_rho - _increment(ladder, rung - 1, point)), info

        def descend(carry: tuple[Point, Array], rung: Rungs, key: Key):
            point, log_rho = carry
            point, info = self._move(ladder, key, point, rung, back=True)
            point = ladder.lift(rung, point)
            return (point, log_rho + _increment(ladder, rung, point)), info

        (point, log_rho), up = fold_rungs(
            ladder, climb, (point, log_rho), between[::-1], keys_climb
        )
        point, at_hottest = self._hottest(ladder, key_hottest, point)
        point = ladder.lift(0, point)
        log_rho = log_rho + _increment(ladder, 0, point)
        (point, log_rho), down = fold_rungs(
            ladder, descend, (point, log_rho), between, keys_descend
        )

        decision = decide(jax.random.uniform(key_accept), log_rho)
        kept = choose(decision.accepted, point, start)
        if at_target is None:
            kept = self.move.remember(kept, ladder.at(top))
            kept, at_target = self._move(ladder, key_target, kept, top)
            at_target = at_target._replace(num_evaluations=at_target.num_evaluations + 1)

        def by_rung(name: str, share: float) -> Array:
            return _by_rung(share, *(getattr(i, name) for i in (at_hottest, up, down, at_target)))

        return TransitionState(kept), TransitionInfo(
            by_rung("acceptance", 0.5),
            by_rung("diverging", 1.0),
            by_rung("num_evaluations", 1.0),
            by_rung("num_values", 1.0),
            by_rung("impossible", 1.0),
            decision.probability,
            decision.accepted.astype(log_rho.dtype),
            jnp.maximum(decision.log_ratio, jnp.finfo(log_rho.dtype).min),
            first_look,
            None
            if at_target.batch is None
            else _by_rung(1.0, *map(_batch_rows, (at_hottest, up, down, at_target))),
        )

    def _hottest(self, ladder: AbstractLadder, key: Key, point: Point) -> tuple[Point, Info]:
        """The hottest rung's only move; a draw, where it can be drawn exactly."""
        draw = ladder.draw_hottest()
        if draw is None and self.move.reversible:
            return self._move(ladder, key, point, 0)
        if draw is None:
            key_up, key_down = jax.random.split(key)
            point, up = self._move(ladder, key_up, point, 0)
            point, down = self._move(ladder, key_down, point, 0, back=True)
            both = jax.tree.map(jnp.add, up, down)
            return point, both._replace(acceptance=0.5 * both.acceptance)
        fresh = ladder.at(0).evaluate(draw(key), gradient=self._gradient)
        one = jnp.ones_like(self.params.step_size[0])
        return fresh, _plain_info(Info(one, jnp.asarray(True), jnp.asarray(False), jnp.asarray(1)))

    def _move(
        self, ladder: AbstractLadder, key: Key, point: Point, rung: Rungs, back: bool = False
    ) -> tuple[Point, Info]:
        move = self.move.reversal() if back else self.move
        assert move is not None
        params = jax.tree.map(lambda leaf: leaf[rung], self.params)
        point, info = move.step(key, point, ladder.at(rung), params)
        return point, _plain_info(info)

    def trail(self, state: TransitionState) -> dict[str, Array]:
        """Nothing is kept between draws."""
        return {}

    def snapshot(self, state: TransitionState) -> dict[str, Any]:
        """What a draw keeps."""
        return {
            "position": state.point.position,
            "lp": self.ladder.at(self.num_rungs - 1).log_density(state.point),
        } | self.move.keepsakes(state.point)


def _increment(ladder: AbstractLadder, rung: Rungs, point: Point) -> Float[Array, ""]:
    return ladder.increments(point.components)[rung]


def _plain_info(info: Info) -> Info:
    """With arrays throughout, and without what only warm-up wants to know."""
    return jax.tree.map(jnp.asarray, info._replace(slope=None))


def _batch_rows(info: Info) -> Array:
    """Rows of the batches; none where a draw took the place of a move."""
    return jnp.zeros_like(info.acceptance[..., 0]) if info.batch is None else info.batch.num_rows


def _by_rung(share: float, hottest: Array, up: Array, down: Array, target: Array) -> Array:
    """Rungs in order: the hottest and the target once, the others both ways."""
    dtype = jnp.result_type(float)
    both = share * (up[::-1].astype(dtype) + down.astype(dtype))
    return jnp.concatenate([hottest.astype(dtype)[None], both, target.astype(dtype)[None]])
