"""A reference: a normalised mixture to heat towards, and what its own draws say of the target.

    q = w_0 base + sum_j w_j t_j,            log Z = log mean_q p / q,
    share of mode k = sum over draws that belong to k of p / q, over the sum of all

A bridge from q to p is exact whatever q is, since q is normalised and can be drawn from; what q is
like decides how short the way is. That is its communication barrier, which the draws know too:

    Lambda = integral over beta from 0 to 1 of E |l - l'| / 2,

with l and l' the log p / q of two draws of q (p / q)^beta, which are draws of q with weights.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp

from temperance.bases.hunt import Hunt
from temperance.bases.mixture_fit import Parts
from temperance.problems.gaussian import Gaussian
from temperance.problems.mixture import Mixture, StudentMixture

# A part with less than this share of its mode does not count.
MATTERS = 0.01
# Log ratios below this are nothing, and the powers between which the barrier is added up.
LOWEST, FIRST_POWER, NUM_POWERS = -1e10, 1e-14, 80


@dataclass(frozen=True, eq=False)
class Reference:
    """A normalised mixture to heat towards, and what is known from making it.

    `parts` are the t densities, and `mode` the number of each one's mode; modes from
    `hunt.num_modes` on were found by chains and not by climbs. `shares` are the modes' shares of
    the target's mass, with errors, by independent draws `points` of `drawn_from`, whose log ratios
    p / q are `log_ratios`. `shape` is the shape of the tail of these (below 0.7 what follows from
    them can be trusted) and `efficiency` the share of them that is effective.
    """

    density: Mixture | StudentMixture
    drawn_from: Mixture | StudentMixture
    parts: Parts
    mode: np.ndarray
    hunt: Hunt
    shares: np.ndarray
    share_errors: np.ndarray
    points: np.ndarray
    log_ratios: np.ndarray
    barrier: float
    shape: float
    efficiency: float
    num_evaluations: int

    @property
    def num_modes(self) -> int:
        return len(self.shares)

    @property
    def log_zeta(self) -> float:
        """Log Z, as the draws of the mixture tell it."""
        return float(logsumexp(self.log_ratios) - np.log(len(self.log_ratios)))

    def below(self, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The target's mass below thresholds (level, d), by coordinate, and its error."""
        importance = np.exp(self.log_ratios - logsumexp(self.log_ratios))
        inside = (self.points < thresholds[:, None]).astype(float)
        mass = np.einsum("n,lnd->ld", importance, inside)
        spread = (inside - mass[:, None]) ** 2
        return mass, np.sqrt(np.einsum("n,lnd->ld", importance**2, spread))

    @property
    def centers(self) -> np.ndarray:
        """Where each mode is: the best end of its climbs, or the mean of its largest part."""
        return np.array([self._center(k) for k in range(self.num_modes)])

    def _center(self, k: int) -> np.ndarray:
        if k < self.hunt.num_modes:
            return self.hunt.centers[np.flatnonzero(self.hunt.mode == k)[0]]
        own = np.flatnonzero(self.mode == k)
        return self.parts.means[own[np.argmax(self.parts.weights[own])]]

    @property
    def unevenness(self) -> float:
        """How much wider the widest part of a mode is than its narrowest, in the worst mode.

        Widths are geometric means over all directions: a funnel's change along it, a bent ridge's
        do not. Parts with less than a hundredth of the mode do not count.
        """
        found = [1.0]
        factors = np.linalg.cholesky(self.parts.scales)
        widths = np.log(np.einsum("jii->ji", factors)).mean(axis=1)
        for k in range(self.num_modes):
            own = self.mode == k
            heavy = own & (self.parts.weights > MATTERS * self.parts.weights[own].sum())
            found.append(float(np.exp(np.ptp(widths[heavy]))) if heavy.any() else 1.0)
        return max(found)

    def assign(self, points: np.ndarray) -> np.ndarray:
        """The mode that each point (n, d) most likely belongs to."""
        logs = self.parts.mixture().log_components(points)
        return np.argmax(by_mode(logs, self.mode, self.num_modes), axis=1)

    def log_drawn(self, points: np.ndarray) -> np.ndarray:
        """The log density that the draws behind `log_ratios` have, at points (n, d)."""
        return log_density(self.drawn_from, points)


def by_mode(logs: np.ndarray, mode: np.ndarray, num_modes: int) -> np.ndarray:
    """The log densities of the parts, (n, parts), added up within each mode."""
    return np.stack([logsumexp(logs[:, mode == k], axis=1) for k in range(num_modes)], axis=1)


def with_base(weight: float, wide: Any, parts: Parts) -> Mixture | StudentMixture:
    """The mixture of the base and the parts; one of t densities where the base is one as well."""
    alone = _as_parts(wide)
    weights = parts.weights / parts.weights.sum()
    if alone is None:
        return Mixture([weight, 1 - weight], [wide, parts._replace(weights=weights).mixture()])
    both = Parts(*(np.concatenate(leaves) for leaves in zip(alone, parts, strict=True)))
    return both._replace(weights=np.r_[weight, (1 - weight) * weights]).mixture()


def _as_parts(wide: Any) -> Parts | None:
    """A base as the one part of a mixture, if it is one."""
    if isinstance(wide, StudentMixture) and len(wide.means) == 1:
        factor, dofs = np.asarray(wide.factors)[0], np.asarray(wide.dofs)
        return Parts(np.ones(1), np.asarray(wide.means), (factor @ factor.T)[None], dofs)
    if isinstance(wide, Gaussian):
        factor = np.asarray(wide.factor, float)
        scale = np.diag(factor**2) if factor.ndim == 1 else factor @ factor.T
        mean = np.asarray(wide.mean, float)
        return Parts(np.ones(1), mean[None], scale[None], np.array([np.inf]))
    return None


def log_density(base: Any, points: np.ndarray) -> np.ndarray:
    """A base at many points; in NumPy where it is known how, which compiles nothing."""
    if isinstance(base, Mixture):
        logs = [log_density(one, points) for one in base.components]
        return logsumexp(np.stack(logs, axis=1) + np.asarray(base.log_weights), axis=1)
    alone = _as_parts(base)
    mixture = base if alone is None else alone.mixture()
    if isinstance(mixture, StudentMixture):
        return logsumexp(mixture.log_components(points), axis=1)
    return np.asarray(jax.jit(jax.vmap(base))(points))


def barrier(log_ratios: np.ndarray, log_weights: np.ndarray) -> float:
    """The communication barrier of the bridge from q to p, from weighted draws of q."""
    good = np.isfinite(log_ratios)
    if not good.any():
        return float("inf")
    order = np.argsort(log_ratios[good])
    ratios = np.maximum(log_ratios[good][order], LOWEST)
    weights = log_weights[good][order]
    betas = np.geomspace(FIRST_POWER, 1.0, NUM_POWERS)
    rates = []
    for beta in betas:
        logs = weights + beta * ratios
        w = np.exp(logs - logsumexp(logs))
        below = np.cumsum(w) - 0.5 * w
        # E |l - l'| / 2 = E l (2 F(l) - 1), F by ranks.
        rates.append(float(np.sum(w * ratios * (2 * below - 1))))
    return float(np.trapezoid([rates[0], *rates], np.r_[0.0, betas]))
