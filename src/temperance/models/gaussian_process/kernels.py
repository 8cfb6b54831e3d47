"""Stationary kernels with one length scale an input.

With scaled distances r^2 = sum_d (x_d - x'_d)^2 / l_d^2 a kernel is sigma_f^2 k(r^2), k(0) = 1:

    squared exponential    exp(-r^2 / 2)
    Matern 3/2             (1 + s) exp(-s),              s = sqrt(3) r
    Matern 5/2             (1 + s + s^2/3) exp(-s),      s = sqrt(5) r

Each also gives its *slope* f = -2 dk/dr^2, by which it grows with a length scale,

    dk / dlog l_d = f(r^2) (x_d - x'_d)^2 / l_d^2,

with f = exp(-r^2/2), 3 exp(-s) and (5/3) (1 + s) exp(-s). No slope divides by r, so that rows with
equal inputs need no care, and differentiating k goes through f alone.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from temperance.errors import ArgumentError, unknown_name

Squares = Float[Array, "..."]


class AbstractKernel(eqx.Module):
    """A correlation k of the squared scaled distance, with its slope f = -2 dk/dr^2.

    A kernel of one's own must be a covariance in any number of dimensions, and its slope must
    belong to it: a wrong slope makes gradients wrong and samplers slow, without any other sign.
    """

    @abc.abstractmethod
    def pair(self, squares: Squares) -> tuple[Squares, Squares]:
        """Both k and f, at squares that rounding may have made a little negative.

        Where the two are one function it returns one array twice, and it is then stored once.
        """

    def __call__(self, squares: Squares) -> Squares:
        """The correlation, differentiated through the slope."""
        return _correlation(self, squares)


@jax.custom_jvp
def _correlation(kernel: AbstractKernel, squares: Squares) -> Squares:
    return kernel.pair(squares)[0]


@_correlation.defjvp
def _differentiate(
    primals: tuple[AbstractKernel, Squares], tangents: tuple[AbstractKernel, Squares]
) -> tuple[Squares, Squares]:
    kernel, squares = primals
    correlation, slope = kernel.pair(squares)
    return correlation, -0.5 * slope * tangents[1]


class SquaredExponential(AbstractKernel):
    """exp(-r^2/2): functions with derivatives of all orders."""

    def pair(self, squares: Squares) -> tuple[Squares, Squares]:
        correlation = jnp.exp(-0.5 * squares)
        return correlation, correlation


class Matern32(AbstractKernel):
    """(1 + s) exp(-s), s = sqrt(3) r: functions with one derivative."""

    def pair(self, squares: Squares) -> tuple[Squares, Squares]:
        s = _root(3.0 * squares)
        fall = jnp.exp(-s)
        return (1.0 + s) * fall, 3.0 * fall


class Matern52(AbstractKernel):
    """(1 + s + s^2/3) exp(-s), s = sqrt(5) r: functions with two derivatives."""

    def pair(self, squares: Squares) -> tuple[Squares, Squares]:
        s = _root(5.0 * squares)
        fall = jnp.exp(-s)
        return (1.0 + s + s**2 / 3.0) * fall, 5.0 / 3.0 * (1.0 + s) * fall


def _root(squares: Squares) -> Squares:
    return jnp.sqrt(jnp.maximum(squares, 0.0))


KERNELS = {
    "squared_exponential": SquaredExponential,
    "matern32": Matern32,
    "matern52": Matern52,
}


def kernel_of(kernel: "str | AbstractKernel") -> AbstractKernel:
    """A kernel from its name, or the kernel itself."""
    if isinstance(kernel, AbstractKernel):
        return kernel
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            raise unknown_name("kernel", kernel, KERNELS)
        return KERNELS[kernel]()
    raise ArgumentError(
        f"kernel: wanted one of {', '.join(map(repr, KERNELS))} or a kernel such as Matern52(), "
        f"got {kernel!r}"
    )
