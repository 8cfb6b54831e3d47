"""The log likelihood of a Gaussian process, its terms and its gradient, in the size of a matrix.

    y ~ N(0, S),    S = sigma_f^2 (k + q I),    q = (sigma_n^2 + jitter) / sigma_f^2.

With inputs scaled by the length scales, a_i = x_i / l, squared distances come from one product of
matrices, |a_i|^2 + |a_j|^2 - 2 a_i' a_j. Only k + q I = L L' is built and factored: sigma_f scales
what comes out. With z = L^{-1} y and alpha = (k + q I)^{-1} y the gradient of

    log p(y) = -z' z / (2 sigma_f^2) - log det L - (n/2) log(2 pi sigma_f^2)

goes through G = alpha alpha' / sigma_f^2 - (k + q I)^{-1}:

    in log sigma_n    sigma_n^2 / sigma_f^2 tr G
    in log sigma_f    sum_ij G_ij k_ij = z' z / sigma_f^2 - n - q tr G
    in log l_d        sum_{i<j} H_ij (a_id - a_jd)^2,    H_ij = f_ij G_ij,
                      = sum_{i<j} H_ij a_jd^2 - 2 a_id H_ij a_jd + a_id^2 H_ij

where f is the kernel's slope. The last line is a product of H with an n x (2D + 1) matrix, and
stands for an array of n x n x D. Value and gradient cost two to three values, where
differentiating the factorisation costs ten or more.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from temperance._types import Scalar
from temperance.models.gaussian_process.linear_algebra.factorisation import Panels, cuts, inverted, whitened
from temperance.models.gaussian_process.kernels import AbstractKernel

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
    return scaled_alike(log_length, inputs, inputs)[0]


def scaled_alike(
    log_length: Lengths, inputs: Inputs, others: Float[Array, "m inputs"]
) -> tuple[Inputs, Float[Array, "m inputs"]]:
    """Inputs and others in length scales, around the mean of the inputs."""
    mean = jnp.mean(inputs, axis=0, keepdims=True)
    scale = jnp.exp(-log_length)[None, :]
    return (inputs - mean) * scale, (others - mean) * scale


def squared_distances(a: Inputs, b: Float[Array, "m inputs"]) -> Float[Array, "n m"]:
    """|a_i - b_j|^2, up to rounding."""
    return _left(a) @ _right(b).T


def _left(a: Inputs) -> Float[Array, "n columns"]:
    """(a, |a|^2, 1): its product with `_right(b)` is a squared distance, with no sum left to do."""
    squares = jnp.sum(a**2, 1, keepdims=True)
    return jnp.concatenate([a, squares, jnp.ones_like(squares)], 1)


def _right(b: Inputs) -> Float[Array, "n columns"]:
    squares = jnp.sum(b**2, 1, keepdims=True)
    return jnp.concatenate([-2.0 * b, jnp.ones_like(squares), squares], 1)


def panels_of(
    kernel: AbstractKernel, log_length: Lengths, inputs: Inputs, *, slopes: bool
) -> tuple[Panels, Panels]:
    """The panels of k and, if asked, of f."""
    a = scaled(log_length, inputs)
    left, right = _left(a), _right(a)
    squares = [left[first:last] @ right[first:].T for first, last in cuts(a.shape[0])]
    if not slopes:
        return tuple(map(kernel, squares)), ()
    pairs = [kernel.pair(panel) for panel in squares]
    return tuple(k for k, _ in pairs), tuple(f for _, f in pairs)


def _amplitude_and_ratio(jitter: float, arguments: Arguments) -> tuple[Scalar, Scalar]:
    """The sigma_f^2, and v over it."""
    amplitude = jnp.exp(2.0 * arguments.log_scale)
    return amplitude, (jnp.exp(2.0 * arguments.log_noise) + jitter) / amplitude


def terms(kernel: AbstractKernel, jitter: float, arguments: Arguments) -> Vector:
    """The log p(y_i | y_<i, x): -inf from where on the covariance is not positive definite."""
    panels, _ = panels_of(kernel, arguments.log_length, arguments.inputs, slopes=False)
    amplitude, ratio = _amplitude_and_ratio(jitter, arguments)
    return terms_of(*whitened(panels, arguments.y, ratio), amplitude)


def terms_of(z: Vector, diagonal: Vector, amplitude: Scalar) -> Vector:
    """The terms of a covariance sigma_f^2 L L', by z = L^{-1} y and the diagonal of L."""
    logs = jnp.log(diagonal) + 0.5 * jnp.log(2.0 * jnp.pi * amplitude)
    values = -0.5 * z**2 / amplitude - logs
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
    through = functools.partial(terms, kernel, jitter)
    both = functools.partial(value_and_gradient, kernel, jitter)
    return along(through, both, primals[0], tangents[0])


def along(
    through: Callable[[Any], Vector], both: Callable[[Any], Any], arguments: Any, steps: Any
) -> tuple[Scalar, Scalar]:
    """A log likelihood and its derivative along `steps`, whose last two are in inputs and in y.

    `through` gives its terms, and `both` its value and its gradient in all arguments but the data.
    """
    if not all(_is_zero(step) for step in (steps.inputs, steps.y)):
        # Derivatives in the data are nobody's inner loop, and the terms have them.
        steps = jax.tree.map(_instantiated, steps, is_leaf=_is_zero)
        return jax.jvp(lambda a: jnp.sum(through(a)), (arguments,), (steps,))
    value, gradient = both(arguments)
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
    amplitude, ratio = _amplitude_and_ratio(jitter, arguments)
    value, pulls = value_and_pulls(
        kernel, amplitude, ratio, arguments.log_length, arguments.inputs, arguments.y
    )
    gradient = (
        pulls.length,
        pulls.scale - ratio * pulls.trace,
        jnp.exp(2.0 * arguments.log_noise) / amplitude * pulls.trace,
    )
    return value, finite_or_zero(value, gradient)


class Pulls(NamedTuple):
    """Derivatives of the log likelihood with q held: in log l, in log sigma_f, and tr G."""

    length: Lengths
    scale: Scalar
    trace: Scalar


def value_and_pulls(
    kernel: AbstractKernel,
    amplitude: Scalar,
    ratio: Scalar,
    log_length: Lengths,
    inputs: Inputs,
    y: Vector,
) -> tuple[Scalar, Pulls]:
    """The log likelihood of covariance sigma_f^2 (k + q I), and what its gradient is made of."""
    panels, slopes = panels_of(kernel, log_length, inputs, slopes=True)
    inverse, z, diagonal, alpha = inverted(panels, y, ratio)
    value = jnp.sum(terms_of(z, diagonal, amplitude))
    n, num_inputs = inputs.shape
    root = alpha / jnp.sqrt(amplitude)
    # A strided slice, because XLA's trace goes through the whole matrix.
    trace = root @ root - jnp.sum(inverse.reshape(-1)[:: n + 1])
    a = scaled(log_length, inputs)
    right = jnp.concatenate([a, a**2, jnp.ones_like(a[:, :1])], 1)
    products = []
    for (first, last), slope in zip(cuts(n), slopes, strict=True):
        weights = root[first:last, None] * root[None, first:] - inverse[first:last, first:]
        products.append(jnp.triu(slope * weights, 1) @ right[first:])
    crossed, squared, rows = jnp.split(jnp.concatenate(products), [num_inputs, 2 * num_inputs], 1)
    length = jnp.sum(squared - 2.0 * a * crossed + a**2 * rows, 0)
    return value, Pulls(length, jnp.sum(z**2) / amplitude - n, trace)


def finite_or_zero(value: Scalar, gradient: Any) -> Any:
    """The gradient, or zero all over where there is no density."""
    good = jnp.isfinite(value)
    for slope in jax.tree.leaves(gradient):
        good &= jnp.all(jnp.isfinite(slope))
    return jax.tree.map(lambda slope: jnp.where(good, slope, 0.0), gradient)
