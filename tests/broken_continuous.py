"""Slips in continuous tempering, simulated tempering and anneals, which tests must reject."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key, Point, Scalar
from temperance.ladders.joint import JointLadder
from temperance.ladders.ladder import AbstractLadder, Rungs
from temperance.ladders.prefix import PrefixLadder
from temperance.samplers.annealing.importance import AnnealedImportance, AnnealedInfo
from temperance.samplers.continuous import GibbsState, GibbsTempering
from temperance.samplers.inverse_temperature import beta_law, draw_from
from temperance.samplers.params_by_beta import params_at
from temperance.samplers.plain import PlainInfo, info_of_one
from temperance.samplers.round_trips import travelled
from temperance.samplers.simulated import SimulatedTempering


def printed_log_weight(tilt: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """As printed below (20): t / (1 - exp(-t)), and then its logarithm."""
    with np.errstate(all="ignore"):
        return np.log(tilt / (1 - np.exp(-tilt)))


def tilt_of_the_wrong_sign(betas: np.ndarray, tilt: float) -> np.ndarray:
    """The density of beta for -t: the rate of (17) taken for a slope."""
    return np.exp(-betas * tilt) * tilt / (-np.expm1(-tilt))


class NoJacobian(JointLadder):
    """Log beta' forgotten: u has no proper law, and beta is pushed to its ends."""

    def _combine(self, ends: Float[Array, "2"], u: Scalar) -> Float[Array, "3"]:
        values = super()._combine(ends, u)
        return values.at[0].add(-self.control.log_slope(u))


class TiltOfTheWrongSign(GibbsTempering):
    """The rate of (17) taken for a slope: hot where the target is likely."""

    def step(self, key: Key, state: GibbsState) -> tuple[GibbsState, PlainInfo]:
        key_beta, key_move = jax.random.split(key)
        uniforms = jax.random.uniform(key_beta, (2,), state.beta.dtype)
        knots = self.ladder.betas
        slipped = beta_law(-self.ladder.tilt(state.point.components), knots, self.log_z)
        beta, rest = draw_from(uniforms, slipped, knots)
        params = params_at(self.ladder.betas, self.params, beta)
        rung = self.ladder.between(beta, rest)
        point, info = self.move.step(key_move, state.point, rung, params)
        trips = travelled(state.trips, beta)
        return GibbsState(point, self.law(point.components), beta, trips), info_of_one(info)


class WeightsOfTheWrongSign(SimulatedTempering):
    """The weights subtracted where (7) adds them."""

    def log_probabilities(self, components: Float[Array, " components"]) -> Float[Array, " rungs"]:
        right = SimulatedTempering(self.ladder, self.move, self.params, -self.log_weights)
        return right.log_probabilities(components)


class UnliftedLadder(PrefixLadder):
    """The rows that a rung adds are never looked at: its increment is that of no rows."""

    def lift(self, rung: Rungs, point: Point) -> Point:
        return point


def unconditional_ess(increments: np.ndarray) -> float:
    """The share of the effective size as if particles had no weights before the step."""
    return float(np.mean(increments) ** 2 / np.mean(increments**2))


class ShiftedState(AnnealedImportance):
    """The increment of rung k taken before its move, at the state of rung k - 1."""

    def forward(self, key: Key, ladder: AbstractLadder) -> tuple[Point, Scalar, AnnealedInfo]:
        key_start, key_moves = jax.random.split(key)
        draw = ladder.draw_hottest()
        assert draw is not None
        point = ladder.evaluate(draw(key_start), gradient=False)
        log_weight = jnp.zeros_like(point.components[0])
        info = None
        for rung in range(1, ladder.num_rungs):
            params = jax.tree.map(lambda leaf, r=rung: leaf[r], self.params)
            key_moves, key_move = jax.random.split(key_moves)
            point, told = self.move.step(key_move, point, ladder.at(rung), params)
            log_weight = log_weight + ladder.increments(point.components)[rung - 1]
            info = told
        assert info is not None
        one = info.acceptance[None]
        none = jnp.zeros((1,))
        return point, log_weight, AnnealedInfo(one, none, none, none, none, jnp.zeros(()))
