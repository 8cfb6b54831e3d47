"""Tempered transitions: climb to the hottest rung, come down again, accept or stay.

From x at the target (rung K-1) with log rho = 0:

    climb     for k = K-2, ..., 0:   log rho -= I_k(x);   x <- T_k(x)
    descend   for k = 0, ..., K-2:   x <- T_k(x);         log rho += I_k(x)
    accept    the end point with probability min(1, exp(log rho))

where I_k = log pi_{k+1} - log pi_k and T_k is reversible with respect to pi_k. (Paper 1 counts
m = K-1-k.) Since pi_k(a) T_k(a, b) = pi_k(b) T_k(b, a), the path run backwards has the density of
the path times rho, which is detailed balance. Paper 1's Algorithm 2 prints three slips: it descends
with the kernel of the rung it arrives at instead of the one it leaves, adds the ratios instead of
multiplying them, and on acceptance returns the starting point. The order here is the one its
equation (3) belongs to. Each iteration begins with an ordinary move at the target.

Where the hottest rung can be drawn exactly, one draw replaces its two moves: T_0 T_0 = T_0 then.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Position
from temperance.errors import MoveError
from temperance.ladder import AbstractLadder, Rungs, fold_rungs
from temperance.move import AbstractMove, Params, acceptance_of


class TransitionState(NamedTuple):
    """The point at the target."""

    point: Point


class TransitionInfo(NamedTuple):
    """How the moves at each rung and the whole transition fared."""

    acceptance: Float[Array, "rungs parts"]
    diverging: Float[Array, " rungs"]
    num_evaluations: Float[Array, " rungs"]
    transition_acceptance: Float[Array, ""]
    transition_accepted: Float[Array, ""]
    log_ratio: Float[Array, ""]


class TemperedTransitions(eqx.Module):
    """A Metropolis-Hastings sampler for the top rung of `ladder`; its state is a position.

    `move` must be reversible at every rung: the acceptance ratio reads the climb as the
    descent run backwards. HMC with fresh momentum is; HMC that keeps its momentum, or a
    systematic Gibbs scan, is not, and is biased without any sign of it in the output.
    """

    ladder: AbstractLadder
    move: AbstractMove
    params: Params

    def __check_init__(self):
        if not (self.move.reversible and self.move.exact):
            raise MoveError(
                f"tempered transitions need a reversible, exact move, and {self.move} is not: "
                "use metropolis, mala, hmc or nuts, or repeat one of them"
            )

    @property
    def num_rungs(self) -> int:
        return self.ladder.num_rungs

    def init(self, position: Position) -> TransitionState:
        return TransitionState(self.ladder.evaluate(position, gradient=self.move.uses_gradient))

    def step(self, key: Key, state: TransitionState) -> tuple[TransitionState, TransitionInfo]:
        """A move at the target, then one tempered transition."""
        top = self.num_rungs - 1
        key_target, key_hottest, key_climb, key_descend, key_accept = jax.random.split(key, 5)
        start, at_target = self._move(key_target, state.point, top)

        draw = self.ladder.draw_hottest()
        lowest = 0 if draw is None else 1
        hotter = list(range(lowest, top))
        keys_climb = jax.random.split(key_climb, len(hotter))
        keys_descend = jax.random.split(key_descend, len(hotter))
        zero = jnp.zeros_like(start.components[0])

        def climb(carry: tuple[Point, Array], rung: Rungs, key: Key):
            point, log_rho = carry
            log_rho = log_rho - self._increment(rung, point)
            point, info = self._move(key, point, rung)
            return (point, log_rho), info

        def descend(carry: tuple[Point, Array], rung: Rungs, key: Key):
            point, log_rho = carry
            point, info = self._move(key, point, rung)
            return (point, log_rho + self._increment(rung, point)), info

        (point, log_rho), up = fold_rungs(
            self.ladder, climb, (start, zero), hotter[::-1], keys_climb
        )
        if draw is not None:
            log_rho = log_rho - self._increment(0, point)
            point = self.ladder.evaluate(draw(key_hottest), gradient=self.move.uses_gradient)
            log_rho = log_rho + self._increment(0, point)
        (point, log_rho), down = fold_rungs(
            self.ladder, descend, (point, log_rho), hotter, keys_descend
        )

        acceptance, log_ratio = acceptance_of(log_rho)
        accepted = jnp.log(jax.random.uniform(key_accept)) < log_ratio
        kept = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), point, start)
        return TransitionState(kept), TransitionInfo(
            _by_rung(lowest, up.acceptance, down.acceptance, at_target.acceptance, 0.5, 1.0),
            _by_rung(lowest, up.diverging, down.diverging, at_target.diverging, 1.0, 0.0),
            _by_rung(
                lowest,
                up.num_evaluations,
                down.num_evaluations,
                at_target.num_evaluations,
                1.0,
                1.0,
            ),
            acceptance,
            accepted.astype(acceptance.dtype),
            jnp.maximum(log_ratio, jnp.finfo(acceptance.dtype).min),
        )

    def _increment(self, rung: Rungs, point: Point) -> Float[Array, ""]:
        return self.ladder.increments(point.components)[rung]

    def _move(self, key: Key, point: Point, rung: Rungs):
        params = jax.tree.map(lambda leaf: leaf[rung], self.params)
        return self.move.step(key, point, self.ladder.at(rung), params)

    def trail(self, state: TransitionState) -> dict[str, Array]:
        """Nothing is kept between draws."""
        return {}

    def snapshot(self, state: TransitionState) -> dict[str, Any]:
        """What a draw keeps."""
        return {
            "position": state.point.position,
            "lp": self.ladder.at(self.num_rungs - 1).log_density(state.point),
        }


def _by_rung(
    lowest: int, up: Array, down: Array, target: Array, share: float, hottest: float
) -> Array:
    """Rungs in order: the exact draw's `hottest` if there is one, both ways, the target."""
    dtype = jnp.result_type(float)
    both = share * (up[::-1].astype(dtype) + down.astype(dtype))
    parts = [jnp.full((lowest, *both.shape[1:]), hottest, dtype), both, target.astype(dtype)[None]]
    return jnp.concatenate(parts)
