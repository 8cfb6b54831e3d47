"""Resampling of particles: how often each goes on, by its weight.

With normalised weights W^1 ... W^N and edges C^i = W^1 + ... + W^i, a place u in [0, 1) belongs to
the particle i with C^{i-1} <= u < C^i. The ancestors of M new particles are those at M places,

    multinomial   u_m = U_m
    stratified    u_m = (m - 1 + U_m) / M,      one uniform for each m
    systematic    u_m = (m - 1 + U) / M,        one uniform for all of them

(Douc and Cappé 2005). In each of them particle i is expected M W^i times, and so the sum
of f over the ancestors is M sum_i W^i f(x^i) on average. That alone makes an estimate of Z
unbiased; stratified and systematic resampling add less variance than multinomial does. A systematic
offset U that is not random is not unbiased.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from temperance._types import Key
from temperance.errors import unknown_name

SCHEMES = ("multinomial", "stratified", "systematic")


def num_uniforms(num: int, scheme: str) -> int:
    """How many uniforms `num` places are made of."""
    return 1 if scheme == "systematic" else num


def places_of(uniforms: Float[Array, " uniforms"], num: int, scheme: str) -> Float[Array, " num"]:
    """The places of `num` ancestors in [0, 1)."""
    if scheme == "multinomial":
        return uniforms
    strata = jnp.arange(num, dtype=uniforms.dtype)
    return (strata + jnp.broadcast_to(uniforms, (num,))) / num


def ancestors_at(
    places: Float[Array, " num"], log_weights: Float[Array, " particles"]
) -> Int[Array, " num"]:
    """The particles at these places; one without weight is never among them."""
    edges = jnp.cumsum(jnp.exp(log_weights - jnp.max(log_weights)))
    # The last edge is 1 whatever the rounding, and a place that was rounded up to 1 is below it.
    below_one = 1 - jnp.finfo(edges.dtype).epsneg
    inside = jnp.minimum(places, below_one)
    return jnp.searchsorted(edges / edges[-1], inside, side="right")


def draw_ancestors(
    key: Key, log_weights: Float[Array, " particles"], num: int, scheme: str
) -> Int[Array, " num"]:
    """The ancestors of `num` new particles."""
    uniforms = jax.random.uniform(key, (num_uniforms(num, scheme),), log_weights.dtype)
    return ancestors_at(places_of(uniforms, num, scheme), log_weights)


def check_scheme(scheme: str) -> None:
    """Raise where no resampling scheme has this name."""
    if scheme not in SCHEMES:
        raise unknown_name("resampling scheme", scheme, SCHEMES)
