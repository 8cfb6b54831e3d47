"""How much a row's log likelihood can change in a step: c_i M(x, x*).

For terms that are functions f_i(eta_i) of a linear predictor eta_i = a_i . x, with |f_i'| <= L_1
and |f_i'''| <= L_3, and any invertible F, e = F^{-1} (x - m), Cauchy and Schwarz give

    |eta_i* - eta_i| <= |F' a_i| |e* - e|,

    the terms themselves   |l_i(x*) - l_i(x)| <= L_1 |F' a_i| |e* - e|,
    their remainders       |rho_i(x*) - rho_i(x)| <= (L_3 / 6) |F' a_i|^3
                                                     |e* - e| (|e|^2 + |e| |e*| + |e*|^2),

the latter because rho_i as a function of t = eta_i - a_i . m has a slope of at most L_3 t^2 / 2,
whose integral from t to t* is L_3 (t*^3 - t^3) / 6 = L_3 (t* - t)(t^2 + t t* + t*^2) / 6.

With m the mode and F a root of the covariance there, |F' a_i| is of order sqrt(d / n), and |e| of
order sqrt(d). The bounds on the terms then add up to about sqrt(n) d for a step across the
posterior, and those on the remainders to about d^3 / sqrt(n): with many rows, a few.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Numbers, Scalar
from temperance.errors import ArgumentError, unknown_name
from temperance.moves.minibatch.laplace import Laplace


class Smoothness(NamedTuple):
    """L_1 and L_3 of a family at scale one; None where there is no third derivative."""

    slope: float
    third: float | None


FAMILIES = {
    "logistic": Smoothness(1.0, 1 / (6 * np.sqrt(3))),  # y eta - log(1 + exp(eta)), y in [0, 1]
    "cauchy": Smoothness(1.0, 1.5 + np.sqrt(2)),  # -log(1 + (y - eta)^2)
    "laplace": Smoothness(1.0, None),  # -|y - eta|
    "huber": Smoothness(1.0, None),  # -(y - eta)^2 / 2 within 1, and straight beyond
}


class Bounds(eqx.Module):
    """|l_i(x*) - l_i(x)| <= scales[i] * distance(x, x*), for every row and any two positions.

    `distance` takes positions laid out as one vector, in the order of `jax.tree.leaves`, and must
    be symmetric. With `around` the bounds are those of the remainders about its mode. `tightness`
    is a guess at the mean square of the share of its bound that a row uses; it sets the default of
    chi, and no draw is wrong because of it. Bounds that are too small are: a run counts the rows
    on which it sees that, and `summary` warns.
    """

    scales: Float[Array, " n"] | Float[np.ndarray, " n"]
    total: Float[Array, ""] | Float[np.ndarray, ""]
    distance: Callable[..., Scalar]
    tightness: float = eqx.field(static=True)
    around: Laplace | None

    def __init__(
        self,
        scales: Numbers,
        distance: Callable[..., Scalar],
        tightness: float = 0.1,
        around: Laplace | None = None,
    ):
        # NumPy's arrays keep double precision until the run that uses them says otherwise.
        self.scales = _checked_scales(scales)
        self.total = np.asarray(self.scales.sum())
        self.distance = distance
        self.tightness = float(tightness)
        self.around = around
        if not callable(distance):
            raise ArgumentError(
                f"distance: wanted a symmetric function of two vectors, got {distance!r}"
            )
        if not 0 < self.tightness <= 1:
            raise ArgumentError(f"tightness: wanted a number in (0, 1], got {tightness!r}")

    @property
    def num_rows(self) -> int:
        return self.scales.shape[0]


class Apart(eqx.Module):
    """|F^{-1} (x* - x)|, given F^{-1}: nothing, a vector or a matrix."""

    whitening: Any = None

    def __call__(self, here: Float[Array, " d"], there: Float[Array, " d"]) -> Scalar:
        step = there - here
        if self.whitening is not None:
            inverse = jnp.asarray(self.whitening)
            step = inverse * step if inverse.ndim == 1 else inverse @ step
        return _norm(step)


class ThirdOrder(eqx.Module):
    """|e* - e| (|e|^2 + |e| |e*| + |e*|^2), with e in the coordinates of `around`."""

    around: Laplace

    def __call__(self, here: Float[Array, " d"], there: Float[Array, " d"]) -> Scalar:
        white, new = self.around.white(here), self.around.white(there)
        one, two = _norm(white), _norm(new)
        return _norm(new - white) * (one**2 + one * two + two**2)


def lipschitz(
    design: Numbers,
    family: str | None = None,
    *,
    slope: float | None = None,
    third: float | None = None,
    scale: float = 1.0,
    around: Laplace | None = None,
    factor: Numbers | None = None,
) -> Bounds:
    """Bounds for terms that depend on a position, one vector, through `design` @ position.

    `family` says how steep a term is in its linear predictor: "logistic", "cauchy", "laplace" or
    "huber", with residuals in units of `scale`. For any other, `slope` bounds its first derivative
    and `third` its third. With `around`, a Gaussian from `tp.laplace(problem)`, the bounds are
    those of what the rows leave of it. Without it, `factor` is a square root of a covariance, as a
    vector or a matrix, in whose coordinates steps are measured.
    """
    rows = _design(design)
    smooth = _smoothness(family, slope, third, float(scale))
    dimension = rows.shape[1]
    if around is None:
        if smooth.slope is None:
            raise ArgumentError("slope: bounds on the terms themselves need one; or give around=")
        inverse, lengths = _lengths(rows, factor)
        return Bounds(smooth.slope * lengths, Apart(inverse), 1 / dimension)
    if factor is not None:
        raise ArgumentError("factor: steps are measured in the coordinates of `around`; leave it")
    if not isinstance(around, Laplace):
        raise ArgumentError(f"around: wanted tp.laplace(problem), got {type(around).__name__}")
    if around.dimension != dimension:
        raise ArgumentError(
            f"design has {dimension} columns, and `around` is of {around.dimension} parameters"
        )
    if smooth.third is None:
        raise ArgumentError(
            f"around: family {family!r} has no bound on a third derivative; give third=, or leave "
            "around= away"
        )
    lengths = np.linalg.norm(rows @ np.asarray(around.root), axis=1)
    # A share is cubed where a row's direction is one of d: 15 + 15 over 2d (3d)^2.
    tightness = min(1.0, 5 / (3 * dimension**3))
    return Bounds(smooth.third / 6 * lengths**3, ThirdOrder(around), tightness, around)


class _Given(NamedTuple):
    slope: float | None
    third: float | None


def _smoothness(
    family: str | None, slope: float | None, third: float | None, scale: float
) -> _Given:
    for name, value in (("slope", slope), ("third", third), ("scale", scale)):
        if value is not None and not value > 0:
            raise ArgumentError(f"{name}: wanted a positive number, got {value!r}")
    if family is None:
        if slope is None and third is None:
            raise ArgumentError("family: give one by name, or its slope= (or third=) as a number")
        return _Given(slope, third)
    if family not in FAMILIES:
        raise unknown_name("family", family, FAMILIES)
    if slope is not None or third is not None:
        raise ArgumentError(f"slope and third: family {family!r} has its own; give either")
    known = FAMILIES[family]
    return _Given(known.slope / scale, None if known.third is None else known.third / scale**3)


def _design(design: Numbers) -> np.ndarray:
    rows = np.asarray(design, float)
    if rows.ndim != 2 or not rows.size:
        raise ArgumentError(
            f"design: wanted a matrix with a row for each row of the data and a column for each "
            f"coefficient, got shape {rows.shape}"
        )
    if not np.isfinite(rows).all():
        raise ArgumentError("design: wanted finite numbers")
    return rows


def _lengths(rows: np.ndarray, factor: Numbers | None) -> tuple[np.ndarray | None, np.ndarray]:
    """F^{-1}, and |F' a_i| for every row."""
    if factor is None:
        return None, np.linalg.norm(rows, axis=1)
    root, dimension = np.asarray(factor, float), rows.shape[1]
    if root.shape not in ((dimension,), (dimension, dimension)):
        raise ArgumentError(
            f"factor: wanted shape ({dimension},) or ({dimension}, {dimension}), got {root.shape}"
        )
    if root.ndim == 1:
        return 1 / root, np.linalg.norm(rows * root[None], axis=1)
    return np.linalg.inv(root), np.linalg.norm(rows @ root, axis=1)


def _checked_scales(scales: Numbers) -> np.ndarray:
    values = np.asarray(scales, float)
    if values.ndim != 1 or not values.size:
        raise ArgumentError(f"scales: wanted one number for each row, got shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any() or not values.any():
        raise ArgumentError(
            "scales: wanted finite numbers, none below zero and one above it; a row of scale zero "
            "is never read"
        )
    return values


def _norm(vector: Float[Array, " d"]) -> Scalar:
    return jnp.sqrt(jnp.sum(vector**2))
