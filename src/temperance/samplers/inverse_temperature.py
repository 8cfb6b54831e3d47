"""The inverse temperature given a position: its law, an exact draw, and two weights.

With the uniform law in beta of continuous tempering, and with

    t(x) = log pi(x) - log zeta - log q(x)        (the paper's -Delta),

beta given x has a density proportional to exp(beta t) on [0, 1]: an exponential, cut at both ends.
Its density at the two ends,

    w_1(x) = p(beta = 1 | x) = t / (1 - exp(-t)),      w_0(x) = p(beta = 0 | x) = t / (exp(t) - 1),

are the importance weights of x for the target and for the base (paper 4, equations 17 to 22). As
they are printed they overflow, or are 0 / 0, for most t. With a = |t|,

    log w_1 = log(a / (1 - exp(-a))) + min(t, 0)                      where a is at least 0.01,
    log w_1 = t / 2 - t^2 / 24 + t^4 / 2880 - t^6 / 181440            elsewhere,
    log w_0(t) = log w_1(-t) = log w_1(t) - t

hold for every t that a number can be.

**A profile.** Where base and target are far apart, hardly any mass lies at betas between them, and
no zeta mends that. Let the law of beta have a density exp(g(beta)) of its own, with g linear
between knots b_0 = 0 < ... < b_K = 1 (in print g is linear all the way, -beta log zeta). Given x,
beta is then an exponential in each segment, with a_k = (b_{k+1} - b_k) t + g_{k+1} - g_k and mass

    m_k = (b_{k+1} - b_k) exp(b_k t + g_k) (exp(a_k) - 1) / a_k
        = (b_{k+1} - b_k) exp(b_{k+1} t + g_{k+1}) / w_1(a_k),

    log w_1 = t + g_K - log sum m,        log w_0 = g_0 - log sum m,

with t = log pi - log q now. With g_k = -log Z(b_k) all betas are visited about alike.

**Places.** Most of the way from base to target may lie at betas next to 0. Let beta be a function
of v in [0, 1], linear between its knots v_0 = 0 < ... < v_K = 1, and the law be one of v. Only the
lengths in front of the masses change: they are v_{k+1} - v_k.

Draws invert the distribution function from the end that the tilt favours, so that the smaller one
of beta and 1 - beta keeps all its digits.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from temperance._types import Scalar

# Below this the series is exact to rounding, and above it the quotient is.
SMALL = 1e-2


def log_target_weight(tilt: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Log p(beta = 1 | x) of a position with log pi - log zeta - log q = `tilt`."""
    a = jnp.abs(tilt)
    large = jnp.maximum(a, SMALL)
    quotient = jnp.log(large) - jnp.log(-jnp.expm1(-large)) + jnp.minimum(tilt, 0.0)
    near = jnp.clip(tilt, -SMALL, SMALL)
    square = near**2
    series = 0.5 * near - square / 24 + square**2 / 2880 - square**3 / 181440
    # An impossible position has no weight; its logarithms would be not a number.
    return jnp.where(tilt == -jnp.inf, -jnp.inf, jnp.where(a < SMALL, series, quotient))


def log_base_weight(tilt: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Log p(beta = 0 | x) of a position with log pi - log zeta - log q = `tilt`."""
    return log_target_weight(-tilt)


class BetaLaw(NamedTuple):
    """The law of beta given a position: log masses of the segments, and log weights at its ends."""

    log_masses: Float[Array, " segments"]
    tilts: Float[Array, " segments"]
    log_target: Scalar
    log_base: Scalar


def beta_law(
    tilt: Scalar,
    knots: Float[Array, " knots"],
    profile: Float[Array, " knots"],
    places: Float[Array, " knots"] | None = None,
) -> BetaLaw:
    """For a position with log pi - log q = `tilt`, and g at the `knots`.

    With `places` it is the law of v, of which beta is a function that is linear between
    beta(places) = knots, as g is.
    """
    lengths = jnp.diff(knots if places is None else places)
    tilts = jnp.diff(knots) * tilt + jnp.diff(profile)
    masses = jnp.log(lengths) + knots[1:] * tilt + profile[1:] - log_target_weight(tilts)
    # Where the target is impossible only the segment next to the base has mass, and next to none.
    masses = jnp.where(jnp.isnan(masses), -jnp.inf, masses)
    total = logsumexp(masses)
    target = jnp.where(tilt == -jnp.inf, -jnp.inf, tilt + profile[-1] - total)
    return BetaLaw(masses, tilts, target, profile[0] - total)


def draw_from(
    uniforms: Float[Array, "2"], law: BetaLaw, knots: Float[Array, " knots"]
) -> tuple[Scalar, Scalar]:
    """Beta of this law, and 1 - beta, from two uniform numbers: a segment, and a place in it."""
    below = jnp.cumsum(jnp.exp(law.log_masses - jnp.max(law.log_masses)))
    last = law.tilts.shape[0] - 1
    k = jnp.minimum(jnp.sum(below < uniforms[0] * below[-1]), last)
    far, near = draw_beta(uniforms[1], law.tilts[k])
    length = knots[k + 1] - knots[k]
    return knots[k] + length * far, (1 - knots[k + 1]) + length * near


def draw_beta(uniform: Scalar, tilt: Scalar) -> tuple[Scalar, Scalar]:
    """Beta given a position, and 1 - beta, from a number uniform in (0, 1)."""
    a = jnp.abs(tilt)
    tiny = jnp.finfo(a.dtype).tiny
    rate = jnp.maximum(a, tiny)
    # The distance from the end that the tilt favours.
    far = jnp.where(a < tiny, uniform, -jnp.log1p(uniform * jnp.expm1(-rate)) / rate)
    far = jnp.clip(far, 0.0, 1.0)
    near = 1 - far
    return jnp.where(tilt > 0, near, far), jnp.where(tilt > 0, far, near)
