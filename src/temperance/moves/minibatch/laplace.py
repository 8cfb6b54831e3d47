"""The Gaussian at a posterior's mode, and what rows leave of it.

With d = x - m about a point m, each row's log likelihood is

    l_i(x) = l_i(m) + g_i . d + d' H_i d / 2 + rho_i(x).

The first three, summed over all rows, are known everywhere once G = sum g_i and H = sum H_i are:
one pass over the data, and none later. A mini-batch kernel is then left with the remainders, whose
differences

    rho_i(x*) - rho_i(x) = l_i(x*) - l_i(x) - (x* - x) . g_i - (x* - x)' H_i (x* + x - 2m) / 2

are of third order in d, where the terms' own are of first. The derivatives of a row in a direction
are as cheap as the row. m is the mode for the remainders to be small; any m is exact.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key, Numbers, Scalar
from temperance.errors import ArgumentError, StartError
from temperance.problems.problem import Densities, Likelihood, Problem, densities_of

Vector = Float[Array, " d"] | Float[np.ndarray, " d"]
Matrix = Float[Array, "d d"] | Float[np.ndarray, "d d"]
# Newton's steps: how many at most, how often one is halved, and the whitened gradient to stop at.
MOST_STEPS, MOST_HALVINGS, SMALL = 100, 40, 1e-6


class Laplace(eqx.Module):
    """N(mode, root root'), and the sums that expand the log likelihood about `mode`.

    `slope` and `curvature` are G and H, of the likelihood alone; `root` and its inverse `whitening`
    are of the posterior's covariance there. `num_passes` over the data were made to find them.
    """

    mode: Vector
    root: Matrix
    whitening: Matrix
    slope: Vector
    curvature: Matrix
    num_passes: int = eqx.field(static=True, default=0)

    @property
    def dimension(self) -> int:
        return self.mode.shape[0]

    def white(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """Where x is in coordinates in which the Gaussian is a standard normal."""
        return jnp.asarray(self.whitening) @ (x - jnp.asarray(self.mode))

    def draw(self, key: Key) -> Float[Array, " d"]:
        """One draw from the Gaussian."""
        return self.coloured(jax.random.normal(key, (self.dimension,)))

    def coloured(self, z: Float[Array, " d"]) -> Float[Array, " d"]:
        """The way back."""
        return jnp.asarray(self.mode) + jnp.asarray(self.root) @ z

    def log_ratio(self, here: Float[Array, " d"], there: Float[Array, " d"]) -> Scalar:
        """By how much the rows' expansions, all together, prefer `there`."""
        step, middle = there - here, 0.5 * (there + here) - jnp.asarray(self.mode)
        return jnp.dot(step, jnp.asarray(self.slope) + jnp.asarray(self.curvature) @ middle)

    def remainders(
        self,
        terms: Callable[[Float[Array, " d"]], Float[Array, " m"]],
        here: Float[Array, " d"],
        there: Float[Array, " d"],
    ) -> Float[Array, " m"]:
        """rho_i(there) - rho_i(here) for each row of `terms`."""
        mode = jnp.asarray(self.mode)
        step, middle = there - here, 0.5 * (there + here) - mode

        def along(x: Array) -> Array:
            return jax.jvp(terms, (x,), (step,))[1]

        first, second = jax.jvp(along, (mode,), (middle,))
        return terms(there) - terms(here) - first - second


def laplace(problem: Problem, start: Numbers | None = None) -> Laplace:
    """The mode of a problem's posterior, by Newton's steps on all rows, and the Gaussian there.

    `start` is a vector laid out as the position is; by default a draw from the prior. Terms and
    log prior have to be smooth. Where the posterior has several modes, this is one of them.
    """
    if not isinstance(problem, Problem):
        raise ArgumentError(
            f"problem: wanted a Problem, with rows to expand, got {type(problem).__name__}"
        )
    with jax.enable_x64(True):
        densities = densities_of(problem)
        dimension = densities.layout.dimension
        x = densities.draw(jax.random.key(0)) if start is None else jnp.asarray(start, float)
        if x.shape != (dimension,):
            raise ArgumentError(
                f"start: wanted {dimension} values in one vector, got shape {x.shape}"
            )
        return _newton(densities, x)


def _newton(densities: Densities, x: Array) -> Laplace:
    value_at, derivatives_at = _compiled(densities)
    value, passes = float(value_at(x)), 1
    for _ in range(MOST_STEPS):
        (slope, curvature), (whole_slope, precision) = derivatives_at(x)
        passes += 1
        root, newton, length = _step(np.asarray(whole_slope), np.asarray(precision))
        if length < SMALL:
            return _found(x, root, slope, curvature, passes)
        for halving in range(MOST_HALVINGS):
            trial = x + 0.5**halving * newton
            new, passes = float(value_at(trial)), passes + 1
            # At the mode rounding decides, and a step that loses a rounding error is a good one.
            if new >= value - 1e-12 * abs(value):
                break
        else:
            break
        x, value = trial, new
    raise StartError(
        "laplace: Newton's steps found no mode of the posterior from this start; give another "
        "start=, and check that log prior and terms are smooth"
    )


def _compiled(densities: Densities) -> tuple[Any, Any]:
    prior, likelihood = densities.hot, densities.cold
    assert prior is not None
    assert isinstance(likelihood, Likelihood)

    def derivatives(x: Array, likelihood: Likelihood) -> Any:
        of_rows = jax.grad(likelihood)(x), jax.hessian(likelihood)(x)
        of_prior = jax.grad(prior)(x), jax.hessian(prior)(x)
        return of_rows, (of_rows[0] + of_prior[0], -of_rows[1] - of_prior[1])

    value = eqx.filter_jit(lambda x, likelihood: prior(x) + likelihood(x))
    both = eqx.filter_jit(derivatives)
    return lambda x: value(x, likelihood), lambda x: both(x, likelihood)


def _step(slope: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """A root of the covariance, Newton's step, and its length in standard deviations.

    Where the density bends upwards its curvature is taken by its size, which is still uphill.
    """
    values, axes = np.linalg.eigh(0.5 * (precision + precision.T))
    bent = values <= 1e-12 * np.abs(values).max()
    sizes = np.maximum(np.abs(values), 1e-12 * np.abs(values).max())
    step = axes @ ((axes.T @ slope) / sizes)
    length = float(np.sqrt(max(slope @ step, 0.0)))
    if bent.any() or not np.isfinite(step).all():
        return axes, step, np.inf if np.isfinite(step).all() else np.nan
    return np.linalg.cholesky((axes / sizes) @ axes.T), step, length


def _found(x: Array, root: np.ndarray, slope: Array, curvature: Array, passes: int) -> Laplace:
    # NumPy's arrays keep double precision until the run that uses them says otherwise.
    return Laplace(
        np.asarray(x),
        root,
        np.linalg.inv(root),
        np.asarray(slope),
        np.asarray(curvature),
        passes,
    )
