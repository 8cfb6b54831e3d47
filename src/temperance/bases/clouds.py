"""Clouds: what a density looks like about its modes, from short chains at the target.

Walkers start at draws of Laplace's approximation of each mode, and at draws of the base. Each makes
steps of Hamiltonian Monte Carlo, or of Metropolis where there is no gradient, in the coordinates of
its mode, with a step size of its own that is tuned as it goes (Robbins and Monro). The chains are
short and their step sizes keep changing, so that clouds are not draws of the target: they say where
its mass is and how wide, for a reference whose exact shape does not matter.

Walkers from the base find what has no maximum of its own: a slab about a spike, or the mouth of a
funnel.
"""

import numpy as np

from temperance.bases.batch_gradients import BatchGradients

LEAPS, RECORDS = 6, 8
WANTED, WANTED_OF_JUMPS, FIRST_STEP, LONGEST_STEP = 0.7, 0.3, 0.3, 1.0


def walk(
    gradients: BatchGradients,
    rng: np.random.Generator,
    starts: np.ndarray,
    factors: np.ndarray,
    num_steps: int,
) -> np.ndarray:
    """`num_steps` steps of each walker; `RECORDS` positions of it from the second half.

    They are (walker, record, d). `factors` are the coordinates of each walker: the lower triangle
    of a covariance.
    """
    smooth = gradients.has_gradient
    x, value, slope = starts.copy(), gradients.values(starts), np.zeros_like(starts)
    if smooth:
        slope = gradients(starts)[1]
    wanted = WANTED if smooth else WANTED_OF_JUMPS
    log_step = np.full(len(x), np.log(FIRST_STEP))
    every = max(num_steps // (2 * RECORDS), 1)
    kept = []
    for t in range(num_steps):
        noise = rng.standard_normal(x.shape)
        size = (np.exp(log_step) * rng.uniform(0.6, 1.4, len(x)))[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            if smooth:
                y, v, g, gain = _trajectory(gradients, factors, size, x, value, slope, noise)
            else:
                y, g = x + size * np.einsum("nij,nj->ni", factors, noise), slope
                v = gradients.values(y)
                gain = v - value
        gain = np.where(np.isfinite(gain), gain, -np.inf)
        take = np.log(rng.uniform(size=len(x))) < gain
        x, slope = np.where(take[:, None], y, x), np.where(take[:, None], g, slope)
        value = np.where(take, v, value)
        log_step += 1.5 / (t + 2.0) ** 0.6 * (np.exp(np.minimum(gain, 0.0)) - wanted)
        log_step = np.minimum(log_step, np.log(LONGEST_STEP))
        if (num_steps - 1 - t) % every == 0:
            kept.append(x)
    return np.stack(kept[-RECORDS:], axis=1)


def _trajectory(
    gradients: BatchGradients,
    factors: np.ndarray,
    size: np.ndarray,
    x: np.ndarray,
    value: np.ndarray,
    slope: np.ndarray,
    momentum: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The end of each leapfrog trajectory, its value and gradient, and the log ratio there."""
    y, p, v, g = x, momentum, value, slope
    for _ in range(LEAPS):
        half = p + 0.5 * size * np.einsum("nji,nj->ni", factors, g)
        y = y + size * np.einsum("nij,nj->ni", factors, half)
        v, g = gradients(y)
        p = half + 0.5 * size * np.einsum("nji,nj->ni", factors, g)
    return y, v, g, v - value + 0.5 * (np.sum(momentum**2, axis=1) - np.sum(p**2, axis=1))
