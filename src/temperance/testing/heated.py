"""Chains that travel the temperatures, and anneals, on a finite space: sums and no draws.

`log_densities[k, x]` is log pi_k(x), rung 0 hottest, and `kernels[k]` a matrix that leaves pi_k
invariant.

    anneal               E[r^p] = sum over paths of pi_0(x_0) prod T_k(x_{k-1}, x_k) r^p
    simulated tempering  (k, x) -> P(k' | x) T_k'(x, x')       on pairs, rung by rung
    Gibbs CT             x -> integral of p(beta | x) T_beta(x, x') d beta

In the last the integral is a Gauss-Legendre sum, exact to rounding for what is as smooth as this.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from temperance.testing.enumeration import JointLaw, JointMatrix, Law, Matrix, Table, normalised

NODES = 80


def annealed_moment(log_densities: Table, kernels: Sequence[Matrix], power: float = 1.0) -> float:
    """E[r^power] of an anneal; `kernels` are those of rungs 1 ... K-2, in order."""
    steps = np.exp(power * np.diff(log_densities, axis=0))
    law = normalised(log_densities[0]) * steps[0]
    for kernel, step in zip(kernels, steps[1:], strict=True):
        law = (law @ kernel) * step
    return float(law.sum())


def reverse_annealed_moment(
    log_densities: Table, kernels: Sequence[Matrix], power: float = 1.0
) -> float:
    """E[r'^power] of an anneal from the target; `kernels` are of rungs 1 ... K-2, in order.

    They are the reversals of those of the anneal, whose matrices are the same if reversible.
    """
    steps = np.exp(-power * np.diff(log_densities, axis=0))
    law = normalised(log_densities[-1]) * steps[-1]
    for kernel, step in zip(reversed(kernels), steps[-2::-1], strict=True):
        law = (law @ kernel) * step
    return float(law.sum())


def simulated_law(log_densities: Table, log_weights: Float[np.ndarray, " rungs"]) -> JointLaw:
    """The law of (rung, state), rung by rung."""
    return normalised((log_densities + log_weights[:, None]).ravel())


def simulated_step(probabilities: Table, kernels: Sequence[Matrix]) -> JointMatrix:
    """A rung drawn by `probabilities[k, x]` = P(k | x), then a move there, on pairs (k, x)."""
    num_rungs = probabilities.shape[0]
    blocks = [probabilities[k][:, None] * kernels[k] for k in range(num_rungs)]
    return np.tile(np.concatenate(blocks, axis=1), (num_rungs, 1))


def continuous_law(tilts: Law, log_hot: Law) -> Law:
    """The law of x with beta summed out: q(x) times the integral of exp(beta t(x))."""
    betas, shares = nodes()
    return normalised(log_hot + np.log(np.exp(tilts[:, None] * betas) @ shares))


def gibbs_step(
    density: Callable[[Float[np.ndarray, " nodes"], float], Float[np.ndarray, " nodes"]],
    tilts: Law,
    log_hot: Law,
    kernel_at: Callable[[Law], Matrix],
) -> Matrix:
    """Beta from `density(betas, tilt)`, then the move of `kernel_at(log density at beta)`."""
    betas, shares = nodes()
    matrix = np.zeros((tilts.size, tilts.size))
    given = np.stack([density(betas, float(tilt)) for tilt in tilts])
    for beta, share, weight in zip(betas, shares, given.T, strict=True):
        matrix += share * weight[:, None] * kernel_at(log_hot + beta * tilts)
    return matrix


def nodes() -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " nodes"]]:
    """Gauss-Legendre betas in (0, 1) and their shares."""
    places, shares = np.polynomial.legendre.leggauss(NODES)
    return 0.5 * (places + 1), 0.5 * shares
