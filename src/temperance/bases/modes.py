"""A reference with a part for each mode: the hunt, clouds about what it finds, and their weights.

    1. hunt      where the modes are (hunt.py)
    2. clouds    what each looks like, and what lies where there is no maximum (clouds.py)
    3. parts     t densities fitted to each cloud, several where one does not fit (mixture_fit.py)
    4. weights   from the ratios p / q at draws of q, which also tell log Z, the modes' shares and
                 how far q is from p (reference.py)

q also has the base as a part, which covers what no other part covers: a Target's own base; for a
Problem a wide t density fitted to draws of its prior, which is normalised whether or not the prior
is. A Target without a base has such a t density about the points where chains would start.

The reference depends on the problem and on the seed alone, and is made before the run begins. A run
that is resumed makes it again.
"""

from functools import partial
from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp

from temperance._types import Key
from temperance.bases.batch_gradients import BatchGradients
from temperance.bases.clouds import walk
from temperance.bases.hunt import MOST_STEPS, Budget, Hunt, draws_of_base, hunt, spread_of
from temperance.bases.mixture_fit import Parts, fit_cloud, weigh
from temperance.bases.polish import Climb
from temperance.bases.reference import Reference, barrier, by_mode, log_density, with_base
from temperance.errors import StartError
from temperance.estimates.tails import ratio_shape
from temperance.problems.mixture import StudentMixture, covering
from temperance.problems.problem import Densities, Problem, Target
from temperance.programs.progress import reporter
from temperance.programs.random_streams import Hunting, stream

# Walkers, a third of them from the base, and their steps: where gradients are cheap, and where not.
WALKERS, WALKS, THIRD = (512, 64), (48, 32), 3
# A walker belongs to a mode where the fit is no thinner than at the thinnest of its cloud, less
# this; a cloud of its own takes so many.
SLACK, FEWEST = 2.0, 3
# Draws of q for its weights, for each mode and in all; draws of the base that it is measured by.
DRAWS, MOST_DRAWS, BASE_DRAWS = 1024, 8192, 2048
# The base's weight lies between these, and no mode's is below the last over their number.
LEAST_BASE, MOST_BASE, LEAST_MODE, LEAST_PART = 0.1, 0.5, 0.02, 1e-3
# Steps of warm-up that a full hunt goes with, and the least share of a full hunt.
USUAL_WARMUP, LEAST_EFFORT = 1000, 0.1
# A cloud at no end of a climb is a mode from this share on.
NEGLIGIBLE = 1e-3


def find_reference(
    problem: Problem | Target,
    densities: Densities,
    key: Key,
    *,
    progress: bool = False,
    num_warmup: int = USUAL_WARMUP,
) -> Reference:
    """Hunt for the modes of `densities.whole`, and fit a mixture to what is found.

    A run with a short warm-up has a short hunt. How many draws are wanted does not count, so that a
    run can be made longer.
    """
    effort = float(np.clip(num_warmup / USUAL_WARMUP, LEAST_EFFORT, 1.0))
    budget = Budget.of(densities.whole, densities.layout.dimension, effort)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(stream(key, Hunting.HOST))))
    drawn = draws_of_base(densities, key, 2, BASE_DRAWS)
    gradients = BatchGradients(densities.whole, drawn.shape[1], budget.chunk)
    with reporter(progress) as bars:
        bars.begin("modes", budget.num_gradients, 0)
        gradients.told = lambda count: bars.update(min(count, budget.num_gradients), "")
        climb = Climb(gradients, *spread_of(drawn))
        found = hunt(climb, partial(draws_of_base, densities, key), rng, budget)
        clouds, of = _clouds(climb, found, drawn, rng, cheap=budget.cheap)
        bars.update(budget.num_gradients, f"{max(of) + 1} found")
    fits = [fit_cloud(cloud, rng) for cloud in clouds]
    wide, own = densities.hot, densities.hot is not None and not isinstance(problem, Problem)
    if not own:
        wide = covering(drawn)
        drawn = wide.draws(rng, np.array([len(drawn)]))
    reference = _weighed(climb, fits, of, found, wide, drawn, rng)
    if len(fits) > 1 and of[-1] == found.num_modes and reference.shares[-1] < NEGLIGIBLE:
        # Walkers that were still on their way are no mode.
        return _weighed(climb, fits[:-1], of[:-1], found, wide, drawn, rng)
    return reference


def _clouds(
    climb: Climb, found: Hunt, drawn: np.ndarray, rng: np.random.Generator, *, cheap: bool
) -> tuple[list[np.ndarray], list[int]]:
    """A cloud about each mode, one of the walkers from the base elsewhere, and whose they are."""
    num, num_steps = (pair[0 if cheap else 1] for pair in (WALKERS, WALKS))
    d = drawn.shape[1]
    far = drawn[rng.permutation(len(drawn))[: num // THIRD]]
    far = far[np.isfinite(climb.gradients.values(far))]
    unit = np.broadcast_to(np.diag(climb.unit), (len(far), d, d))
    if not len(found.centers) and not len(far):
        raise StartError(
            f"the log density is -inf or NaN at all of {found.num_draws} draws of the prior or base"
        )
    if not len(found.centers):
        return [walk(climb.gradients, rng, far, unit, num_steps)], [0]
    which = np.arange(num - num // THIRD) % len(found.centers)
    factors = np.linalg.cholesky(found.covariances + 1e-14 * np.diag(climb.unit**2))[which]
    centers = found.centers[which]
    near = centers + np.einsum("nij,nj->ni", factors, rng.standard_normal((len(which), d)))
    outside = ~np.isfinite(climb.gradients.values(near))
    near[outside] = centers[outside]
    places, coordinates = np.concatenate([near, far]), np.concatenate([factors, unit])
    walked = walk(climb.gradients, rng, places, coordinates, num_steps)
    rest, mode = walked[len(which) :], found.mode[which]
    clouds = []
    for k in range(found.num_modes):
        cloud = walked[: len(which)][mode == k]
        fit = fit_cloud(cloud, rng).mixture()
        inside = logsumexp(fit.log_components(cloud.reshape(-1, d)), axis=1)
        belongs = logsumexp(fit.log_components(rest[:, -1]), axis=1) >= inside.min() - SLACK
        clouds.append(np.concatenate([cloud, rest[belongs]]))
        rest = rest[~belongs]
    of = list(range(found.num_modes))
    if len(rest) < FEWEST:
        return clouds, of
    # A slab about a spike, or the mouth of a funnel, is uphill of nothing but the mode itself.
    ends = climb.polish(rest[:, -1], MOST_STEPS)
    owner = found.nearest(ends.x)
    counts = np.bincount(found.mode[owner[owner >= 0]], minlength=found.num_modes)
    known = counts.max() >= len(rest) / 2
    return [*clouds, rest], [*of, int(counts.argmax()) if known else found.num_modes]


def _owners(climb: Climb, parts: Parts, mode: np.ndarray, found: Hunt) -> np.ndarray:
    """The mode of each part: where a climb from its middle ends, or else that of its cloud.

    Walkers may cross from one mode to another, and the cloud of the one then has a part there.
    """
    owner = found.nearest(climb.polish(parts.means, MOST_STEPS).x)
    new = np.where(owner >= 0, np.append(found.mode, -1)[owner], mode)
    for k in np.setdiff1d(mode, new):
        # A mode keeps its largest part, wherever that is.
        own = np.flatnonzero(mode == k)
        new[own[np.argmax(parts.weights[own])]] = k
    return new


def _weighed(
    climb: Climb,
    fits: list[Parts],
    of: list[int],
    found: Hunt,
    wide: Any,
    drawn: np.ndarray,
    rng: np.random.Generator,
) -> Reference:
    """The parts of all modes with weights from importance ratios, and what those tell.

    `drawn` are draws of `wide`.
    """
    modes = max(of) + 1
    mode = np.repeat(of, [len(fit.weights) for fit in fits])
    parts = Parts(*(np.concatenate(leaves) for leaves in zip(*fits, strict=True)))
    mode = _owners(climb, parts, mode, found)
    inner = StudentMixture(*parts)
    each = min(DRAWS, MOST_DRAWS // (len(fits) + 1))
    counts = np.concatenate([rng.multinomial(each, fit.weights) for fit in fits])
    points = np.concatenate([inner.draws(rng, counts), drawn[:each]])
    values = climb.gradients.values(points)
    # Each part's own density, without the weight that it has among all parts.
    own = inner.log_components(points) - np.asarray(inner.log_weights)
    logs = np.concatenate([log_density(wide, points)[:, None], own], axis=1)
    first = np.r_[1.0, np.concatenate([fit.weights for fit in fits])] * each / len(points)
    log_q = logsumexp(logs + np.log(first), axis=1)
    ratios = np.where(np.isfinite(values), values - log_q, -np.inf)
    weights = weigh(ratios, logs, first)
    of_mode = np.bincount(mode, weights=weights[1:], minlength=modes)
    share = np.maximum(of_mode / max(of_mode.sum(), 1e-300), LEAST_MODE / modes)
    part = weights[1:] / np.maximum(of_mode[mode], 1e-300) * share[mode] / share.sum()
    part = np.maximum(part, LEAST_PART / len(part))
    base_weight = float(np.clip(weights[0], LEAST_BASE, MOST_BASE))
    last = parts._replace(weights=part / part.sum())
    # The same draws, as if they were of the mixture with its last weights.
    after = np.r_[base_weight, (1 - base_weight) * last.weights]
    final = logsumexp(logs + np.log(after), axis=1)
    importance = np.exp(ratios - logsumexp(ratios))
    belongs = np.argmax(by_mode(logs[:, 1:] + np.log(last.weights), mode, modes), axis=1)
    inside = np.eye(modes)[belongs]
    shares = importance @ inside
    return Reference(
        with_base(base_weight, wide, last),
        with_base(first[0], wide, parts._replace(weights=first[1:])),
        last, mode, found, shares, np.sqrt(importance**2 @ (inside - shares) ** 2),
        points, ratios,
        barrier(values - final, final - log_q), ratio_shape(ratios),
        float(1 / np.sum(importance**2) / len(importance)), climb.num_evaluations,
    )  # fmt: skip
