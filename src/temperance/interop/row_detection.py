"""Whether a foreign model's likelihood is a product over rows, found by trying.

A model is taken for a product over rows if its terms on some of the rows, asked for alone, are the
terms that these rows have among all:

    terms(x, data[:m]) == terms(x, data)[:m]        needed: otherwise there are no rows
    terms(x, data[i])  == terms(x, data)[i]         for i from the end, and for some in any order:
                                                    then the rows are independent

Anything of the model that has as many entries as there are rows and does not come from the data
fails the first. Positions for the trial are of the order of one in every unconstrained coordinate,
so that what differs, differs by far more than rounding.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from temperance._types import Data, Key, LogDensity, Position, Scalar, Terms
from temperance.errors import ModelError
from temperance.problems.layout import Layout
from temperance.problems.problem import Constrain, Coords, Dims, Problem, Target

TOLERANCE = 1e-9
POSITIONS = 2
# A transform that allows nine tenths of a prior's mass fails with probability 1 - 3e-5.
DRAWS = 100
# What a model raises when it is given fewer rows than it was written for.
FAILURES = (TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError,
            NotImplementedError)  # fmt: skip


class FrontEndWarning(UserWarning):
    """A model came in as a Target without rows, or without a base; the message says why."""


class NotRowsError(Exception):
    """Why a likelihood is not a product over rows; it never leaves this sub-package."""


@dataclass(frozen=True, eq=False)
class ModelTarget(Target):
    """A model that is not a product over rows, and the `reason` why."""

    reason: str = ""


@dataclass(frozen=True, eq=False)
class PriorBase:
    """A prior as the base of a target: a density of the vector, and its exact draws."""

    log_prior: LogDensity
    draw_prior: Callable[[Key], Position]
    layout: Layout

    def __call__(self, x: Float[Array, " d"]) -> Scalar:
        return self.log_prior(self.layout.unravel(x))

    def draw(self, key: Key) -> Float[Array, " d"]:
        return self.layout.ravel(self.draw_prior(key))


@runtime_checkable
class ForeignModel(Protocol):
    """A model of another package, as functions of an unconstrained position."""

    @property
    def example(self) -> dict[str, np.ndarray]: ...
    def log_prior(self, position: Position) -> Scalar: ...
    def log_density(self, position: Position) -> Scalar: ...
    def constrain(self, position: Position) -> dict[str, Array]: ...
    def dims(self) -> Dims: ...
    def coords(self) -> Coords: ...


@dataclass(frozen=True, eq=False)
class Parts:
    """What a front end makes of a model, before it is known whether it has rows.

    `terms` and `data` are absent where `reason` says why there are no rows; `draw_prior` is absent
    where `undrawn` says why the prior cannot be drawn from. `example` is a position.
    """

    log_prior: LogDensity
    log_density: LogDensity
    constrain: Constrain
    example: dict[str, np.ndarray]
    dims: Dims
    coords: Coords
    draw_prior: Callable[[Key], Position] | None = None
    undrawn: str = ""
    terms: Terms | None = None
    data: Data = None
    reason: str = ""

    @classmethod
    def of(cls, model: ForeignModel, **found: Any) -> "Parts":
        """What the model says of itself, and what was `found` of its prior and its rows."""
        parts = cls(
            model.log_prior, model.log_density, model.constrain, model.example, model.dims(),
            model.coords(), **found,
        )  # fmt: skip
        with jax.enable_x64(True):
            check_density(parts)
        return parts


def assemble(parts: Parts) -> Problem | Target:
    """A `Problem` if rows and prior draws are there and stand the trial, else a `Target`."""
    draw, terms, reason = parts.draw_prior, parts.terms, parts.reason
    undrawn = parts.undrawn
    if draw is not None and not _finite(draw):
        draw = None
        undrawn = (
            "some of the prior's draws have no finite unconstrained value: a transform, such as an "
            "ordered one, allows less than the prior does"
        )
    shown: dict[str, Any] = {
        "dims": parts.dims, "coords": parts.coords, "constrain": parts.constrain,
    }  # fmt: skip
    if draw is None:
        base = None
        reason = f"{undrawn}; so there is nothing to heat it towards"
    else:
        if terms is not None:
            try:
                independent = are_independent(terms, parts.data, parts.example)
            except NotRowsError as error:
                reason = str(error)
            else:
                return Problem(
                    parts.log_prior, terms, parts.data, draw, independent=independent, **shown
                )
        base = PriorBase(parts.log_prior, draw, Layout.of(parts.example))
    what = (
        "without a base: base='fits' has one fitted, with method 'st', 'gibbs-ct', 'joint-ct', "
        "'ais' or 'smc', and method='plain' needs none; give Target(..., base=...) for others"
        if base is None
        else "heated by powers alone: methods that leave rows out cannot be used"
    )
    warnings.warn(f"the model is a Target {what}. Why: {reason}", FrontEndWarning, stacklevel=4)
    return ModelTarget(parts.log_density, base, parts.example, reason=reason, **shown)


def _finite(draw: Callable[[Key], Position]) -> bool:
    draws = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), DRAWS))
    return all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(draws))


def check_density(parts: Parts) -> None:
    """That the density can be evaluated at all."""
    try:
        shape = np.shape(jax.eval_shape(parts.log_density, parts.example))
    except FAILURES as error:
        raise ModelError(f"model: its log density cannot be evaluated by JAX: {error}") from error
    if shape != ():
        raise ModelError(f"model: wanted a scalar log density, got shape {shape}")


def are_independent(terms: Terms, data: Data, example: PyTree) -> bool:
    """Whether rows are independent; `NotRowsError` if the terms are none, with the reason."""
    n = np.shape(jax.tree.leaves(data)[0])[0]
    terms = jax.jit(terms)
    if n < 2:
        raise NotRowsError(f"there is {n} row, and leaving rows out needs at least two")
    layout = Layout.of(example)
    rng = np.random.default_rng(n)
    half = n // 2
    independent = True
    for _ in range(POSITIONS):
        position = layout.unravel(jnp.asarray(rng.normal(size=layout.dimension) / 2))
        whole = _ask(terms, position, data, np.arange(n))
        first = np.arange(half)
        if not _alike(_ask(terms, position, data, first), whole[first], whole):
            raise NotRowsError(
                f"the terms of the first {half} rows change when the other {n - half} are left "
                "out, so the likelihood is not a product over rows as the model computes it: "
                "centre, scale and average the data before the model, not in it"
            )
        for some in (np.arange(half, n), rng.permutation(n)[: max(1, n // 3)]):
            try:
                found = _ask(terms, position, data, some)
            except NotRowsError:
                independent = False
            else:
                independent &= _alike(found, whole[some], whole)
    return independent


def _ask(terms: Terms, position: Position, data: Data, rows: np.ndarray) -> np.ndarray:
    some = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[rows]), data)
    names = ", ".join(data) if isinstance(data, dict) else "the data"
    advice = (
        f"everything with an entry for each row has to come from what has its rows first ({names})"
        ", and sizes from those arrays"
    )
    try:
        values = np.asarray(terms(position, some))
    except FAILURES as error:
        what = " ".join(str(error).split())[:200]
        raise NotRowsError(
            f"asked for {len(rows)} of the rows alone, the model fails ({what}); {advice}"
        ) from error
    if values.shape != (len(rows),):
        raise NotRowsError(
            f"asked for {len(rows)} of the rows alone, the model gives terms of shape "
            f"{values.shape}; {advice}"
        )
    return values


def _alike(one: np.ndarray, two: np.ndarray, scale: np.ndarray) -> bool:
    finite = np.abs(scale[np.isfinite(scale)])
    most = TOLERANCE * max(1.0, float(finite.max(initial=0.0)))
    return bool(np.allclose(one, two, rtol=TOLERANCE, atol=most, equal_nan=True))
