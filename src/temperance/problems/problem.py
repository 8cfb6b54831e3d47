"""What a user brings: a `Problem` with rows, or a `Target` with a density.

A problem's *terms* are log p(y_i | y_<i, x), one a row, and may only look back:
`terms(x, data[:m]) == terms(x, data)[:m]`. Then the log likelihood of the first m rows is the sum
of the first m terms, for independent rows and for a Gaussian process alike, and a ladder may heat
by dropping rows as well as by powers. Data are an argument of the terms and never closed over, so
that new data of the same shape run the same program.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PyTree

from temperance._types import Data, Key, LogDensity, Position, Scalar, Terms
from temperance.errors import ArgumentError, DataError
from temperance.problems.layout import DrawVector, InPieces, Layout, OnVector
from temperance.rows.in_programs import remote

Dims = Mapping[str, Sequence[str]] | None
Coords = Mapping[str, Sequence[Any]] | None
Constrain = Callable[[Position], dict[str, Array]] | None


@dataclass(frozen=True, eq=False)
class Problem:
    """A Bayesian problem with rows.

    `draw_prior` must draw from exactly the density that `log_prior` is the logarithm of: tempered
    methods use its draws in place of a move at the hottest rung. A constant left out of
    `log_prior` cancels from the log evidence of power posteriors. `independent=True` says that the
    term of one row does not look at the others. `dims` and `coords` name the axes of the
    position's leaves in the result, as in ArviZ. `log_likelihood`, if given, must be the sum of the
    terms; it takes their place where its gradient is cheaper than through the terms. `data` are
    arrays with the rows on the leading axis or, for mini-batch methods, sources of rows such as
    `open_rows` opens.

    `constrain`, if given, maps a position to what the result's `posterior` holds in its place:
    named arrays, such as a scale from its logarithm, or what follows from several leaves. `dims`
    and `coords` are then about those, and the positions themselves are in the group
    `unconstrained_posterior`. It plays no part in sampling: a Jacobian belongs into `log_prior`.
    """

    log_prior: LogDensity
    terms: Terms
    data: Data
    draw_prior: Callable[[Key], Position]
    independent: bool = True
    dims: Dims = None
    coords: Coords = None
    log_likelihood: Callable[[Position, Data], Scalar] | None = None
    constrain: Constrain = None

    def __post_init__(self):
        _check_constrain(self.constrain)
        for name in ("log_prior", "terms", "draw_prior"):
            if not callable(getattr(self, name)):
                raise ArgumentError(f"{name}: wanted a function, got {getattr(self, name)!r}")
        leaves = jax.tree.leaves(self.data)
        if not leaves:
            raise DataError("data: there are no arrays in it; a density without rows is a Target")
        sizes = {np.shape(leaf)[0] if np.ndim(leaf) else None for leaf in leaves}
        if len(sizes) > 1 or None in sizes:
            raise DataError(
                "data: every array carries its rows on the leading axis, all equally many; got "
                f"shapes {[np.shape(leaf) for leaf in leaves]}"
            )
        if self.num_rows < 2:
            raise DataError(
                f"data: got {self.num_rows} row(s), and a Problem is a product over at least two; "
                "check how the data were read, or write a single-term density as a Target"
            )

    @property
    def num_rows(self) -> int:
        return np.shape(jax.tree.leaves(self.data)[0])[0]

    def example(self) -> PyTree[jax.ShapeDtypeStruct]:
        """The shape of a position, without drawing one."""
        try:
            return jax.eval_shape(self.draw_prior, jax.random.key(0))
        except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
            raise ArgumentError(
                f"draw_prior: it fails on a random key: {error}; wanted a function of a key alone "
                "that returns a position"
            ) from error


@runtime_checkable
class Base(Protocol):
    """A normalised density of a vector with a sampler, such as `Gaussian`."""

    def __call__(self, x: Any) -> Any: ...
    def draw(self, key: Any) -> Any: ...


@dataclass(frozen=True, eq=False)
class Target:
    """Any unnormalised log density, and the `base` to heat it towards.

    `base` is a normalised density on the position laid out as one vector, with a `draw(key)`, such
    as `Gaussian`. Left out, it is fitted by the methods that have an option `base` ("st", "ais" and
    others), and method="plain" needs none; both start around `example`. `constrain` is as in
    `Problem`.
    """

    log_density: LogDensity
    base: Base | None = None
    example: PyTree[ArrayLike] = None
    dims: Dims = None
    coords: Coords = None
    constrain: Constrain = None

    def __post_init__(self):
        _check_constrain(self.constrain)
        if not callable(self.log_density):
            raise ArgumentError(f"log_density: wanted a function, got {self.log_density!r}")
        if self.base is None and self.example is None:
            raise ArgumentError(
                "Target needs `example`, a position of the right shape, or a `base` that has one"
            )
        if self.base is not None and not (callable(self.base) and hasattr(self.base, "draw")):
            raise ArgumentError(
                "base: wanted a normalised log density of a vector with a draw(key), such as "
                f"Gaussian(mean, covariance); got {self.base!r}"
            )
        if self.base is not None and self.example is not None:
            wanted = Layout.of(self.example).dimension
            got = np.shape(jax.eval_shape(self.base.draw, jax.random.key(0)))
            if got != (wanted,):
                raise ArgumentError(
                    f"base: draws have shape {got}, but the example has {wanted} values in all"
                )


def _check_constrain(constrain: Any) -> None:
    if constrain is not None and not callable(constrain):
        raise ArgumentError(
            "constrain: wanted a function of a position that returns named arrays, or None, got "
            f"{constrain!r}"
        )


class Likelihood(eqx.Module):
    """Sum of the terms of all rows, as a function of the vector."""

    terms: Terms
    data: Data
    layout: Layout
    log_likelihood: Callable[[Position, Data], Scalar] | None = None

    def __call__(self, vector: Float[Array, " d"] | InPieces) -> Scalar:
        position = self.layout.unravel(vector)
        if self.log_likelihood is not None:
            return self.log_likelihood(position, self.data)
        return jnp.sum(self.terms(position, self.data))


class OnVectorAndRows(eqx.Module):
    """A function of a position and rows, as one of a vector and rows."""

    function: Callable[..., Array]
    layout: Layout

    def __call__(self, vector: Float[Array, " d"], rows: Data) -> Array:
        return self.function(self.layout.unravel(vector), rows)


class Posterior(eqx.Module):
    """Log prior and log likelihood in one, for methods that never take them apart."""

    log_prior: LogDensity
    log_likelihood: Likelihood

    @property
    def layout(self) -> Layout:
        return self.log_likelihood.layout

    def __call__(self, vector: Float[Array, " d"] | InPieces) -> Scalar:
        return self.log_prior(vector) + self.log_likelihood(vector)


class Scatter(eqx.Module):
    """Starting points around an example, where no base says better: uniform within 2 of it."""

    center: Array

    def __call__(self, key: Key) -> Array:
        return self.center + jax.random.uniform(key, self.center.shape, minval=-2.0, maxval=2.0)


class Densities(eqx.Module):
    """A problem or target on vectors: what ladders are built from."""

    hot: LogDensity | None
    cold: LogDensity
    whole: LogDensity
    draw: Callable[[Key], Array]
    layout: Layout
    bridge: bool = eqx.field(static=True)
    num_rows: int = eqx.field(static=True)


def densities_of(problem: Problem | Target, *, by_rows: bool = False) -> Densities:
    """The densities of `problem` on vectors.

    `by_rows` leaves sources where they are, for moves that read a few rows a step: the likelihood
    of all rows is then not to be called.
    """
    if isinstance(problem, Problem):
        layout = Layout.of(problem.example())
        prior = OnVector(problem.log_prior, layout)
        data = problem.data
        data = remote(data, _as_array) if by_rows else jax.tree.map(_as_array, data)
        likelihood = Likelihood(problem.terms, data, layout, problem.log_likelihood)
        draw = DrawVector(problem.draw_prior, layout)
        whole = Posterior(prior, likelihood)
        return Densities(prior, likelihood, whole, draw, layout, False, problem.num_rows)
    base = problem.base
    example = problem.example
    if example is None:
        assert base is not None
        example = jax.eval_shape(base.draw, jax.random.key(0))
    layout = Layout.of(example)
    density = OnVector(problem.log_density, layout)
    if base is None:
        draw: Callable[[Key], Array] = Scatter(layout.ravel(jax.tree.map(_as_float, example)))
        return Densities(None, density, density, draw, layout, True, 0)
    base = jax.tree.map(lambda leaf: jnp.asarray(leaf) if eqx.is_array_like(leaf) else leaf, base)
    return Densities(base, density, density, BaseDraw(base), layout, True, 0)


class BaseDraw(eqx.Module):
    """A base's own sampler, as a value that two equal bases share."""

    base: Base

    def __call__(self, key: Key) -> Array:
        return jnp.asarray(self.base.draw(key), float)


def _as_array(leaf: Any) -> Array:
    array = np.asarray(leaf)
    floats = np.issubdtype(array.dtype, np.floating)
    return jnp.asarray(array, float) if floats else jnp.asarray(array)


def _as_float(leaf: Any) -> Array:
    return jnp.asarray(np.asarray(leaf), float)
