"""The log likelihood of a Gaussian process whose scale, or scale and noise, are fast.

    y ~ N(0, S),    S = eta^2 (k + a^2 + r^2 I) + sigma^2 I = eta^2 (A + (r^2 + psi^2) I),

with A = k + a^2 and psi = sigma / eta. Two routes to one number:

    cholesky    A + (r^2 + psi^2) I = L L', z = L^{-1} y; psi is slow, and for each eta
                log p(y) = -z'z / (2 eta^2) - sum log L_ii - (n/2) log(2 pi eta^2)
    spectral    A = Q T Q' (tridiagonal.py); for each eta and sigma the pivots of
                T + (r^2 + psi^2) I give the same form and determinant

What is kept between values of the fast variables is two numbers by Cholesky, and 2n by T. The
paper finds eigenvectors in place of T, and its text has z'z without the inverse that belongs there.

Gradients of both go through the inverse of A + (r^2 + psi^2) I, as in `covariance.py`: with G as
there, the derivative in log eta with psi held is z'z / eta^2 - n, and that in log psi with eta held
is psi^2 tr G. With log psi = log sigma - log eta those in (log eta, log sigma) follow.
"""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from temperance._types import Scalar
from temperance.models.gaussian_process.covariance import (
    Inputs,
    Lengths,
    Vector,
    along,
    finite_or_zero,
    panels_of,
    terms_of,
    value_and_pulls,
)
from temperance.models.gaussian_process.linear_algebra.factorisation import whitened
from temperance.models.gaussian_process.kernels import AbstractKernel, Squares
from temperance.models.gaussian_process.linear_algebra.tridiagonal import form_and_determinant, reduced

ROUTES = ("cholesky", "spectral")


class Raised(AbstractKernel):
    """A kernel with a constant added to it: functions with a level of their own."""

    kernel: AbstractKernel
    constant: float = eqx.field(static=True)

    def pair(self, squares: Squares) -> tuple[Squares, Squares]:
        correlation, slope = self.kernel.pair(squares)
        return correlation + self.constant**2, slope


class FastArguments(NamedTuple):
    """What the likelihood depends on; `log_rest` is log psi by Cholesky, log sigma by T."""

    log_length: Lengths
    log_scale: Scalar
    log_rest: Scalar
    inputs: Inputs
    y: Vector


def _amplitude_and_share(route: str, given: FastArguments) -> tuple[Scalar, Scalar]:
    """The eta^2, and psi^2."""
    log_ratio = given.log_rest if route == "cholesky" else given.log_rest - given.log_scale
    return jnp.exp(2.0 * given.log_scale), jnp.exp(2.0 * log_ratio)


def terms(route: str, kernel: AbstractKernel, nugget: float, given: FastArguments) -> Vector:
    """The log p(y_i | y_<i): -inf from where on the covariance is not positive definite.

    `kernel` is the one with the constant, here and below.
    """
    panels, _ = panels_of(kernel, given.log_length, given.inputs, slopes=False)
    amplitude, share = _amplitude_and_share(route, given)
    return terms_of(*whitened(panels, given.y, nugget**2 + share), amplitude)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def log_likelihood(
    route: str, kernel: AbstractKernel, nugget: float, given: FastArguments
) -> Scalar:
    """The sum of the terms by its route, with a gradient that differentiates no factorisation.

    Where the covariance is not positive definite the value is -inf and the gradient zero.
    """
    panels, _ = panels_of(kernel, given.log_length, given.inputs, slopes=False)
    amplitude, share = _amplitude_and_share(route, given)
    if route == "cholesky":
        z, diagonal = whitened(panels, given.y, nugget**2 + share)
        form, determinant = jnp.sum(z**2), 2.0 * jnp.sum(jnp.log(diagonal))
    else:
        form, determinant = form_and_determinant(reduced(panels, given.y), nugget**2 + share)
    num_rows = given.y.shape[0]
    constant = num_rows * (jnp.log(2.0 * jnp.pi) + 2.0 * given.log_scale)
    value = -0.5 * (form / amplitude + determinant + constant)
    return jnp.where(jnp.isfinite(value), value, -jnp.inf)


def _differentiate(
    route: str,
    kernel: AbstractKernel,
    nugget: float,
    primals: tuple[FastArguments],
    tangents: tuple[FastArguments],
) -> tuple[Scalar, Scalar]:
    through = functools.partial(terms, route, kernel, nugget)
    both = functools.partial(value_and_gradient, route, kernel, nugget)
    return along(through, both, primals[0], tangents[0])


log_likelihood.defjvp(_differentiate, symbolic_zeros=True)


def value_and_gradient(
    route: str, kernel: AbstractKernel, nugget: float, given: FastArguments
) -> tuple[Scalar, tuple[Lengths, Scalar, Scalar]]:
    """The log likelihood, and its gradient in what a position of this route holds."""
    amplitude, share = _amplitude_and_share(route, given)
    value, pulls = value_and_pulls(
        kernel, amplitude, nugget**2 + share, given.log_length, given.inputs, given.y
    )
    by_ratio = share * pulls.trace
    by_scale = pulls.scale if route == "cholesky" else pulls.scale - by_ratio
    return value, finite_or_zero(value, (pulls.length, by_scale, by_ratio))
