"""Mean-field fits of a Boltzmann machine: independent signs with means m, one fit for each mode.

    F(m) = sum_i H(m_i) + m'Wm / 2 + b'm <= log Z_B,       H(m) the entropy of a sign of mean m,

for any m, where W has a diagonal of zeros. F is largest in one m_i, the others held, at

    m_i = tanh(W_i m + b_i),

so that setting each in turn never lowers F, and what does not move any more is a fixed point. Where
that is slow, Newton's step for m = tanh(Wm + b) is taken as well, if it goes nearer to a solution
and does not lower F either. Many starts find many fixed points. They run side by side.

In a relaxation the fit's signs carry Gaussians: mean Q'm, covariance I + Q' diag(1 - m^2) Q, and
the bound moves with log Z.
"""

import numpy as np
from scipy.special import xlogy

from temperance.errors import ArgumentError

# Fixed points closer than this in every mean are one; what has settled is much closer than that.
SAME = 1e-6
SETTLED = 1e-12
ROUNDING = 1e-13
SWEEPS = 2000
ALONE = 50  # sweeps before Newton's steps


def fixed_points(
    weights: np.ndarray, biases: np.ndarray, *, num_starts: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct fixed points (one in each row) and their F, largest first.

    A start that has not settled after 2,000 sweeps is left out.
    """
    if num_starts < 1:
        raise ArgumentError(f"num_starts: wanted at least one, got {num_starts}")
    rng = np.random.default_rng(seed)
    means = rng.uniform(-1.0, 1.0, size=(num_starts, biases.size))
    moving = np.arange(num_starts)
    for k in range(SWEEPS):
        m = means[moving]
        moved = sweep(m.copy(), weights, biases)
        if k >= ALONE:
            moved = newton(moved, weights, biases)
        means[moving] = moved
        moving = moving[np.abs(moved - m).max(axis=1) > SETTLED]
        if not moving.size:
            break
    settled = np.delete(means, moving, axis=0)
    if not len(settled):
        raise ArgumentError(
            f"num_starts: none of the {num_starts} settled within {SWEEPS} sweeps; try more"
        )
    values = free_energy(settled, weights, biases)
    kept = np.empty((0, biases.size))
    bounds = []
    for k in np.argsort(-values, kind="stable"):
        if not (np.abs(kept - settled[k]).max(axis=1) < SAME).any():
            kept = np.vstack((kept, settled[k]))
            bounds.append(values[k])
    return kept, np.array(bounds)


def sweep(means: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """Set every unit's mean in turn, in place, for all starts (rows) at once."""
    for i in range(biases.size):
        means[:, i] = np.tanh(means @ weights[i] + biases[i])
    return means


def newton(means: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """Newton's step for m = tanh(Wm + b), in the rows where it helps."""
    right = np.tanh(means @ weights + biases)
    slopes = np.eye(biases.size) - (1.0 - right**2)[:, :, None] * weights
    try:
        moved = means - np.linalg.solve(slopes, (means - right)[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # exactly at a critical point
        return means
    inside = (np.abs(moved) < 1.0).all(axis=1)
    moved[~inside] = means[~inside]
    error = np.abs(moved - np.tanh(moved @ weights + biases)).max(axis=1)
    nearer = error < np.abs(means - right).max(axis=1)
    before, after = (free_energy(m, weights, biases) for m in (means, moved))
    helps = nearer & (after >= before - ROUNDING * np.abs(before))
    return np.where(helps[:, None], moved, means)


def free_energy(means: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """F, the bound on log Z_B, of each row."""
    up, down = 0.5 * (1.0 + means), 0.5 * (1.0 - means)
    entropy = -np.sum(xlogy(up, up) + xlogy(down, down), axis=1)
    return entropy + 0.5 * np.sum((means @ weights) * means, axis=1) + means @ biases
