"""A reference with a part for each mode: the hunt, clouds about what it finds, and their weights.

    q = w_0 base + sum_j w_j t_j

is normalised and can be drawn from, so that heating towards it is exact whatever it is like; what it
is like decides how short the way is. `base` covers what no part covers: a Target's own base, or for
a Problem a wide t density fitted to draws of its prior.

    1. hunt: where the modes are (hunt.py)
    2. clouds: what each of them looks like, and what lies where there is no maximum (clouds.py)
    3. parts: t densities fitted to each cloud, several where one does not fit (mixture_fit.py)
    4. weights: from the ratios p / q at draws of q, which also give a first estimate of log Z
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp

from temperance._types import Key
from temperance.bases.batch_gradients import BatchGradients
from temperance.bases.clouds import walk
from temperance.bases.hunt import Budget, Hunt, draws_of_base, hunt, spread_of
from temperance.bases.mixture_fit import Parts, fit_cloud, weigh
from temperance.bases.polish import Climb
from temperance.estimates.tails import ratio_shape
from temperance.problems.gaussian import Gaussian
from temperance.problems.mixture import Mixture, StudentMixture, covering
from temperance.problems.problem import Densities, Problem, Target
from temperance.programs.random_streams import Hunting, stream

# Walkers and their steps, where gradients are cheap and where they are not.
WALKERS, WALKS = (512, 64), (48, 32)
# Draws of q for its weights, for each mode and in all.
DRAWS, MOST_DRAWS, BASE_DRAWS = 1024, 8192, 2048
# The base's weight lies between these, and no mode's share is below the last over their number.
LEAST_BASE, MOST_BASE, LEAST_PART = 0.1, 0.5, 0.02
# Log ratios below this are nothing.
LOWEST = -1e10


@dataclass(frozen=True, eq=False)
class Reference:
    """A normalised mixture to heat towards, and what is known from making it.

    `parts` are the t densities, and `mode` the number of each one's mode; modes from
    `hunt.num_modes` on were found by chains and not by climbs. `shares` are the modes' shares of
    the target's mass, with errors, and `log_zeta` is log Z, both from independent draws of `drawn_from`,
    whose log ratios p / q are `log_ratios`. `shape` is the shape of their tail (below 0.7 these
    estimates can be trusted) and `efficiency` the share of them that is effective.
    """

    density: Mixture | StudentMixture
    drawn_from: Mixture | StudentMixture
    parts: Parts
    mode: np.ndarray
    hunt: Hunt
    shares: np.ndarray
    share_errors: np.ndarray
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

    @property
    def center(self) -> np.ndarray:
        """Where each mode is: the best end of its climbs, or the mean of its largest part."""
        found = []
        for k in range(self.num_modes):
            if k < self.hunt.num_modes:
                found.append(self.hunt.centers[np.flatnonzero(self.hunt.mode == k)[0]])
            else:
                own = np.flatnonzero(self.mode == k)
                found.append(self.parts.means[own[np.argmax(self.parts.weights[own])]])
        return np.array(found)

    def assign(self, points: np.ndarray) -> np.ndarray:
        """The mode that each point (n, d) most likely belongs to."""
        logs = self.parts.mixture().log_components(points)
        by_mode = [logsumexp(logs[:, self.mode == k], axis=1) for k in range(self.num_modes)]
        return np.argmax(by_mode, axis=0)

    def log_drawn(self, points: np.ndarray) -> np.ndarray:
        """The log density that the draws behind `log_ratios` have, at points (n, d)."""
        return log_density(self.drawn_from, points)


def find_reference(
    problem: Problem | Target, densities: Densities, key: Key, *, progress: bool = False
) -> Reference:
    """Hunt for the modes of `densities.whole`, and fit a mixture to what is found."""
    budget = Budget.of(densities.whole, densities.layout.dimension)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(stream(key, Hunting.HOST))))
    drawn = draws_of_base(densities, key, 2, BASE_DRAWS)
    climb = Climb(BatchGradients(densities.whole, drawn.shape[1], budget.chunk), *spread_of(drawn))
    found = hunt(climb, partial(draws_of_base, densities, key), rng, budget)
    wide = covering(drawn) if densities.hot is None or isinstance(problem, Problem) else densities.hot
    clouds = _clouds(climb, found, drawn, rng, cheap=budget.chunk > 64)
    fits = [fit_cloud(cloud, rng) for cloud in clouds]
    mode = np.repeat(np.arange(len(fits)), [len(fit.weights) for fit in fits])
    return _weighed(climb, fits, mode, found, wide, drawn, rng)


def _clouds(
    climb: Climb, found: Hunt, drawn: np.ndarray, rng: np.random.Generator, *, cheap: bool
) -> list[np.ndarray]:
    """The cloud of each mode, and one of the walkers from the base that are at none of them."""
    d = drawn.shape[1]
    num = WALKERS[0 if cheap else 1]
    ends = len(found.centers)
    from_base = num // 3
    which = np.arange(num - from_base) % max(ends, 1)
    factors = np.linalg.cholesky(found.covariances + 1e-14 * np.diag(climb.unit**2))
    z = rng.standard_normal((len(which), d))
    near = found.centers[which] + np.einsum("nij,nj->ni", factors[which], z)
    far = drawn[rng.permutation(len(drawn))[:from_base]]
    places = np.concatenate([near, far])
    values, _ = climb.gradients(places)
    inside = np.isfinite(values)
    inside[: len(which)] |= True
    places[: len(which)][~np.isfinite(values[: len(which)])] = found.centers[
        which[~np.isfinite(values[: len(which)])]
    ]
    unit = np.broadcast_to(np.diag(climb.unit), (from_base, d, d))
    walked = walk(
        climb.gradients, rng, places, np.concatenate([factors[which], unit]), WALKS[0 if cheap else 1]
    )
    mode = found.mode[which]
    clouds = [walked[: len(which)][mode == k] for k in range(found.num_modes)]
    rest = walked[len(which) :][inside[len(which) :]]
    for k, cloud in enumerate(clouds):
        if not len(rest):
            break
        fit = fit_cloud(cloud, rng).mixture()
        inner = logsumexp(fit.log_components(cloud.reshape(-1, d)), axis=1)
        outer = logsumexp(fit.log_components(rest[:, -1]), axis=1)
        belongs = outer >= inner.min() - 2.0
        clouds[k] = np.concatenate([cloud, rest[belongs]])
        rest = rest[~belongs]
    return clouds + ([rest] if len(rest) >= 3 else [])


def _weighed(
    climb: Climb,
    fits: list[Parts],
    mode: np.ndarray,
    found: Hunt,
    wide: Any,
    drawn: np.ndarray,
    rng: np.random.Generator,
) -> Reference:
    """The parts of all modes with weights from importance ratios, and what those tell."""
    modes, d = len(fits), drawn.shape[1]
    parts = Parts(*(np.concatenate(leaves) for leaves in zip(*fits, strict=True)))
    inner = StudentMixture(*parts)
    each = min(DRAWS, MOST_DRAWS // (modes + 1))
    counts = np.concatenate([rng.multinomial(each, fit.weights) for fit in fits])
    points = np.concatenate([inner.draws(rng, counts), drawn[:each]])
    base = min(each, len(drawn))
    values, _ = climb.gradients(points)
    # Each part's own density, without the weight that it has among all parts.
    own = inner.log_components(points) - np.asarray(inner.log_weights)
    logs = np.concatenate([log_density(wide, points)[:, None], own], axis=1)
    first = np.r_[base, np.concatenate([each * fit.weights for fit in fits])] / len(points)
    log_q = logsumexp(logs + np.log(first), axis=1)
    ratios = np.where(np.isfinite(values), values - log_q, -np.inf)
    weights = weigh(ratios, logs, first)
    by_mode = np.bincount(mode, weights=weights[1:], minlength=modes)
    share = np.maximum(by_mode / by_mode.sum(), LEAST_PART / modes)
    share /= share.sum()
    part = weights[1:] / np.maximum(by_mode[mode], 1e-300) * share[mode]
    part = np.maximum(part, 1e-3 / len(part))
    base_weight = float(np.clip(weights[0], LEAST_BASE, MOST_BASE))
    parts = parts._replace(weights=part / part.sum())
    # The same draws, as if they were of the mixture with its last weights.
    final = logsumexp(
        logs + np.log(np.r_[base_weight, (1 - base_weight) * parts.weights]), axis=1
    )
    shares, errors, efficiency = _shares(ratios, logs[:, 1:] + np.log(parts.weights), mode, modes)
    return Reference(
        with_base(base_weight, wide, parts),
        with_base(first[0], wide, parts._replace(weights=first[1:])),
        parts, mode, found, shares, errors, ratios, barrier(values - final, final - log_q),
        ratio_shape(ratios), efficiency, climb.num_evaluations,
    )  # fmt: skip


def _shares(
    log_ratios: np.ndarray, logs: np.ndarray, mode: np.ndarray, modes: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """The modes' shares of the target's mass, their standard errors, and the effective share."""
    importance = np.exp(log_ratios - logsumexp(log_ratios))
    joint = np.stack([logsumexp(logs[:, mode == k], axis=1) for k in range(modes)], axis=1)
    inside = np.eye(modes)[np.argmax(joint, axis=1)]
    shares = importance @ inside
    errors = np.sqrt(importance**2 @ (inside - shares) ** 2)
    return shares, errors, float(1 / np.sum(importance**2) / len(importance))


def barrier(log_ratios: np.ndarray, log_weights: np.ndarray) -> float:
    """The communication barrier of the bridge from q to p, from weighted draws of q.

    The integral over beta of E |l - l'| / 2, l = log p / q, under q (p / q)^beta.
    """
    good = np.isfinite(log_ratios)
    if not good.any():
        return float("inf")
    order = np.argsort(log_ratios[good])
    ratios, weights = np.maximum(log_ratios[good][order], LOWEST), log_weights[good][order]
    # Draws of the base at places that the target does not know count next to beta = 0 alone.
    betas = np.r_[0.0, np.geomspace(1e-14, 1.0, 80)]
    rates = []
    for beta in betas[1:]:
        logs = weights + beta * ratios
        w = np.exp(logs - logsumexp(logs))
        below = np.cumsum(w) - 0.5 * w
        # E |l - l'| = 2 E l (2 F(l) - 1), by ranks.
        rates.append(float(np.sum(w * ratios * (2 * below - 1))))
    return float(np.trapezoid([rates[0], *rates], betas))


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
        scale = np.asarray(wide.factors)[0] @ np.asarray(wide.factors)[0].T
        dofs = np.asarray(wide.dofs)
        return Parts(np.ones(1), np.asarray(wide.means), scale[None], dofs)
    if isinstance(wide, Gaussian):
        factor = np.asarray(wide.factor, float)
        scale = np.diag(factor**2) if factor.ndim == 1 else factor @ factor.T
        return Parts(np.ones(1), np.asarray(wide.mean, float)[None], scale[None], np.array([np.inf]))
    return None


def log_density(base: Any, points: np.ndarray) -> np.ndarray:
    """A base at many points; in NumPy where it is known how, which compiles nothing."""
    alone = _as_parts(base)
    mixture = base if isinstance(base, StudentMixture) else alone and alone.mixture()
    if mixture is not None:
        return logsumexp(mixture.log_components(points), axis=1)
    if isinstance(base, Mixture):
        logs = [log_density(one, points) for one in base.components]
        return logsumexp(np.stack(logs, axis=1) + np.asarray(base.log_weights), axis=1)
    return np.asarray(jax.jit(jax.vmap(base))(points))

