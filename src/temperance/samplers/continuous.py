"""Continuously tempered chains, that carry an inverse temperature between 0 and 1 with them.

    joint   (x, u) <- T(x, u)                      any kernel for the joint density (continuous.py)
    Gibbs   beta <- its law given x, exactly       (inverse_temperature.py)
            x <- T_beta(x)                         any kernel for the density at that beta

Both leave p(x, beta) proportional to q(x)^(1 - beta) (pi(x) / zeta)^beta invariant (paper 4,
equation 16). Every x then counts for the target with weight w_1(x) and for the base with w_0(x),
whatever its beta is, and Z = zeta E[w_1] / E[w_0] (equations 20 to 22; weighted.py).

The Gibbs chain uses a step size and a factor of its own at each beta, interpolated between those
that warm-up tunes at the rungs of a ladder (knots.py). They are functions of beta alone, which the
move holds fixed, so that the move stays exact.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Position, Scalar
from temperance.continuous import JointLadder, as_vector
from temperance.geometric import GeometricLadder
from temperance.inverse_temperature import draw_beta, log_base_weight, log_target_weight
from temperance.knots import params_at
from temperance.move import AbstractMove, Params, refuse_few_rows
from temperance.samplers.plain import Plain, PlainInfo, PlainState, info_of_one
from temperance.samplers.trips import Trips, none_yet, travelled


class JointState(NamedTuple):
    """The point (x, u), and how far the chain has travelled."""

    point: Point
    trips: Trips


class JointTempering(eqx.Module):
    """`move` on the joint density of position and control; its draws are weighted.

    Exact if the move is. The chain has to travel in u as well as in x: a base far from the target,
    or a `log_zeta` far from log Z, leaves it at one end, and then the weights say so.
    """

    ladder: JointLadder
    move: AbstractMove
    params: Params

    def __check_init__(self):
        refuse_few_rows(self.move)

    @property
    def num_rungs(self) -> int:
        return 1

    @property
    def _plain(self) -> Plain:
        return Plain(self.ladder, self.move, self.params)

    def init(self, position: Position) -> JointState:
        return JointState(self._plain.init(self.ladder.embed(position)).point, none_yet())

    def step(self, key: Key, state: JointState) -> tuple[JointState, PlainInfo]:
        moved, info = self._plain.step(key, PlainState(state.point))
        beta = self.ladder.beta(moved.point.position)
        return JointState(moved.point, travelled(state.trips, beta)), info

    def positions(self, state: JointState) -> Float[Array, "1 d"]:
        """Where the chain is, the control last."""
        return as_vector(state.point.position)[None]

    def gradients(self, state: JointState) -> Float[Array, "1 d"] | None:
        return self._plain.gradients(PlainState(state.point))

    def trail(self, state: JointState) -> dict[str, Array]:
        """What every step leaves behind: its weights."""
        return weights_of(state.point.components[1])

    def snapshot(self, state: JointState) -> dict[str, Any]:
        """What a draw keeps."""
        return {
            "position": state.point.position.x,
            "lp": state.point.components[2],
            "beta": self.ladder.beta(state.point.position),
            "control": state.point.position.u,
            "round_trips": state.trips.finished,
        }


class GibbsState(NamedTuple):
    """The point, the inverse temperature of its last move, and how far the chain has travelled."""

    point: Point
    beta: Float[Array, ""]
    trips: Trips


class GibbsTempering(eqx.Module):
    """Beta from its law given x, then `move` at that beta; draws are weighted.

    `params` belong to the rungs of `ladder`. Exact if the move is, whatever `log_zeta` is: far from
    log Z the chain stays at one end.
    """

    ladder: GeometricLadder
    move: AbstractMove
    params: Params
    log_zeta: Float[Array, ""]

    def __check_init__(self):
        refuse_few_rows(self.move)

    @property
    def num_rungs(self) -> int:
        return 1

    def init(self, position: Position) -> GibbsState:
        point = self.ladder.evaluate(position, gradient=self.move.uses_gradient)
        return GibbsState(point, jnp.zeros_like(point.components[0]), none_yet())

    def step(self, key: Key, state: GibbsState) -> tuple[GibbsState, PlainInfo]:
        key_beta, key_move = jax.random.split(key)
        uniform = jax.random.uniform(key_beta, dtype=state.beta.dtype)
        beta, rest = draw_beta(uniform, self._tilt(state.point))
        params = params_at(self.ladder.betas, self.params, beta)
        rung = self.ladder.between(beta, rest)
        point, info = self.move.step(key_move, state.point, rung, params)
        return GibbsState(point, beta, travelled(state.trips, beta)), info_of_one(info)

    def _tilt(self, point: Point) -> Scalar:
        return self.ladder.tilt(point.components) - self.log_zeta

    def trail(self, state: GibbsState) -> dict[str, Array]:
        """What every step leaves behind: its weights."""
        return weights_of(self._tilt(state.point))

    def snapshot(self, state: GibbsState) -> dict[str, Any]:
        """What a draw keeps."""
        return {
            "position": state.point.position,
            "lp": self.ladder.at(self.ladder.num_rungs - 1).log_density(state.point),
            "beta": state.beta,
            "round_trips": state.trips.finished,
        }


def weights_of(tilt: Scalar) -> dict[str, Array]:
    """A position's weights for the target and for the base."""
    return {"log_weight": log_target_weight(tilt), "log_weight_base": log_base_weight(tilt)}
