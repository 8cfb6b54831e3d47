"""Continuously tempered chains, that carry an inverse temperature between 0 and 1 with them.

    joint   (x, u) <- T(x, u)                      any kernel for the joint density (continuous.py)
    Gibbs   beta <- its law given x, exactly       (inverse_temperature.py)
            x <- T_beta(x)                         any kernel for the density at that beta

Both leave p(x, beta) proportional to q(x)^(1 - beta) (pi(x) / zeta)^beta invariant (paper 4,
equation 16). Every x then counts for the target with weight w_1(x) and for the base with w_0(x),
whatever its beta is, and Z = zeta E[w_1] / E[w_0] (equations 20 to 22; estimates/weighted.py). The
Gibbs chain has a profile log Z(beta) in place of beta log zeta, linear between knots: with what
warm-up learns of it the betas between are visited as often as the ends, however far apart those
lie.

The Gibbs chain uses a step size and a factor of its own at each beta, interpolated between those
that warm-up tunes at the rungs of a ladder (params_by_beta.py). They are functions of beta alone,
which the move holds fixed, so that the move stays exact.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Position
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.joint import JointLadder, Path, as_vector
from temperance.moves.move import AbstractMove, Params, refuse_few_rows
from temperance.programs.random_streams import Sweep, stream
from temperance.samplers.base_jump import check_jumps, jump_from_base
from temperance.samplers.inverse_temperature import (
    BetaLaw,
    beta_law,
    draw_beta,
    draw_from,
    log_base_weight,
    log_target_weight,
)
from temperance.samplers.params_by_beta import params_at
from temperance.samplers.plain import Plain, PlainInfo, PlainState, info_of_one
from temperance.samplers.round_trips import Trips, none_yet, travelled


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
        """At the median of v given the position: elsewhere a chain may never accept a step."""
        middle = self.ladder.evaluate(self.ladder.embed(position), gradient=False)
        half = jnp.full_like(middle.components[1], 0.5)
        law, places = self._law(middle.components), self._path.places
        # Half of the mass lies below the median: so many segments, and a part of the next.
        shares = jnp.cumsum(jnp.exp(law.log_masses - logsumexp(law.log_masses)))
        k = jnp.minimum(jnp.sum(shares < half), shares.shape[0] - 1)
        before = jnp.where(k > 0, shares[k - 1], 0.0)
        part = (half - before) / (shares[k] - before)
        # A position that the target does not allow is at the base.
        part = jnp.where(jnp.isnan(part), half, jnp.clip(part, 0.0, 1.0))
        # A draw counts from the end that the segment's tilt favours.
        uniform = jnp.where(law.tilts[k] > 0, 1 - part, part)
        far, near = draw_beta(uniform, law.tilts[k])
        length = places[k + 1] - places[k]
        place, rest = places[k] + length * far, (1 - places[k + 1]) + length * near
        heated = middle.position._replace(u=self.ladder.control.control(place, rest))
        return JointState(self._plain.init(heated).point, none_yet())

    def step(self, key: Key, state: JointState) -> tuple[JointState, PlainInfo]:
        moved, info = self._plain.step(key, PlainState(state.point))
        place = self.ladder.place(moved.point.position)
        return JointState(moved.point, travelled(state.trips, place)), info

    @property
    def _path(self) -> Path:
        """The ladder's, or the line."""
        path = self.ladder.path
        ends = jnp.asarray([0.0, 1.0])
        return Path(ends, jnp.zeros_like(ends)) if path is None else path

    def _law(self, components: Float[Array, " components"]) -> BetaLaw:
        """Of v, given the position."""
        path = self._path
        return beta_law(components[1], path.betas, -path.excess, path.places)

    def positions(self, state: JointState) -> Float[Array, "1 d"]:
        """Where the chain is, the control last."""
        return as_vector(state.point.position)[None]

    def gradients(self, state: JointState) -> Float[Array, "1 d"] | None:
        return self._plain.gradients(PlainState(state.point))

    def weigh(self, components: Float[Array, " components"]) -> dict[str, Array]:
        """What a state counts for, under the target and under the base."""
        if self.ladder.path is None:
            tilt = components[1]
            return {"log_weight": log_target_weight(tilt), "log_weight_base": log_base_weight(tilt)}
        return _at_the_ends(self._law(components))

    def trail(self, state: JointState) -> dict[str, Array]:
        """What every step leaves behind: its weights."""
        return self.weigh(state.point.components)

    def snapshot(self, state: JointState) -> dict[str, Any]:
        """What a draw keeps."""
        return {
            "position": state.point.position.x,
            "lp": state.point.components[2],
            "beta": self.ladder.beta(state.point.position),
            "control": state.point.position.u,
            "round_trips": state.trips.finished,
        } | self.move.keepsakes(state.point, self.weigh)


class GibbsState(NamedTuple):
    """The point with its law of beta, the beta of its last move, and how far it has travelled."""

    point: Point
    law: BetaLaw
    beta: Float[Array, ""]
    trips: Trips


class GibbsTempering(eqx.Module):
    """Beta from its law given x, then `move` at that beta; draws are weighted.

    `params` belong to the rungs of `ladder`, which begin at beta = 0, and so does `log_z`, a guess
    of log Z at each of them: betas times log zeta is what the paper has. Exact if the move is,
    whatever the guess: where it is far off the chain stays at some betas. `jumps` proposes a draw
    of the base before each move (base_jump.py).
    """

    ladder: GeometricLadder
    move: AbstractMove
    params: Params
    log_z: Float[Array, " rungs"]
    jumps: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        refuse_few_rows(self.move)
        if self.jumps:
            check_jumps(self.ladder)

    @property
    def num_rungs(self) -> int:
        return 1

    def init(self, position: Position) -> GibbsState:
        point = self.ladder.evaluate(position, gradient=self.move.uses_gradient)
        if self.move.gathers:
            point = self.move.remember(point, self.ladder.at(0))
        law = self.law(point.components)
        return GibbsState(point, law, jnp.zeros_like(point.components[0]), none_yet())

    def step(self, key: Key, state: GibbsState) -> tuple[GibbsState, PlainInfo]:
        key_beta, key_move = jax.random.split(key)
        uniforms = jax.random.uniform(key_beta, (2,), state.beta.dtype)
        beta, rest = draw_from(uniforms, state.law, self.ladder.betas)
        params = params_at(self.ladder.betas, self.params, beta)
        rung = self.ladder.between(beta, rest)
        point = state.point
        if self.jumps:
            point = jump_from_base(stream(key, Sweep.JUMP), self.ladder, beta, point, self.move)
        point, info = self.move.step(key_move, point, rung, params)
        info = info._replace(num_evaluations=info.num_evaluations + int(self.jumps))
        trips = travelled(state.trips, beta)
        return GibbsState(point, self.law(point.components), beta, trips), info_of_one(info)

    def law(self, components: Float[Array, " components"]) -> BetaLaw:
        """The law of beta at a point of these components."""
        return beta_law(self.ladder.tilt(components), self.ladder.betas, -self.log_z)

    def weigh(self, components: Float[Array, " components"]) -> dict[str, Array]:
        """What a state counts for, under the target and under the base."""
        return _at_the_ends(self.law(components))

    def trail(self, state: GibbsState) -> dict[str, Array]:
        """What every step leaves behind: its weights."""
        return _at_the_ends(state.law)

    def snapshot(self, state: GibbsState) -> dict[str, Any]:
        """What a draw keeps."""
        return {
            "position": state.point.position,
            "lp": self.ladder.at(self.ladder.num_rungs - 1).log_density(state.point),
            "beta": state.beta,
            "round_trips": state.trips.finished,
        } | self.move.keepsakes(state.point, self.weigh)


def _at_the_ends(law: BetaLaw) -> dict[str, Array]:
    return {"log_weight": law.log_target, "log_weight_base": law.log_base}
