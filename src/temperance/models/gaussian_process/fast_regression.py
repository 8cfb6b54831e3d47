"""Regression with a Gaussian process whose vertical scale, or scale and noise, are fast variables.

    y ~ N(0, S),    S_ij = eta^2 (a^2 + k(|z_i - z_j| / l) + r^2 delta_ij) + sigma^2 delta_ij.

The scale eta multiplies the constant a^2 and the nugget r^2 too, so that S is eta^2 times a matrix
of l and psi = sigma / eta alone. Once that is factored any eta costs next to nothing; once its part
without noise is brought into tridiagonal form, any eta and sigma do. `temperance.models.gaussian_process.fast_likelihood`
has the mathematics of both. Positions hold logarithms:

    cholesky    {"log_length": (D,), "log_ratio": (), "log_scale": ()},    log psi the log_ratio
    spectral    {"log_length": (D,), "log_noise": (), "log_scale": ()}

By Cholesky log sigma = log psi + log eta, with a Jacobian of one. The prior is that of sigma, and
is evaluated there for every eta: held at one log sigma it would belong to another model.

exp(-sum_h (nu_h dz_h)^2) is the squared exponential kernel with l_h = 1 / (sqrt(2) nu_h).
"""

import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Data, Key, Numbers, Position, Scalar
from temperance.errors import ArgumentError, unknown_name
from temperance.problems.problem import Problem
from temperance.models.gaussian_process import fast_likelihood as fast_routes
from temperance.models.gaussian_process.route_costs import chosen_route
from temperance.models.gaussian_process.route_pilot import piloted_route
from temperance.models.gaussian_process.fast_likelihood import ROUTES, FastArguments, Raised
from temperance.models.gaussian_process.regression import GaussianProcessPrior, checked_rows, chosen_priors
from temperance.models.gaussian_process.kernels import AbstractKernel, kernel_of
from temperance.models.gaussian_process.priors import AbstractPrior, CorrelatedLogNormal, LogNormal

# Those of the ensemble paper's demonstration. Its relevances nu have log nu ~ N(log 0.5, 1.8^2),
# correlated by 0.69, and log l = -log nu - log(2)/2.
PRIORS: dict[str, AbstractPrior] = {
    "length": CorrelatedLogNormal(0.5 * math.log(2.0), 1.8, 0.69),
    "scale": LogNormal(0.0, 1.5),
    "noise": LogNormal(math.log(0.5), 1.5),
}
FAST = {"cholesky": ("log_scale",), "spectral": ("log_noise", "log_scale")}


class FastPrior(eqx.Module):
    """The prior of the fast leaves as one vector, in the order of their names."""

    priors: tuple[AbstractPrior, ...]

    def __call__(self, vector: Float[Array, " fast"]) -> Scalar:
        each = [p.log_density(vector[i]) for i, p in enumerate(self.priors)]
        return jnp.sum(jnp.stack(each))

    def draw(self, key: Key) -> Float[Array, " fast"]:
        keys = jax.random.split(key, len(self.priors))
        return jnp.stack([p.draw(k, ()) for k, p in zip(keys, self.priors, strict=True)])


class FastGaussianProcessPrior(eqx.Module):
    """The prior of the log hyperparameters, at positions of one route.

    `fast_base` is the prior of the fast leaves where they do not depend on the slow ones: that of
    log eta by Cholesky, because the prior of sigma given psi does depend on them.
    """

    whole: GaussianProcessPrior
    route: str = eqx.field(static=True)

    def __call__(self, position: Position) -> Scalar:
        return self.whole(named(position, self.route))

    def draw(self, key: Key) -> Position:
        drawn: Any = self.whole.draw(key)
        if self.route == "cholesky":
            drawn["log_ratio"] = drawn.pop("log_noise") - drawn["log_scale"]
        return drawn

    @property
    def fast_base(self) -> FastPrior:
        names = [name.removeprefix("log_") for name in FAST[self.route]]
        return FastPrior(tuple(self.whole.priors[name] for name in names))


class FastGaussianProcessTerms(eqx.Module):
    """log p(y_i | y_<i, x), and their sum by a route on which `fast` names the fast leaves."""

    kernel: AbstractKernel
    constant: float = eqx.field(static=True)
    nugget: float = eqx.field(static=True)
    route: str = eqx.field(static=True)

    @property
    def fast(self) -> tuple[str, ...]:
        return FAST[self.route]

    def __call__(self, position: Position, data: Data) -> Float[Array, " n"]:
        return fast_routes.terms(*self._fixed(), self._arguments(position, data))

    def sum(self, position: Position, data: Data) -> Scalar:
        """The log likelihood; its gradient is by Cholesky on either route."""
        return fast_routes.log_likelihood(*self._fixed(), self._arguments(position, data))

    @property
    def raised(self) -> AbstractKernel:
        """The kernel with its constant."""
        return Raised(self.kernel, self.constant)

    def _fixed(self) -> tuple[str, AbstractKernel, float]:
        return self.route, self.raised, self.nugget

    def _arguments(self, position: Any, data: Any) -> FastArguments:
        rest = position["log_ratio" if self.route == "cholesky" else "log_noise"]
        leaves = (position["log_length"], position["log_scale"], rest)
        return FastArguments(*map(jnp.asarray, (*leaves, data["inputs"], data["y"])))


def named(position: Any, route: str) -> dict[str, Array]:
    """A position by log_length, log_scale and log_noise, whatever its route."""
    if route == "spectral":
        return position
    noise = position["log_ratio"] + position["log_scale"]
    kept = {name: position[name] for name in ("log_length", "log_scale")}
    return kept | {"log_noise": noise}


def _by_noise(position: Any) -> dict[str, Array]:
    return named(position, "cholesky")


def fast_gaussian_process(
    inputs: Numbers,
    y: Numbers,
    *,
    kernel: str | AbstractKernel = "squared_exponential",
    constant: float | int = 1.0,
    nugget: float | int = 0.01,
    priors: Mapping[str, AbstractPrior] | None = None,
    route: str = "auto",
) -> Problem:
    """A `Problem` of a Gaussian process's hyperparameters, for moves of fast and slow variables.

    `inputs`, `y` and `kernel` are as in `gaussian_process`. Covariances are eta^2 (a^2 + k + r^2 on
    the diagonal) + sigma^2 on the diagonal, with a the `constant` and r the `nugget`; both are
    standard deviations in units of eta. `priors` replaces some of "length", "scale" and "noise", by
    default CorrelatedLogNormal(log(2)/2, 1.8, 0.69), LogNormal(0, 1.5) and LogNormal(log 0.5, 1.5).
    A covariance exp(-sum (nu dz)^2) is the squared exponential kernel with l = 1 / (sqrt(2) nu).

    `route="cholesky"` makes eta fast. Its positions have log_length, log_scale = log eta and
    log_ratio = log sigma - log eta, and its results log_noise in place of log_ratio.
    `route="spectral"` makes eta and sigma fast, for slow evaluations that cost more. `route="auto"`
    takes spectral unless they cost more than twice as much, by costs that were measured once
    for many numbers of rows (`temperance.models.gaussian_process.route_costs`) and not on the machine at hand: a seed
    then gives the same draws everywhere. `route="pilot"` measures them here and now, on these rows,
    in about two seconds. `problem.terms.route` says which it is; name that to have it again.
    """
    x, targets = checked_rows(inputs, y)
    for name, value in (("constant", constant), ("nugget", nugget)):
        if not isinstance(value, int | float) or not 0 <= value < np.inf:
            raise ArgumentError(f"{name}: wanted a standard deviation of at least 0, got {value!r}")
    if route not in ("auto", "pilot", *ROUTES):
        raise unknown_name("route", route, ("auto", "pilot", *ROUTES))
    if route == "auto":
        route = chosen_route(*x.shape)
    elif route == "pilot":
        raised = Raised(kernel_of(kernel), float(constant))
        route = piloted_route(raised, float(nugget), x, targets)
    whole = GaussianProcessPrior(chosen_priors(priors, PRIORS), x.shape[1])
    prior = FastGaussianProcessPrior(whole, route)
    terms = FastGaussianProcessTerms(kernel_of(kernel), float(constant), float(nugget), route)
    return Problem(
        log_prior=prior,
        terms=terms,
        data={"inputs": x, "y": targets},
        draw_prior=prior.draw,
        independent=False,
        log_likelihood=terms.sum,
        dims={"log_length": ["input"]},
        constrain=_by_noise if route == "cholesky" else None,
    )
