"""The log likelihood of a Gaussian process, its terms and its gradient, in the size of a matrix.

    y ~ N(0, S),    S = sigma_f^2 k + v I,    v = sigma_n^2 + jitter.

With inputs scaled by the length scales, a_i = x_i / l, squared distances come from one product of
matrices, |a_i|^2 + |a_j|^2 - 2 a_i' a_j. With alpha = S^{-1} y the gradient is that of
log p(y) = -y' alpha / 2 - log det L - (n/2) log 2 pi through G = alpha alpha' - S^{-1}:

    in log sigma_n    sigma_n^2 tr G
    in log sigma_f    sum_ij G_ij sigma_f^2 k_ij = y' alpha - n - v tr G, as tr(G S) = y' alpha - n
    in log l_d        sum_{i<j} H_ij (a_id - a_jd)^2,    H_ij = sigma_f^2 f_ij G_ij,
                      = sum_i a_id^2 sum_j H_ij + sum_j a_jd^2 sum_i H_ij - 2 a_d' H a_d,  i < j

so that products with an n x D matrix stand for an array of n x n x D; f is the kernel's slope. The
inverse costs about two factorisations, where differentiating a factorisation costs nine.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from temperance._types import Scalar
from temperance.terms.factorisation import Panels, cuts, inverted, whitened
from temperance.terms.kernels import AbstractKernel

LOG_TWO_PI = float(np.log(2.0 * np.pi))

Vector = Float[Array, " n"]
Lengths = Float[Array, " inputs"]
Inputs = Float[Array, "n inputs"]


class Arguments(NamedTuple):
    """What the likelihood depends on."""

    log_length: Lengths
    log_scale: Scalar
    log_noise: Scalar
    inputs: Inputs
    y: Vector


def scaled(log_length: Lengths, inputs: Inputs) -> Inputs:
    """Inputs in length scales, around their mean: what is lost in |a|^2 + |b|^2 - 2ab is least."""
    return (inputs - jnp.mean(inputs, axis=0, keepdims=True)) * jnp.exp(-log_length)[None, :]


def squared_distances(a: Inputs, b: Float[Array, "m inputs"]) -> Float[Array, "n m"]:
    """|a_i - b_j|^2, up to rounding."""
    return jnp.sum(a**2, 1)[:, None] + jnp.sum(b**2, 1)[None, :] - 2.0 * (a @ b.T)


def _panels(
    kernel: AbstractKernel, jitter: float, arguments: Arguments
) -> tuple[Panels, list[Array]]:
    """The panels of S, and of sigma_f^2 f."""
    a = scaled(arguments.log_length, arguments.inputs)
    amplitude = jnp.exp(2.0 * arguments.log_scale)
    variance = jnp.exp(2.0 * arguments.log_noise) + jitter
    covariances, slopes = [], []
    for first, last in cuts(a.shape[0]):
        squares = squared_distances(a[first:last], a[first:])
        correlation, slope = kernel(squares), kernel.slope(squares)
        own = jnp.eye(*correlation.shape, dtype=a.dtype)
        covariances.append(amplitude * correlation + variance * own)
        slopes.append(amplitude * slope)
    return tuple(covariances), slopes


def terms(kernel: AbstractKernel, jitter: float, arguments: Arguments) -> Vector:
    """The log p(y_i | y_<i, x): -inf from where on the covariance is not positive definite."""
    panels, _ = _panels(kernel, jitter, arguments)
    return _terms(*whitened(panels, arguments.y))


def _terms(z: Vector, diagonal: Vector) -> Vector:
    values = -0.5 * z**2 - jnp.log(diagonal) - 0.5 * LOG_TWO_PI
    return jnp.where(jnp.isfinite(values), values, -jnp.inf)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def log_likelihood(kernel: AbstractKernel, jitter: float, arguments: Arguments) -> Scalar:
    """The sum of the terms, with a gradient that differentiates no factorisation.

    Where the covariance is not positive definite the value is -inf and the gradient zero.
    """
    return jnp.sum(terms(kernel, jitter, arguments))


def _differentiate(
    kernel: AbstractKernel,
    jitter: float,
    primals: tuple[Arguments],
    tangents: tuple[Arguments],
) -> tuple[Scalar, Scalar]:
    (arguments,), (steps,) = primals, tangents
    if not all(_is_zero(step) for step in (steps.inputs, steps.y)):
        # Derivatives in the data are nobody's inner loop, and the terms have them.
        steps = jax.tree.map(_instantiated, steps, is_leaf=_is_zero)
        through = functools.partial(terms, kernel, jitter)
        return jax.jvp(lambda a: jnp.sum(through(a)), (arguments,), (steps,))
    value, gradient = value_and_gradient(kernel, jitter, arguments)
    shares = [
        jnp.sum(slope * step)
        for slope, step in zip(gradient, steps, strict=False)
        if not _is_zero(step)
    ]
    return value, sum(shares, jnp.zeros_like(value))


def _is_zero(step: object) -> bool:
    return isinstance(step, SymbolicZero)


def _instantiated(step: Any) -> Array:
    return jnp.zeros(step.shape, step.dtype) if _is_zero(step) else step


log_likelihood.defjvp(_differentiate, symbolic_zeros=True)


def value_and_gradient(
    kernel: AbstractKernel, jitter: float, arguments: Arguments
) -> tuple[Scalar, tuple[Lengths, Scalar, Scalar]]:
    """The log likelihood and its gradient in the log length scales, log scale and log noise."""
    panels, slopes = _panels(kernel, jitter, arguments)
    inverse, z, diagonal, alpha = inverted(panels, arguments.y)
    value = jnp.sum(_terms(z, diagonal))
    noise = jnp.exp(2.0 * arguments.log_noise)
    trace = alpha @ alpha - jnp.trace(inverse)
    in_scale = arguments.y @ alpha - alpha.size - (noise + jitter) * trace
    a = scaled(arguments.log_length, arguments.inputs)
    in_length = jnp.zeros_like(arguments.log_length)
    for (first, last), slope in zip(cuts(alpha.size), slopes, strict=True):
        mine, others = a[first:last], a[first:]
        weights = alpha[first:last, None] * alpha[None, first:] - inverse[first:last, first:]
        weights = jnp.triu(slope * weights, 1)
        ones = jnp.ones_like(others[:, :1])
        products = weights @ jnp.concatenate([others, others**2, ones], 1)
        crossed, squared, rows = jnp.split(products, [a.shape[1], 2 * a.shape[1]], 1)
        in_length += jnp.sum(squared - 2.0 * mine * crossed + mine**2 * rows, 0)
    gradient = (in_length, in_scale, noise * trace)
    good = functools.reduce(
        jnp.logical_and, [jnp.isfinite(value)] + [jnp.all(jnp.isfinite(g)) for g in gradient]
    )
    return value, jax.tree.map(lambda g: jnp.where(good, g, 0.0), gradient)
