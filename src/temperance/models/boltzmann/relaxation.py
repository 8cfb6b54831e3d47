"""A Boltzmann machine relaxed to a density on R^D: many modes, and everything about it is known.

Take a diagonal D that makes W + D positive semi-definite, and Q (n x D) with QQ' = W + D. Give each
state of signs a Gaussian, x | s ~ N(Q's, I). The exponent s'Ws/2 cancels from the joint law, so
that the signs are independent given x, and their sum is (paper 4, equations 45 to 51)

    p(x) = exp(-phi(x)) / Z,     phi(x) = x'x / 2 - sum_i log cosh(q_i'x + b_i),

a mixture of 2^n Gaussians with gradient grad phi = x - Q' tanh(Qx + b). With log Z_B, E[s] and
E[ss'] of the machine (equations 52 to 54)

    log Z = log Z_B + tr(D)/2 + (D/2) log 2 pi - n log 2,
    E[x] = Q'E[s],      Cov[x] = I + Q' Cov[s] Q.

Eigenvalues of W + D that are zero up to rounding are dropped from Q. One of size l that is not zero
would move the exponent of a state by up to n l / 2, and log Z with it, so none above 1e-9 of the
largest is dropped.
"""

from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key, Numbers, Scalar
from temperance.models.boltzmann.diagonal import diagonal as best_diagonal
from temperance.models.boltzmann.enumeration import generator
from temperance.models.boltzmann.machine import BoltzmannMachine
from temperance.models.boltzmann.mean_field import fixed_points
from temperance.errors import ArgumentError
from temperance.bases.fit import Fit, LocalFit, match_moments
from temperance.problems.problem import Base, Target

DROPPED = 1e-9  # of the largest eigenvalue


def log_cosh(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """The log of cosh t, without overflow."""
    size = jnp.abs(t)
    return size + jnp.log1p(jnp.exp(-2.0 * size)) - jnp.log(2.0)


class CoshDensity(eqx.Module):
    """-phi, the unnormalised log density of a relaxation."""

    factor: Float[Array, "units d"]
    biases: Float[Array, " units"]

    def __init__(self, factor: np.ndarray, biases: np.ndarray):
        # NumPy's arrays keep double precision until the run that uses them says otherwise.
        self.factor = factor  # pyright: ignore[reportAttributeAccessIssue]
        self.biases = biases  # pyright: ignore[reportAttributeAccessIssue]

    def __call__(self, x: Float[Array, " d"]) -> Scalar:
        fields = jnp.asarray(self.factor, x.dtype) @ x + jnp.asarray(self.biases, x.dtype)
        return jnp.sum(log_cosh(fields)) - 0.5 * jnp.sum(x**2)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The relaxation of `machine` with QQ' = W + D: `factor` is Q and `diagonal` that of QQ'.

    `log_z`, `mean`, `covariance` and `draw` are exact, from a sum over all states of the machine,
    made when first asked for.
    """

    machine: BoltzmannMachine
    diagonal: np.ndarray
    factor: np.ndarray
    log_density: CoshDensity

    @property
    def dimension(self) -> int:
        return self.factor.shape[1]

    @property
    def log_shift(self) -> float:
        """The distance from log Z_B, W with a diagonal of zeros, to log Z (equation 52)."""
        halves = 0.5 * (self.diagonal.sum() + self.dimension * np.log(2.0 * np.pi))
        return float(halves - self.machine.num_units * np.log(2.0))

    @property
    def log_z(self) -> float:
        """The log of the integral of exp(log_density)."""
        return self.machine.exact().log_z - self.machine.constant + self.log_shift

    @cached_property
    def mean(self) -> np.ndarray:
        return self.factor.T @ self.machine.exact().mean

    @cached_property
    def covariance(self) -> np.ndarray:
        spread = self.factor.T @ self.machine.exact().covariance @ self.factor
        return np.eye(self.dimension) + 0.5 * (spread + spread.T)

    def draw(self, key: Key | np.random.Generator | int, num: int) -> np.ndarray:
        """`num` independent exact draws of x, one in each row."""
        rng = generator(key)
        states = self.machine.exact().draw(rng, num)
        return states @ self.factor + rng.normal(size=(num, self.dimension))

    def target(self, base: Base | None = None) -> Target:
        """The density for `sample`, heated towards `base`."""
        return Target(self.log_density, base, example=np.zeros(self.dimension))

    def mean_field(self, num_starts: int = 1000, seed: int = 0) -> list[LocalFit]:
        """One Gaussian for each fixed point of the mean field that was found, best bound first."""
        points, bounds = fixed_points(
            self.machine.weights, self.machine.biases, num_starts=num_starts, seed=seed
        )
        factor, identity = self.factor, np.eye(self.dimension)
        return [
            LocalFit(
                factor.T @ m,
                identity + (factor.T * (1.0 - m**2)) @ factor,
                float(bound + self.log_shift),
            )
            for m, bound in zip(points, bounds, strict=True)
        ]

    def fit(self, num_starts: int = 1000, seed: int = 0) -> Fit:
        """One Gaussian with the moments of the mean-field fits' mixture, and its log zeta."""
        # The fixed points are distinct already, by their signs' means: two of them may well lie
        # within a tenth of a standard deviation of x and be different fits.
        return match_moments(self.mean_field(num_starts, seed), same=0.0)


def relaxation(machine: BoltzmannMachine, diagonal: Numbers | None = None) -> Relaxation:
    """The relaxation of `machine`, by default with the diagonal whose largest eigenvalue is least.

    `diagonal` is that of QQ', one number for each unit. Any that makes W + D positive semi-definite
    is right; larger ones push the modes apart.
    """
    if diagonal is None:
        d = best_diagonal(machine.weights)
    else:
        d = np.array(diagonal, float)
        if d.shape != machine.biases.shape or not np.isfinite(d).all():
            raise ArgumentError(
                f"diagonal: wanted {machine.num_units} finite numbers, got shape {d.shape}"
            )
    values, vectors = np.linalg.eigh(machine.weights + np.diag(d))
    floor = DROPPED * max(abs(values[0]), values[-1])
    if values[0] < -floor:
        raise ArgumentError(
            f"diagonal: W + D has an eigenvalue of {values[0]:.6g} and must have none below zero; "
            f"add {-values[0]:.6g} to each entry, or leave the diagonal out"
        )
    kept = values > floor
    if not kept.any():
        raise ArgumentError(
            "machine: its weights are zero, so that its units are independent and there is nothing "
            "to relax; give a positive diagonal if you want a density all the same"
        )
    factor = vectors[:, kept] * np.sqrt(values[kept])
    return Relaxation(machine, d, factor, CoshDensity(factor, machine.biases))


def mean_field(
    machine: BoltzmannMachine | Relaxation, num_starts: int = 1000, seed: int = 0
) -> list[LocalFit]:
    """Local Gaussian fits of a relaxation, or of a machine's best one, with their bounds."""
    if isinstance(machine, BoltzmannMachine):
        machine = relaxation(machine)
    return machine.mean_field(num_starts, seed)
