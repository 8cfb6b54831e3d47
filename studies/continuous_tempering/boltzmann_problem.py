"""A relaxed Boltzmann machine in coordinates in which its base is cheap, with the truth and the base's errors.

    x = m + R y,      R the axes of the base's covariance, m its mean

is a rotation and a shift: log Z, root mean squares over entries of a mean or of a covariance, and HMC with unit
masses are the same in y, where the base has independent coordinates.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import temperance as tp
from temperance.models.boltzmann import BoltzmannMachine, Relaxation, relaxation
from temperance.models.boltzmann.relaxation import log_cosh

NUM_STARTS = 1000
MOMENTS = ("log_z", "mean", "covariance")


class TurnedCosh(eqx.Module):
    """The log density of a relaxation at m + R y: `factor` is QR, `biases` are Qm + b, `shift` is R'm."""

    factor: Float[Array, "units d"]
    biases: Float[Array, " units"]
    shift: Float[Array, " d"]

    def __call__(self, y: Float[Array, " d"]) -> Float[Array, ""]:
        return jnp.sum(log_cosh(self.factor @ y + self.biases)) - 0.5 * jnp.sum(
            (y + self.shift) ** 2
        )


class System(NamedTuple):
    """A target with its base, its guess of log Z, what is true, how far the base is from that, and exact draws."""

    density: TurnedCosh
    base: tp.Gaussian
    log_zeta: float
    log_z: float
    mean: np.ndarray
    covariance: np.ndarray
    base_errors: dict[str, float]
    draw: Callable[[np.random.Generator, int], np.ndarray]

    @property
    def dimension(self) -> int:
        return self.mean.size

    def errors(self, log_z: float, mean: np.ndarray, covariance: np.ndarray) -> dict[str, float]:
        """Root mean square errors of estimates."""
        return {
            "log_z": abs(log_z - self.log_z),
            "mean": rms(mean - self.mean),
            "covariance": rms(covariance - self.covariance),
        }


def rms(difference: np.ndarray) -> float:
    return float(np.sqrt(np.mean(difference**2)))


def read_system(path: Path) -> System:
    """One of the paper's systems."""
    with np.load(path) as stored:
        return system(relaxation(BoltzmannMachine(stored["weights"], stored["biases"])))


def system(relaxed: Relaxation, num_starts: int = NUM_STARTS) -> System:
    """A relaxation with its mean-field base, in the base's own axes."""
    relaxed.machine.exact(progress=False)
    fit = relaxed.fit(num_starts)
    center = np.asarray(fit.base.mean)
    factor = np.asarray(fit.base.factor)
    spread = factor @ factor.T if factor.ndim == 2 else np.diag(factor**2)
    variances, axes = np.linalg.eigh(spread)
    density = TurnedCosh(
        jnp.asarray(relaxed.factor @ axes),
        jnp.asarray(relaxed.factor @ center + relaxed.machine.biases),
        jnp.asarray(axes.T @ center),
    )
    found = System(
        density,
        tp.Gaussian(np.zeros(center.size), variances),
        float(fit.log_zeta),
        relaxed.log_z,
        axes.T @ (relaxed.mean - center),
        axes.T @ relaxed.covariance @ axes,
        {},
        lambda rng, num: (relaxed.draw(rng, num) - center) @ axes,
    )
    errors = found.errors(fit.log_zeta, np.zeros(center.size), np.diag(variances))
    return found._replace(base_errors=errors)
