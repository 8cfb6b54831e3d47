"""Laws of K values of the fast variables, from which an ensemble is made around one of them.

An ensemble measure is a density xi(f_1, ..., f_K) with marginals xi_k. A measure knows

    spread      the current value at some place k, chosen uniformly, and the others given it:
                f_{-k} ~ xi(. | f_k)
    marginals   log xi_k(f_k) for every k, up to one constant
    joint       log xi(f_1, ..., f_K), up to a constant, where all of them are shifted together

    independent     f_k ~ xi, any normalised density, by default the prior of the fast variables
    exchangeable    f_k ~ N(theta, tau^2) with theta flat. Given one of them theta ~ N(f, tau^2):
                    the others are drawn around that, and not around f itself
    grid            a lattice of m values in each dimension whose extent is drawn anew each time.
                    The current value takes any of the cells: always the same one is wrong
    markov          a random walk, or a stationary autoregression around a centre, both ways from
                    the current value's place
    constellation   any K points, shifted so that one of them is the current value

Where theta is flat all marginals are equal, and xi does not change as all members are shifted, so
that both are zero here. A grid of fixed extent would leave a chain whose fast variables otherwise
never move on one lattice.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key, Numbers, Scalar
from temperance.errors import ArgumentError, unknown_name
from temperance.problems.problem import Base

Fast = Float[Array, " fast"]
Members = Float[Array, "members fast"]
# NumPy's arrays keep double precision until the run that uses them says otherwise.
Widths = Float[Array, " fast"] | Float[np.ndarray, " fast"]


class AbstractMeasure(eqx.Module):
    """A law of the members' fast variables.

    `scale` is one length for each fast variable: that which warm-up learns, where the measure has
    none of its own. It must not depend on the state.
    """

    @abc.abstractmethod
    def spread(self, key: Key, fast: Fast, scale: Fast, num_members: int) -> Members:
        """Members of which one is `fast`."""

    def log_joint(self, members: Members) -> Scalar:
        """Log xi of all members, for comparing them with the same ones shifted."""
        return jnp.zeros((), members.dtype)

    def log_marginals(self, members: Members) -> Float[Array, " members"]:
        """Log xi_k of each member."""
        return jnp.zeros(members.shape[:1], members.dtype)

    def check_members(self, num_members: int, num_fast: int) -> None:
        """Raise where the measure cannot have so many members."""
        return


class Independent(AbstractMeasure):
    """Members that are independent draws of `base`; None stands for the prior."""

    base: Any = None

    def spread(self, key: Key, fast: Fast, scale: Fast, num_members: int) -> Members:
        others = jax.vmap(self.base.draw)(jax.random.split(key, num_members - 1))
        return jnp.concatenate([fast[None], others])

    def log_joint(self, members: Members) -> Scalar:
        return jnp.sum(self.log_marginals(members))

    def log_marginals(self, members: Members) -> Float[Array, " members"]:
        return jax.vmap(self.base)(members)


class Exchangeable(AbstractMeasure):
    """Members around a centre that is flat a priori, with standard deviations `scale`."""

    scale: Widths | None = None

    def spread(self, key: Key, fast: Fast, scale: Fast, num_members: int) -> Members:
        width = scale if self.scale is None else self.scale
        noise = jax.random.normal(key, (num_members, fast.size), fast.dtype)
        others = (noise[:1] + noise[1:]) * width[None, :]
        return fast[None] + jnp.concatenate([jnp.zeros_like(fast)[None], others])


class Grid(AbstractMeasure):
    """A lattice whose extent is uniform between `extent[0]` and `extent[1]` times `scale`."""

    extent: tuple[float, float] = eqx.field(static=True)
    scale: Widths | None = None

    def spread(self, key: Key, fast: Fast, scale: Fast, num_members: int) -> Members:
        width = scale if self.scale is None else self.scale
        num = side(num_members, fast.size)
        key_extent, key_cell = jax.random.split(key)
        low, high = self.extent
        extent = jax.random.uniform(key_extent, fast.shape, fast.dtype, low, high) * width
        steps = jnp.meshgrid(*[jnp.arange(num)] * fast.size, indexing="ij")
        cells = jnp.stack([step.ravel() for step in steps], axis=1)
        own = jax.random.randint(key_cell, fast.shape, 0, num)
        return fast[None] + (cells - own[None]) * (extent / (num - 1))[None]

    def check_members(self, num_members: int, num_fast: int) -> None:
        num = side(num_members, num_fast)
        if num**num_fast != num_members or num < 2:
            near = max(2, num) ** num_fast
            raise ArgumentError(
                f"members: a grid over {num_fast} fast variables has a power of {num_fast} of "
                f"them, got {num_members}; take {near} or {(max(2, num) + 1) ** num_fast}"
            )


class Markov(AbstractMeasure):
    """Members in a row, each near the one before.

    A random walk with steps of `scale`; with a `centre`, the stationary autoregression around it
    of standard deviation `scale` whose neighbours have the given `correlation`.
    """

    correlation: float = eqx.field(static=True)
    scale: Widths | None = None
    centre: Widths | None = None

    def spread(self, key: Key, fast: Fast, scale: Fast, num_members: int) -> Members:
        width = scale if self.scale is None else self.scale
        key_place, key_steps = jax.random.split(key)
        place = jax.random.randint(key_place, (), 0, num_members)
        noise = jax.random.normal(key_steps, (2, num_members, fast.size), fast.dtype)
        centre = jnp.zeros_like(fast) if self.centre is None else jnp.asarray(self.centre)
        pull = 1.0 if self.centre is None else self.correlation
        size = 1.0 if self.centre is None else (1.0 - self.correlation**2) ** 0.5

        def walk(steps: Array) -> Members:
            def one(x: Array, step: Array) -> tuple[Array, Array]:
                x = centre + pull * (x - centre) + size * width * step
                return x, x

            return jax.lax.scan(one, fast, steps)[1]

        # Reversible, so that the way back is drawn like the way on.
        on, back = walk(noise[0]), walk(noise[1])
        ahead = jnp.arange(num_members) - place
        after, before = on[jnp.maximum(ahead - 1, 0)], back[jnp.maximum(-ahead - 1, 0)]
        others = jnp.where((ahead > 0)[:, None], after, before)
        return jnp.where((ahead == 0)[:, None], fast[None], others)

    def log_joint(self, members: Members) -> Scalar:
        if self.centre is None:
            return jnp.zeros((), members.dtype)
        assert self.scale is not None
        z = (members - self.centre[None]) / self.scale[None]
        steps = (z[1:] - self.correlation * z[:-1]) ** 2 / (1.0 - self.correlation**2)
        return -0.5 * jnp.sum(z[0] ** 2) - 0.5 * jnp.sum(steps)

    def log_marginals(self, members: Members) -> Float[Array, " members"]:
        if self.centre is None:
            return jnp.zeros(members.shape[:1], members.dtype)
        assert self.scale is not None
        z = (members - self.centre[None]) / self.scale[None]
        return -0.5 * jnp.sum(z**2, axis=1)


class Constellation(AbstractMeasure):
    """Given points, shifted so that one of them is the current value, each as likely as another."""

    points: Float[Array, "members fast"] | Float[np.ndarray, "members fast"]

    def spread(self, key: Key, fast: Fast, scale: Fast, num_members: int) -> Members:
        own = jax.random.randint(key, (), 0, num_members)
        points = jnp.asarray(self.points)
        return points + (fast - points[own])[None]

    def check_members(self, num_members: int, num_fast: int) -> None:
        if self.points.shape != (num_members, num_fast):
            raise ArgumentError(
                f"base: a constellation of {num_members} members over {num_fast} fast variables "
                f"has points of shape {(num_members, num_fast)}, got {self.points.shape}"
            )


def independent(base: Base | None = None) -> Independent:
    """Members drawn independently from `base`, by default the prior of the fast variables.

    `base` is a normalised log density of the fast leaves laid out as one vector, with a
    `draw(key)`, such as `Gaussian`.
    """
    if base is not None and (isinstance(base, type) or not isinstance(base, Base)):
        raise ArgumentError(
            "base: wanted a log density of the fast variables with a draw(key), such as "
            f"Gaussian(mean, covariance), got {base!r}"
        )
    return Independent(base)


def exchangeable(scale: Numbers | None = None) -> Exchangeable:
    """Members N(theta, scale^2) around a flat centre; by default as wide as the posterior."""
    return Exchangeable(_widths("scale", scale))


def grid(extent: tuple[float, float] = (1.5, 2.5), scale: Numbers | None = None) -> Grid:
    """A lattice whose extent is drawn between both times `scale`, by default the posterior's.

    An extent of one length, fixed, leaves out most values of the fast variables.
    """
    low, high = (float(e) for e in extent)
    if not 0 < low < high < np.inf:
        raise ArgumentError(f"extent: wanted two lengths with 0 < low < high, got {extent!r}")
    return Grid((low, high), _widths("scale", scale))


def markov(
    scale: Numbers | None = None, centre: Numbers | None = None, correlation: float = 0.9
) -> Markov:
    """Members along a random walk of steps `scale`, or along an autoregression around `centre`."""
    if not 0 <= correlation < 1:
        raise ArgumentError(f"correlation: wanted a number in [0, 1), got {correlation!r}")
    if centre is not None and scale is None:
        raise ArgumentError(
            "scale: an autoregression around a centre needs its standard deviations, because "
            "they are part of its density; give scale=..."
        )
    middle: Any = None if centre is None else np.atleast_1d(np.asarray(centre, float))
    return Markov(float(correlation), _widths("scale", scale), middle)


def constellation(points: Numbers) -> Constellation:
    """Members at `points`, of shape (members, fast variables), shifted together."""
    where: Any = np.asarray(points, float)
    where = where[:, None] if where.ndim == 1 else where
    if where.ndim != 2 or where.shape[0] < 2 or not np.isfinite(where).all():
        raise ArgumentError(
            f"points: wanted at least two finite points, one a row, got shape {np.shape(points)}"
        )
    return Constellation(where)


MEASURES = {
    "independent": independent,
    "exchangeable": exchangeable,
    "grid": grid,
    "markov": markov,
}


def measure_of(base: "str | AbstractMeasure") -> AbstractMeasure:
    """A measure from its name, or the measure itself."""
    if isinstance(base, AbstractMeasure):
        return base
    if isinstance(base, str):
        if base not in MEASURES:
            raise unknown_name("base measure", base, MEASURES)
        return MEASURES[base]()
    raise ArgumentError(
        f"base: wanted one of {', '.join(map(repr, MEASURES))} or a measure such as "
        f"exchangeable(scale=0.5), got {base!r}"
    )


def side(num_members: int, num_fast: int) -> int:
    """Values in each dimension of a grid of so many members, to the nearest whole number."""
    return round(num_members ** (1.0 / num_fast))


def _widths(name: str, value: Numbers | None) -> Any:
    if value is None:
        return None
    widths = np.atleast_1d(np.asarray(value, float))
    if widths.ndim != 1 or not (np.isfinite(widths) & (widths > 0)).all():
        raise ArgumentError(
            f"{name}: wanted a positive number, or one for each fast variable, got {value!r}"
        )
    return widths
