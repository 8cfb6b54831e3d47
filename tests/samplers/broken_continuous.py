"""Slips in continuous and simulated tempering, which the tests must reject."""

import jax
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key, Scalar
from temperance.ladders.joint import JointLadder, OnPath
from temperance.samplers.continuous import GibbsState, GibbsTempering
from temperance.samplers.inverse_temperature import beta_law, draw_from
from temperance.samplers.params_by_beta import params_at
from temperance.samplers.plain import PlainInfo, info_of_one
from temperance.samplers.round_trips import travelled
from temperance.samplers.simulated import SimulatedTempering


def tilt_of_the_wrong_sign(betas: np.ndarray, tilt: float) -> np.ndarray:
    """The density of beta for -t: the rate of (17) taken for a slope."""
    return np.exp(-betas * tilt) * tilt / (-np.expm1(-tilt))


class NoJacobian(JointLadder):
    """Log beta' forgotten: u has no proper law, and beta is pushed to its ends."""

    def _combine(self, ends: Float[Array, "2"], here: OnPath, u: Scalar) -> Float[Array, "3"]:
        values = super()._combine(ends, here, u)
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
