"""A Boltzmann machine: a law on the 2^n vectors of signs.

    P(s) = exp(s'W s / 2 + b's) / Z_B,      s in {-1, +1}^n          (paper 4, equation 44)

Since s_i^2 = 1, a diagonal of W adds the constant tr(W)/2 to every exponent. It is taken out of the
weights and kept apart, so that `weights` always has a diagonal of zeros.

*Random machines* (appendix B): a rotation R uniform under Haar's measure, eigenvalues
e_i = scale tanh(steepness n_i) with standard normal n_i, W = R diag(e) R' without its diagonal, and
biases N(0, bias^2). Most eigenvalues are near +-scale, and the law has many modes. The orthogonal
factor of a normal matrix is uniform only once the signs of the other factor's diagonal are divided
out: LAPACK chooses those signs by the entries.
"""

from dataclasses import dataclass, field

import numpy as np

from temperance._types import Numbers
from temperance.models.boltzmann.enumeration import LARGEST, Exact, enumerate_states
from temperance.errors import ArgumentError

ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class BoltzmannMachine:
    """The law on signs with these `weights` and `biases`.

    `weights` is a symmetric matrix. Its diagonal is folded into `constant`, which is part of log
    Z_B and of nothing else.
    """

    weights: np.ndarray
    biases: np.ndarray
    constant: float
    _known: dict[str, Exact] = field(repr=False)

    def __init__(self, weights: Numbers, biases: Numbers):
        matrix, vector = _real("weights", weights), _real("biases", biases)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise ArgumentError(f"weights: wanted a square matrix, got shape {matrix.shape}")
        if vector.shape != matrix.shape[:1]:
            raise ArgumentError(
                f"biases: wanted one for each of the {matrix.shape[0]} units, got shape "
                f"{vector.shape}"
            )
        uneven = np.abs(matrix - matrix.T)
        if uneven.max() > ROUNDING * np.abs(matrix).max():
            i, j = np.unravel_index(np.argmax(uneven), uneven.shape)
            raise ArgumentError(
                f"weights: wanted a symmetric matrix, but weights[{i}, {j}] = {matrix[i, j]:.6g} "
                f"and weights[{j}, {i}] = {matrix[j, i]:.6g}; (W + W') / 2 has the same law"
            )
        matrix = 0.5 * (matrix + matrix.T)
        constant = 0.5 * float(np.trace(matrix))
        np.fill_diagonal(matrix, 0.0)
        for name, value in (
            ("weights", matrix), ("biases", vector), ("constant", constant), ("_known", {}),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def num_units(self) -> int:
        return self.biases.size

    def log_weight(self, states: np.ndarray) -> np.ndarray | np.floating:
        """The exponent of states on the last axis, with the constant of the diagonal."""
        pairs = 0.5 * np.sum((states @ self.weights) * states, axis=-1)
        return pairs + states @ self.biases + self.constant

    def exact(self, *, progress: bool = True, largest: int = LARGEST) -> Exact:
        """The log of Z_B, the moments and a sampler, by summing over all 2^n states; computed once.

        Each unit more doubles the work. Above `largest` units this is refused.
        """
        if "exact" not in self._known:
            self._known["exact"] = enumerate_states(
                self.weights, self.biases, self.constant, progress=progress, largest=largest
            )
        return self._known["exact"]


def random_machine(
    num_units: int, seed: int, scale: float = 6.0, steepness: float = 2.0, bias: float = 0.1
) -> BoltzmannMachine:
    """A machine with many modes, from its seed."""
    if num_units < 1:
        raise ArgumentError(f"num_units: wanted at least one, got {num_units}")
    for name, value in (("scale", scale), ("steepness", steepness), ("bias", bias)):
        if not (np.isfinite(value) and value >= 0):
            raise ArgumentError(f"{name}: wanted a finite number that is not negative, got {value}")
    rng = np.random.default_rng(seed)
    rotation = random_rotation(rng, num_units)
    eigenvalues = scale * np.tanh(steepness * rng.normal(size=num_units))
    weights = (rotation * eigenvalues) @ rotation.T
    np.fill_diagonal(weights, 0.0)
    return BoltzmannMachine(weights, bias * rng.normal(size=num_units))


def random_rotation(rng: np.random.Generator, num_units: int) -> np.ndarray:
    """An orthogonal matrix, uniform under Haar's measure."""
    orthogonal, triangular = np.linalg.qr(rng.normal(size=(num_units, num_units)))
    return orthogonal * np.sign(np.diagonal(triangular))


def _real(name: str, values: object) -> np.ndarray:
    try:
        array = np.array(values, float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: wanted real numbers, got {values!r}") from None
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name}: wanted finite numbers, got {array[~np.isfinite(array)][0]}")
    return array
