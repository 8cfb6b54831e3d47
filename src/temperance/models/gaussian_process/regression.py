"""Regression with a Gaussian process, as a problem whose position is its hyperparameters.

    y ~ N(0, S),    S_ij = sigma_f^2 k(|x_i - x_j| / l) + (sigma_n^2 + jitter) delta_ij,

with priors on every length scale l_d, on the vertical scale sigma_f and on the noise sigma_n. A
position holds their logarithms, {"log_length": (D,), "log_scale": (), "log_noise": ()}, and the
prior is a density of these. The terms are log p(y_i | y_<i, x): the first n of them belong to the
first n rows whatever follows, because the factor of a leading block is the leading block of the
factor, and because the jitter is one constant.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Data, Key, Numbers, Position, Scalar
from temperance.errors import ArgumentError, DataError, unknown_name
from temperance.problems.problem import Problem
from temperance.models.gaussian_process import covariance
from temperance.models.gaussian_process.covariance import Arguments
from temperance.models.gaussian_process.kernels import AbstractKernel, kernel_of
from temperance.models.gaussian_process.priors import AbstractPrior, Gamma, LogNormal

# What the position's leaves are the logarithms of, with the priors of the subsampling paper.
PRIORS: dict[str, AbstractPrior] = {
    "length": LogNormal(0.5, 1.0),
    "scale": Gamma(4.0, 1.0),
    "noise": Gamma(2.0, 2.0),
}
LEAVES = ("log_length", "log_scale", "log_noise")
# Against rounding alone; relative to data of the order of one, which the default priors are for.
JITTER = 1e-8


class GaussianProcessPrior(eqx.Module):
    """The prior of the log hyperparameters: a density and an exact sampler."""

    priors: dict[str, AbstractPrior]
    num_inputs: int = eqx.field(static=True)

    def __call__(self, position: Position) -> Scalar:
        shares = [jnp.sum(p.log_density(position[f"log_{k}"])) for k, p in self.priors.items()]
        return jnp.sum(jnp.stack(shares))

    def draw(self, key: Key) -> Position:
        shapes = {"length": (self.num_inputs,), "scale": (), "noise": ()}
        keys = jax.random.split(key, len(shapes))
        return {
            f"log_{name}": self.priors[name].draw(k, shape)
            for k, (name, shape) in zip(keys, shapes.items(), strict=True)
        }


class GaussianProcessTerms(eqx.Module):
    """log p(y_i | y_<i, x), and their sum with its own gradient."""

    kernel: AbstractKernel
    jitter: float = eqx.field(static=True)

    def __call__(self, position: Position, data: Data) -> Float[Array, " n"]:
        return covariance.terms(self.kernel, self.jitter, _arguments(position, data))

    def sum(self, position: Position, data: Data) -> Scalar:
        """The log likelihood; its gradient costs about as much again."""
        return covariance.log_likelihood(self.kernel, self.jitter, _arguments(position, data))


def _arguments(position: Any, data: Any) -> Arguments:
    leaves = [position[name] for name in LEAVES]
    return Arguments(*map(jnp.asarray, (*leaves, data["inputs"], data["y"])))


def gaussian_process(
    inputs: Numbers,
    y: Numbers,
    *,
    kernel: str | AbstractKernel = "squared_exponential",
    priors: Mapping[str, AbstractPrior] | None = None,
    jitter: float | int = JITTER,
) -> Problem:
    """A `Problem` of the hyperparameters of a Gaussian process with Gaussian noise.

    `inputs` has shape (n, D), or (n,) for one input. `y` has mean zero under the model, so that a
    mean has to be taken off beforehand. `kernel` is "squared_exponential", "matern32", "matern52"
    or an `AbstractKernel`. `priors` replaces some of "length", "scale" and "noise", by default
    LogNormal(0.5, 1), Gamma(4, 1) and Gamma(2, 2); they are about numbers of the order of one, to
    which `inputs` and `y` should be scaled. `jitter` is a variance added to that of the noise.

    Positions are dictionaries of the logarithms: log_length (D,), log_scale and log_noise.
    """
    x, targets = checked_rows(inputs, y)
    chosen = chosen_priors(priors, PRIORS)
    if not isinstance(jitter, int | float) or not 0 <= jitter < np.inf:
        raise ArgumentError(f"jitter: wanted a variance of at least 0, got {jitter!r}")
    prior = GaussianProcessPrior(chosen, x.shape[1])
    terms = GaussianProcessTerms(kernel_of(kernel), float(jitter))
    return Problem(
        log_prior=prior,
        terms=terms,
        data={"inputs": x, "y": targets},
        draw_prior=prior.draw,
        independent=False,
        log_likelihood=terms.sum,
        dims={"log_length": ["input"]},
    )


def chosen_priors(
    priors: Mapping[str, AbstractPrior] | None, default: Mapping[str, AbstractPrior]
) -> dict[str, AbstractPrior]:
    """The default priors, with those that were given in their place."""
    chosen = dict(default)
    if priors is not None and not isinstance(priors, Mapping):
        raise ArgumentError(f"priors: wanted a mapping of names to priors, got {priors!r}")
    for name, prior in (priors or {}).items():
        if name not in default:
            raise unknown_name("prior", name, default)
        if not isinstance(prior, AbstractPrior):
            raise ArgumentError(
                f"priors[{name!r}]: wanted a prior such as Gamma(2, 2) or LogNormal(0, 1), got "
                f"{prior!r}"
            )
        chosen[name] = prior
    return chosen


def checked_rows(inputs: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of shape (n, D) and one y for each of them, all finite."""
    try:
        x, targets = np.asarray(inputs, float), np.asarray(y, float)
    except (TypeError, ValueError) as error:
        raise DataError(f"inputs and y: wanted arrays of real numbers: {error}") from None
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or x.shape[1] == 0:
        raise DataError(f"inputs: wanted shape (n, D), one row for each value of y, got {x.shape}")
    if targets.shape != (x.shape[0],):
        raise DataError(
            f"y: wanted one value for each of the {x.shape[0]} rows of inputs, shape "
            f"({x.shape[0]},), got {targets.shape}"
        )
    for name, array in (("inputs", x), ("y", targets)):
        bad = np.argwhere(~np.isfinite(array))
        if bad.size:
            raise DataError(
                f"{name}: row {bad[0][0]} is not finite; leave out rows with missing values"
            )
    return x, targets
