"""What a variational fit climbs: a lower bound on log Z, over a fixed set of standard normal draws.

A Gaussian q = N(mean, factor factor') with z standard normal gives, for a density p = Z pi,

    log Z >= E log p(mean + factor z) + log det factor + (d/2) (1 + log 2 pi),

with equality where q = pi. The entropy is in closed form and the expectation is a mean over M draws
z_j that stay the same from the first step to the last (deterministic ADVI: Giordano, Ingram and
Broderick 2024). The bound is then an ordinary function of mean and factor, which a quasi-Newton
method climbs without a learning rate, and the same call gives the same fit.

Draws come in pairs z, -z, so that their mean is zero; with at least d pairs they are turned and
scaled to have covariance I, and without it each coordinate is scaled to variance one. With both the
mean over draws of every quadratic is its expectation, and a Gaussian p is fitted exactly.

With fewer pairs than dimensions some direction is seen by no draw, a dense factor grows along it
and the function has no maximum. So a dense family needs M >= 2 d.

Parameters are counted in `unit`s about `center`: x = center + unit (mean + factor z). With units of
about a standard deviation the function bends by about one along every parameter.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import LogDensity, Scalar

# Numbers that one evaluation may hold at once; beyond it draws are taken in turns.
MOST_NUMBERS = 2**24
# Where a draw has no finite log density: low enough that no step goes there, in any precision.
LOWEST = -1e30
LOG_TWO_PI = float(np.log(2 * np.pi))


class Parameters(NamedTuple):
    """Mean, log of the factor's diagonal, and what is below it by rows; None for a diagonal one."""

    mean: Float[Array, " d"]
    log_scale: Float[Array, " d"]
    below: Float[Array, " below"] | None

    def factor(self) -> Float[Array, " d"] | Float[Array, "d d"]:
        """Lower triangular, or the diagonal alone."""
        scale = jnp.exp(self.log_scale)
        if self.below is None:
            return scale
        rows, columns = np.tril_indices(scale.size, -1)
        return jnp.diag(scale).at[rows, columns].set(self.below)


def standard(dimension: int, scale: float, *, dense: bool) -> Parameters:
    """Mean zero and covariance scale^2 I."""
    mean = jnp.zeros(dimension)
    below = jnp.zeros(dimension * (dimension - 1) // 2) if dense else None
    return Parameters(mean, jnp.full_like(mean, np.log(scale)), below)


def fixed_draws(num_samples: int, dimension: int, seed: int) -> np.ndarray:
    """Pairs of standard normal draws with the moments of their law, as far as they can."""
    half = np.random.default_rng(seed).standard_normal((num_samples // 2, dimension))
    if len(half) >= dimension:
        root = np.linalg.cholesky(half.T @ half / len(half))
        half = np.linalg.solve(root, half.T).T
    else:
        half = half / np.sqrt(np.mean(half**2, axis=0))
    return np.concatenate([half, -half])


class Objective(eqx.Module):
    """Minus the bound of the Gaussian with given parameters, over fixed `draws`."""

    whole: LogDensity
    center: Float[Array, " d"]
    unit: Float[Array, " d"]
    draws: Float[Array, "m d"]
    at_once: int = eqx.field(static=True)

    def __call__(self, parameters: Parameters) -> Scalar:
        factor = parameters.factor()
        white = self.draws * factor[None] if factor.ndim == 1 else self.draws @ factor.T
        places = self.center[None] + self.unit[None] * (parameters.mean[None] + white)
        entropy = jnp.sum(parameters.log_scale + jnp.log(self.unit) + 0.5 * (1 + LOG_TWO_PI))
        return -mean_log_density(places, self.whole, self.at_once) - entropy


def turns(num_rows: int, dimension: int) -> int:
    """How many draws are evaluated at once."""
    return max(1, MOST_NUMBERS // max(num_rows, dimension))


@eqx.filter_custom_vjp
def mean_log_density(places: Float[Array, "m d"], whole: LogDensity, at_once: int) -> Scalar:
    """The mean of `whole`, and a wall without a slope where it is not finite.

    A gradient that is not finite would spoil all later steps; a wall only shortens the next one.
    """
    return _tame(jnp.mean(_in_turns(whole, places, at_once)))


@mean_log_density.def_fwd
def _forward(
    perturbed: object,  # noqa: ARG001 (Equinox hands it over, and only places are)
    places: Float[Array, "m d"],
    whole: LogDensity,
    at_once: int,
) -> tuple[Scalar, Float[Array, "m d"]]:
    values, slopes = _in_turns(jax.value_and_grad(whole), places, at_once)
    good = jnp.isfinite(jnp.mean(values)) & jnp.all(jnp.isfinite(slopes))
    mean = jnp.where(good, _tame(jnp.mean(values)), LOWEST)
    return mean, jnp.where(good, slopes / len(places), 0.0)


@mean_log_density.def_bwd
def _backward(slopes: Float[Array, "m d"], weight: Scalar, *_: object) -> Float[Array, "m d"]:
    return weight * slopes


def log_ratios(
    whole: LogDensity,
    mean: Float[Array, " d"],
    factor: Float[Array, " d"] | Float[Array, "d d"],
    draws: Float[Array, "m d"],
    at_once: int,
) -> Float[Array, " m"]:
    """The log of p / q at draws of q: their mean is the bound, and they are equal where q is p."""
    diagonal = factor.ndim == 1
    white = draws * factor[None] if diagonal else draws @ factor.T
    values = _in_turns(whole, mean[None] + white, at_once)
    log_scale = jnp.sum(jnp.log(factor if diagonal else jnp.diagonal(factor)))
    log_q = -0.5 * jnp.sum(draws**2, axis=1) - log_scale - 0.5 * mean.size * LOG_TWO_PI
    return values - log_q


def _in_turns(function: Callable[..., Any], places: Float[Array, "m d"], at_once: int) -> Any:
    if len(places) <= at_once:
        return jax.vmap(function)(places)
    return jax.lax.map(function, places, batch_size=at_once)


def _tame(value: Scalar) -> Scalar:
    return jnp.where(jnp.isfinite(value), value, LOWEST)
