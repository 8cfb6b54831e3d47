"""Continuous tempering as a density: positions and an inverse temperature, drawn together.

A control u on the real line sets beta(u) in (0, 1), and the joint density of (x, u) is

    log p(x, u) = (1 - beta) log q(x) + beta (log pi(x) - log zeta) + log beta'(u)

with a *normalised* base q, an unnormalised target pi and a guess zeta of its Z (paper 4, equations
14 to 16; for a posterior heated towards its prior the first term is log prior and the second beta
times log likelihood). Any kernel for densities runs on it. With t = log pi - log zeta - log q,

    d/dx = (1 - beta) grad log q + beta grad log pi,      d/du = beta' t + (log beta')'.

The default control is logistic: 1 - beta is beta(-u), never a difference from 1, and
log beta' = -softplus(u) - softplus(-u). The Jacobian log beta' makes beta uniform a priori; with
the opposite sign the density would grow without bound in u.

**A path of its own.** p(beta) is then proportional to Z(beta) / zeta^beta. Log Z(beta) is convex,
and where base and target are far apart it lies so far below the line between its ends that a chain
is at one of them or at the other and never goes over. No zeta mends that. A `Path` has a place v in
(0, 1) that u sets, beta(v), and an excess e(v) over the line, both linear between knots k / K:

    log p(x, u) = (1 - beta) log q(x) + beta (log pi(x) - log zeta) - e(v) + log v'(u).

With beta(v_k) at equal shares of the barrier and e_k = log Z(beta_k) - beta_k log zeta all places
are visited about alike. e is 0 at both ends, so that Z = zeta E[w_1] / E[w_0] as before, with the
densities of v at 1 and at 0 given x as weights.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from temperance._types import Key, LogDensity, Point, Position, Scalar
from temperance.ladders.ladder import AbstractUniformLadder, Rungs, evaluate, weighted


class Heated(NamedTuple):
    """A position and the control of its temperature."""

    x: Position
    u: Scalar


@runtime_checkable
class Control(Protocol):
    """A smooth increasing map of the real line onto (0, 1); `control` is its inverse."""

    def beta(self, u: Scalar) -> Scalar: ...
    def one_minus_beta(self, u: Scalar) -> Scalar: ...
    def log_slope(self, u: Scalar) -> Scalar: ...
    def control(self, beta: Scalar, rest: Scalar) -> Scalar: ...


class Logistic(eqx.Module):
    """Beta = 1 / (1 + exp(-u)): a logistic law for u where beta is uniform."""

    def beta(self, u: Scalar) -> Scalar:
        return jax.nn.sigmoid(u)

    def one_minus_beta(self, u: Scalar) -> Scalar:
        return jax.nn.sigmoid(-u)

    def log_slope(self, u: Scalar) -> Scalar:
        return -jax.nn.softplus(u) - jax.nn.softplus(-u)

    def control(self, beta: Scalar, rest: Scalar) -> Scalar:
        """The u of a beta, with 1 - beta beside it; at the very ends a finite one."""
        tiny = jnp.finfo(beta.dtype).tiny
        return jnp.log(jnp.maximum(beta, tiny)) - jnp.log(jnp.maximum(rest, tiny))


class Path(eqx.Module):
    """Beta at evenly spaced places between 0 and 1, and there the excess of log Z over the line.

    Betas increase from 0 to 1, and the excess is 0 at both ends.
    """

    betas: Float[Array, " knots"]
    excess: Float[Array, " knots"]

    @property
    def places(self) -> Float[Array, " knots"]:
        return jnp.linspace(0.0, 1.0, self.betas.shape[0], dtype=self.betas.dtype)

    def at(self, place: Scalar, rest: Scalar) -> "OnPath":
        """At a place, with 1 - place beside it, which keeps its digits near the target."""
        last = self.betas.shape[0] - 2
        segments = last + 1
        k = jnp.clip(jnp.floor(place * segments).astype(int), 0, last)
        far, near = place * segments - k, rest * segments - (last - k)
        step = self.betas[k + 1] - self.betas[k]
        climb = self.excess[k + 1] - self.excess[k]
        return OnPath(
            self.betas[k] + step * far,
            (1 - self.betas[k + 1]) + step * near,
            self.excess[k] + climb * far,
            segments * step,
            segments * climb,
        )


class OnPath(NamedTuple):
    """Beta, 1 - beta and the excess at a place, and the slopes of the first and the last."""

    beta: Scalar
    rest: Scalar
    excess: Scalar
    slope: Scalar
    climb: Scalar


class JointLadder(AbstractUniformLadder):
    """One rung: the joint density of (x, u). Positions are `Heated`.

    `hot` must be normalised, or log evidence is off by its constant (that of a prior cancels).
    Where `bridge`, `cold` is the log target, otherwise the log likelihood. `log_zeta` is a guess of
    log Z: whatever it is the draws are exact, but far from log Z the chain stays at one end. `path`
    is how beta follows from the control, by default beta is v itself and log Z a line. The
    components of a point are the joint log density, the tilt t(x) and the target's log density;
    the last two have no weight and are there to be read.
    """

    hot: LogDensity
    cold: LogDensity
    log_zeta: Float[Array, ""]
    bridge: bool = eqx.field(static=True)
    control: Control = Logistic()
    draw_hot: Callable[[Key], Position] | None = None
    path: Path | None = None

    @property
    def num_rungs(self) -> int:
        return 1

    def densities(self) -> Sequence[LogDensity]:
        def component(c: int) -> LogDensity:
            return lambda heated: self._components(heated)[c]

        return [component(c) for c in range(3)]

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        return jnp.asarray([1.0, 0.0, 0.0])

    def embed(self, position: Position) -> Heated:
        """Half way between base and target."""
        flat, _ = ravel_pytree(position)
        return Heated(position, jnp.zeros((), flat.dtype))

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        if not gradient:
            return Point(position, self._components(position), None)
        ends = evaluate((self.hot, self.cold), position.x, gradient=True)
        here = self.on_path(position.u)
        values = self._combine(ends.components, here, position.u)
        shares = self._shares(here)
        assert ends.gradients is not None
        slope = shares[0] * ends.gradients[0] + shares[1] * ends.gradients[1]
        control = jnp.exp(self.control.log_slope(position.u)) * (
            values[1] if self.path is None else here.slope * values[1] - here.climb
        )
        control = control + jax.grad(self.control.log_slope)(position.u)
        return Point(position, values, (jnp.append(slope, control),))

    def beta(self, position: Heated) -> Scalar:
        return self.on_path(position.u).beta

    def place(self, position: Heated) -> Scalar:
        """How far it is from the base: v, which is beta itself where there is no path."""
        return self.control.beta(position.u)

    def on_path(self, u: Scalar) -> OnPath:
        """Where a control is."""
        place, rest = self.control.beta(u), self.control.one_minus_beta(u)
        if self.path is None:
            none = jnp.zeros_like(place)
            return OnPath(place, rest, none, none + 1, none)
        return self.path.at(place, rest)

    def _shares(self, here: OnPath) -> Float[Array, "2"]:
        return jnp.stack([here.rest if self.bridge else jnp.ones_like(here.beta), here.beta])

    def _components(self, position: Heated) -> Float[Array, "3"]:
        ends = evaluate((self.hot, self.cold), position.x, gradient=False).components
        return self._combine(ends, self.on_path(position.u), position.u)

    def _combine(self, ends: Float[Array, "2"], here: OnPath, u: Scalar) -> Float[Array, "3"]:
        """The joint log density, the tilt and the target's log density."""
        hot, cold = ends[0], ends[1]
        tilt = (cold - hot if self.bridge else cold) - self.log_zeta
        joint = weighted(self._shares(here), ends) - here.beta * self.log_zeta
        if self.path is not None:
            joint = joint - here.excess
        target = cold if self.bridge else hot + cold
        return jnp.stack([joint + self.control.log_slope(u), tilt, target])


def as_vector(position: Heated) -> Array:
    """The position and then the control, as one vector."""
    return ravel_pytree(position)[0]
