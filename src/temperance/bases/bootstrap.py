"""A better base from the draws that a base gave: one round of the iteration of paper 4, section 6.

Draws x_s of the joint law of (x, beta) with log weights a_s towards the target give, with
w = softmax(a),

    m = sum_s w_s x_s,       S = sum_s w_s (x_s - m) (x_s - m)',       n = 1 / sum_s w_s^2

(Kish's effective size). As printed the next base is N(m, S). With few effective draws S is too
narrow, or singular, and the next round never returns from it. So the old base, N(m0, S0), counts as
nu = d + 2 draws (3 for each coordinate of a diagonal one), with a share of r = nu / (n + nu):

    mean       = (1 - r) m + r m0,
    covariance = c [(1 - r) S + r S0 + r (1 - r) (m - m0) (m - m0)'],       c = 1 + nu / (n + nu),

the moments of the mixture of both, made wider by c: a base that is too wide costs little, and one
that is too narrow misses what it does not cover. Both r and c - 1 vanish as n grows, and the
covariance is positive definite as S0 is. Where n is below 10 or a hundredth of the draws, the draws
say nothing and the base stays; log zeta then goes towards log Z by at most 3, which is what gets
draws near the target. Otherwise log zeta becomes log Z.

Kish's size knows nothing of correlation between draws: for draws of a chain give `num_effective`.
A base must not be adapted in the run whose draws are kept.
"""

from typing import Any

import numpy as np

from temperance._types import Numbers
from temperance.bases.choice import FITTED
from temperance.problems.checks import check_count
from temperance.errors import ArgumentError, unknown_name
from temperance.bases.fit import Fit
from temperance.problems.gaussian import Gaussian
from temperance.problems.problem import Problem, Target
from temperance.results.tree import log_evidence
from temperance.sampling import sample
from temperance.estimates.weighted import kish, weighted_mean

# What the base moves for at least: effective draws, and their share of all draws.
LEAST_EFFECTIVE, LEAST_SHARE = 10.0, 0.01
# How far log zeta goes at most on draws that say little.
LONGEST_STEP = 3.0


def bootstrap(
    problem: Problem | Target,
    fit: Fit | Gaussian | str = "fits",
    *,
    num_rounds: int = 3,
    method: str = "gibbs-ct",
    num_draws: int = 500,
    num_warmup: int = 500,
    num_chains: int = 4,
    seed: int = 0,
    **options: Any,
) -> Fit:
    """A base and log zeta from `num_rounds` short runs, each with the base that the last one gave.

    `fit` is where to begin: "fits" or "advi", a Fit, or a Gaussian. Give what comes back to the run
    whose draws are to be kept, as `base=`. Other options go to `sample`.
    """
    rounds = check_count("num_rounds", num_rounds, 1)
    if isinstance(fit, str):
        if fit not in FITTED:
            raise unknown_name("fit to begin with", fit, FITTED)
        told = {n: options[n] for n in ("progress", "precision") if n in options}
        now = FITTED[fit](problem, seed=seed, **told)
    else:
        now = fit if isinstance(fit, Fit) else Fit(fit, 0.0)
    for number in range(rounds):
        tree = sample(
            problem, method=method, base=now.base, num_draws=num_draws, num_warmup=num_warmup,
            num_chains=num_chains, seed=seed + number, **options,
        )  # fmt: skip
        positions, logs = _draws(tree)
        effective = float(np.nanmin(weighted_mean(positions, logs).ess))
        flat = positions.reshape(-1, positions.shape[-1])
        now = Fit(
            *next_base(
                now.base, now.log_zeta, flat, logs.ravel(), log_evidence(tree)[0],
                num_effective=max(effective, 1.0),
            )
        )  # fmt: skip
    return now


def _draws(tree: Any) -> tuple[np.ndarray, np.ndarray]:
    """Draws as vectors (chain, draw, d), and their log weights."""
    group = "unconstrained_posterior" if "unconstrained_posterior" in tree.children else "posterior"
    leaves = [array.values for array in tree[group].dataset.data_vars.values()]
    flat = [leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves]
    return np.concatenate(flat, axis=2), tree["sample_stats"]["log_weight"].values


def next_base(
    base: Gaussian,
    log_zeta: float,
    positions: Numbers,
    log_weights: Numbers,
    log_z: float,
    *,
    num_effective: float | int | None = None,
) -> tuple[Gaussian, float]:
    """The base and log zeta of the next round, from this round's draws and estimate of log Z.

    `positions` are (n, d) and `log_weights` (n,) those towards the target. `num_effective`, if
    given, takes the place of Kish's size where it is smaller. A diagonal base stays diagonal.
    """
    x, logs = np.asarray(positions, float), np.asarray(log_weights, float)
    _check(base, log_zeta, x, logs, num_effective)
    effective = kish(logs)
    if num_effective is not None:
        effective = min(effective, float(num_effective))
    if effective < max(LEAST_EFFECTIVE, LEAST_SHARE * len(logs)) or not np.isfinite(log_z):
        return base, _step(log_zeta, log_z)
    weighty = logs > -np.inf
    if not np.isfinite(x[weighty]).all():
        raise ArgumentError("positions: some draws with weight are not finite; leave them out")
    weights = np.exp(logs[weighty] - np.logaddexp.reduce(logs))
    try:
        return _mixed(base, x[weighty], weights, effective), float(log_z)
    except ArgumentError:
        # Rounding may eat the old covariance where the new one is larger by many powers of ten.
        return base, _step(log_zeta, log_z)


def _mixed(base: Gaussian, x: np.ndarray, weights: np.ndarray, effective: float) -> Gaussian:
    """The moments of draws and old base together, made wider."""
    old_mean, factor = np.asarray(base.mean, float), np.asarray(base.factor, float)
    diagonal = factor.ndim == 1
    worth = 3.0 if diagonal else old_mean.size + 2.0
    pull = worth / (effective + worth)
    mean = weights @ x
    centred, away = x - mean, mean - old_mean
    if diagonal:
        spread, old, between = weights @ centred**2, factor**2, away**2
    else:
        spread, old = (centred.T * weights) @ centred, factor @ factor.T
        between = np.outer(away, away)
    covariance = (1 - pull) * spread + pull * old + pull * (1 - pull) * between
    return Gaussian((1 - pull) * mean + pull * old_mean, (1 + pull) * covariance)


def _step(log_zeta: float, log_z: float) -> float:
    if np.isnan(log_z):
        return float(log_zeta)
    return float(log_zeta + np.clip(log_z - log_zeta, -LONGEST_STEP, LONGEST_STEP))


def _check(
    base: Gaussian,
    log_zeta: float,
    x: np.ndarray,
    logs: np.ndarray,
    num_effective: float | int | None,
) -> None:
    if not isinstance(base, Gaussian):
        raise ArgumentError(f"base: wanted a Gaussian, got {type(base).__name__}")
    if x.ndim != 2 or x.shape[1] != base.dimension or not len(x):
        raise ArgumentError(
            f"positions: wanted draws by rows, (n, {base.dimension}), got shape {x.shape}"
        )
    if logs.shape != x.shape[:1]:
        raise ArgumentError(
            f"log_weights: wanted one for each of {len(x)} draws, got shape {logs.shape}"
        )
    if np.isnan(logs).any() or (logs == np.inf).any():
        raise ArgumentError("log_weights: wanted numbers or -inf, got some that are NaN or +inf")
    if not np.isfinite(log_zeta):
        raise ArgumentError(f"log_zeta: wanted a finite number, got {log_zeta!r}")
    if num_effective is not None and not num_effective > 0:
        raise ArgumentError(f"num_effective: wanted a positive number, got {num_effective!r}")
