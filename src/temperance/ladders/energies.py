"""Ladders of truncated energies, as the equi-energy sampler of Kou, Zhou and Wong climbs them.

With the energy h(x) = -log pi(x) of the target, temperatures T_0 > ... > T_{K-1} = 1 and levels
H_0 > ... > H_{K-2}, rung k is

    log pi_k(x) = -max(h(x), H_k) / T_k,        grad log pi_k = -grad h / T_k where h > H_k, else 0.

A hot rung is flat below its level, so that it has no modes there to be caught in. The target is not
truncated: its level is -inf. (The paper counts from the target up, and truncates there too, at a
lower bound of h. A bound that is none, such as the lowest energy that somebody has seen, would
flatten the target itself: with 50 parameters and the energy of one draw, variances grow by 1.14.)

The levels of the hot rungs cut the energies into K *rings*, ring 0 the lowest:

    ring j = {x: H_{K-1-j} <= h(x) < H_{K-2-j}},    with H_{K-1} = -inf and beyond H_0 nothing.

**Levels.** From the lowest known energy H* up, (H_{k-1} - H_k) / T_k = c for every rung, the
target's H being H* there. With T_k = r^(K-1-k) that is H_k = H* + c (T_k - 1) / (r - 1). A density
of d parameters at temperature T, if it is normal, has energies of H* + T d / 2 on average, so

    c = (r - 1) d / 2     puts     H_k = H* + (T_k - 1) d / 2:

a rung is flat below the energies that it would have on average. Only rings and hot rungs depend on
H*, so that it need not be a true bound.

**Temperatures.** Two normal neighbours of ratio r have jumps with a log ratio of variance
d (r - 1)^2 / r. With r - 1 = sqrt(2 / d) half of them are accepted, in any ring.
"""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from temperance._types import LogDensity, Numbers, Point, Position, Scalar
from temperance.errors import ArgumentError
from temperance.ladders.ladder import AbstractUniformLadder, Rung, Rungs, share


def truncated(
    log_density: Float[Array, "*shape"], level: Array, weight: Array
) -> Float[Array, "*shape"]:
    """-max(h, H) / T of an energy h = -`log_density`, with `weight` 1 / T."""
    return weight * jnp.minimum(log_density, -level)


class EnergyRung(Rung):
    """One rung of truncated energies; `weights` are (1 / T,)."""

    level: Float[Array, ""]

    def log_density(self, point: Point) -> Scalar:
        return truncated(point.components[0], self.level, self.weights[0])

    def gradient(self, point: Point) -> Float[Array, " d"]:
        assert point.gradients is not None, "this point was evaluated without gradients"
        above = -point.components[0] > self.level
        return share(jnp.where(above, self.weights[0], 0.0), point.gradients[0])

    def __call__(self, position: Position) -> Scalar:
        return self.log_density(self.evaluate(position, gradient=False))


class EnergyLadder(AbstractUniformLadder):
    """Rungs at decreasing `temperatures`, the last of them 1, flat below their `levels`.

    `density` is the target's log density; it need not be normalised. `levels` decrease with the
    temperatures and end at -inf, the target's: any other last level makes a target of its own,
    flat where it matters most, and nothing in the output says so. With all levels -inf it is a
    ladder of powers of the target, with one ring.
    """

    density: LogDensity
    temperatures: Float[Array, " rungs"]
    levels: Float[Array, " rungs"]

    def __init__(self, density: LogDensity, temperatures: Numbers, levels: Numbers):
        heat = check_temperatures(temperatures)
        self.density = density
        self.temperatures = jnp.asarray(heat)
        self.levels = jnp.asarray(check_levels(levels, len(heat)))

    @property
    def num_rungs(self) -> int:
        return self.temperatures.shape[0]

    @property
    def num_rings(self) -> int:
        return self.num_rungs

    @property
    def betas(self) -> Float[Array, " rungs"]:
        """The powers of the target, 1 / T, by rung."""
        return 1.0 / self.temperatures

    def densities(self) -> Sequence[LogDensity]:
        return (self.density,)

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        return self.betas[rung][None]

    def weight_table(self) -> Float[Array, "rungs components"]:
        return self.betas[:, None]

    def at(self, rung: Rungs) -> EnergyRung:
        return EnergyRung(self, self.weights(rung), self.levels[rung])

    def ring(self, components: Float[Array, " components"]) -> Int[Array, ""]:
        """The ring of a point whose components are known, 0 the lowest energies."""
        boundaries = self.levels[-2::-1]
        return jnp.sum(-components[0] >= boundaries)

    # Truncation is not linear in the components, so that what follows from weights does not here.

    def log_density(self, rung: Rungs, position: Position) -> Scalar:
        return self.at(rung)(position)

    def log_densities(self, position: Position) -> Float[Array, " rungs"]:
        return self._every_rung(self.evaluate(position, gradient=False).components)

    def log_increment(self, rung: Rungs, position: Position) -> Scalar:
        return self.increments(self.evaluate(position, gradient=False).components)[rung]

    def increments(self, components: Float[Array, " components"]) -> Float[Array, " pairs"]:
        here, there = self._every_rung(components)[:-1], self._every_rung(components)[1:]
        # Where the target is zero every rung is, and a difference says nothing; it is refused.
        return jnp.where(components[0] == -jnp.inf, -jnp.inf, there - here)

    def _every_rung(self, components: Float[Array, " components"]) -> Float[Array, " rungs"]:
        own = jnp.broadcast_to(components[0], self.levels.shape)
        return truncated(own, self.levels, self.betas)


def spaced_temperatures(hottest: float, num_rungs: int) -> np.ndarray:
    """Temperatures in equal ratios, from `hottest` down to 1."""
    if num_rungs < 2 or not 1.0 < hottest < math.inf:
        raise ArgumentError(
            f"wanted two rungs or more and a hottest temperature above 1, got {num_rungs} and "
            f"{hottest}"
        )
    heat = np.geomspace(hottest, 1.0, num_rungs)
    heat[0], heat[-1] = hottest, 1.0
    return heat


def spaced_levels(lowest: float, temperatures: Numbers, spacing: float) -> np.ndarray:
    """The levels with (H_{k-1} - H_k) / T_k = `spacing` from the energy `lowest` up.

    The last is -inf: the target is not truncated.
    """
    heat = check_temperatures(temperatures)
    if not (np.isfinite(lowest) and 0.0 < spacing < math.inf):
        raise ArgumentError(
            f"wanted a finite lowest energy and a positive spacing, got {lowest} and {spacing}"
        )
    steps = spacing * heat[:0:-1]
    return np.r_[(lowest + np.cumsum(steps))[::-1], -np.inf]


def spacing_for(temperatures: Numbers, dimension: int) -> float:
    """The c of `spaced_levels` at which a hot rung's level is its mean energy, if it is normal."""
    heat = check_temperatures(temperatures)
    ratio = heat[0] ** (1.0 / (len(heat) - 1))
    return 0.5 * dimension * (ratio - 1.0)


def rungs_for_heat(hottest: float, dimension: int) -> float:
    """How many rungs from `hottest` to 1 make half of a normal density's jumps accepted."""
    return 1.0 + math.log(hottest) / math.log1p(math.sqrt(2.0 / dimension))


def check_temperatures(temperatures: Numbers) -> np.ndarray:
    """`temperatures` as an array, if they can be a ladder's."""
    try:
        values = np.asarray(temperatures, float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"temperatures: wanted numbers that decrease to 1, got {temperatures!r}"
        ) from error
    if values.ndim != 1 or values.size < 2:
        raise ArgumentError(
            "temperatures: a ladder needs at least two rungs in one vector, got shape "
            f"{values.shape}; for a single rung use method='plain'"
        )
    if not np.isfinite(values).all() or (np.diff(values) >= 0).any():
        raise ArgumentError(
            f"temperatures must be finite and decreasing (rung 0 is hottest), got {values}"
        )
    if values[-1] != 1:
        raise ArgumentError(f"temperatures must end at 1, the target; got {values}")
    return values


def check_levels(levels: Numbers, num_rungs: int) -> np.ndarray:
    """`levels` as an array, if they can be those of a ladder with so many rungs."""
    try:
        values = np.asarray(levels, float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"levels: wanted energies that decrease, got {levels!r}") from error
    if values.shape != (num_rungs,):
        raise ArgumentError(
            f"levels: wanted one for each of the {num_rungs} temperatures, got shape {values.shape}"
        )
    if values[-1] != -np.inf:
        raise ArgumentError(
            f"levels must end at -inf, because the target is not truncated; got {values}"
        )
    hot = values[:-1]
    if np.isnan(hot).any() or (hot == np.inf).any():
        raise ArgumentError(f"levels must be numbers, got {values}")
    if not (hot == -np.inf).all() and not (hot[1:] < hot[:-1]).all():
        raise ArgumentError(f"levels must decrease with the temperatures, got {values}")
    return values
