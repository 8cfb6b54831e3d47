"""Automatic differentiation variational inference: Gaussian bases fitted to a target.

A fit is the Gaussian q of a family with the largest bound

    l = E_q [log p(x) - log q(x)] = log Z - KL(q || p / Z)

(variational_bound.py: its draws and gradients; lbfgs.py: its maximisation). Its base is q, and log
zeta is l. A Gaussian takes the shape of one mode. `local_fits` starts from several
points, drops copies, and keeps the moments of the mixture (fit.py; paper 4, section 6 and equation
25).
"""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from temperance._types import Keys, Numbers
from temperance.bases.fit import Fit, LocalFit, match_moments
from temperance.bases.lbfgs import Climb
from temperance.errors import ArgumentError, StartError, unknown_name
from temperance.problems.checks import check_count, check_problem
from temperance.problems.gaussian import Gaussian
from temperance.problems.problem import Densities, Problem, Target, densities_of
from temperance.programs.progress import reporter
from temperance.programs.scope import across_precisions, scope
from temperance.rows.source import refuse_sources

FAMILIES = ("diagonal", "dense")
# Fixed draws by default: this many, or thrice the dimension; a diagonal family stops at the last.
LEAST_SAMPLES, SAMPLES_PER_DIMENSION, MOST_SAMPLES = 64, 3, 1024
# A gradient of this length is not at a maximum.
WORRYING = 0.1
# Starting points looked at: this many, or four for each that is wanted.
LEAST_STARTS, STARTS_PER_FIT = 64, 4


class FitWarning(UserWarning):
    """A variational fit ended before it was at a maximum of its bound."""


@across_precisions
def advi(
    problem: Problem | Target,
    *,
    family: str = "diagonal",
    num_steps: int = 500,
    num_samples: int | None = None,
    seed: int = 0,
    start: Numbers | None = None,
    precision: str = "double",
    progress: bool = True,
) -> Fit:
    """The Gaussian nearest to `problem`, and its lower bound on log Z as `log_zeta`.

    Nearest means least KL(q || p), so that a target with several modes gets one of them. `family`
    is "diagonal" or "dense". `start` is a vector laid out as the position is; by default a draw
    from the prior, from the base, or around the example. `num_steps` is the most that either pass
    makes; `num_samples` the number of fixed draws, by default 64 or three times the dimension,
    and even. The log density must be finite and smooth on all vectors: where it is not, no Gaussian
    has a finite bound. `local[0].error` is the standard error of the bound.
    """
    fits = _fits(
        problem, 1, family, num_steps, num_samples, seed, start, precision, progress, "advi"
    )
    fit = fits[0]
    if not np.isfinite(fit.bound):
        raise StartError(
            "advi: some draws of the fitted Gaussian have no finite log density, and the bound on "
            "log Z is not finite; write parameters with bounds on the whole line, such as their log"
        )
    return Fit(Gaussian(fit.mean, fit.covariance), fit.bound, (fit,))


@across_precisions
def local_fits(
    problem: Problem | Target,
    num_fits: int = 8,
    *,
    family: str = "diagonal",
    num_steps: int = 500,
    num_samples: int | None = None,
    seed: int = 0,
    precision: str = "double",
    progress: bool = True,
) -> Fit:
    """The Gaussian with the moments of several fits' mixture, and the mass of all of them.

    Each fit is that of `advi` from a start of its own, a draw from the prior, from the base, or
    around the example; copies are dropped. Modes that no start leads to are missing, and nothing
    says so. `local` holds the fits that are kept.
    """
    num_fits = check_count("num_fits", num_fits, 1)
    return match_moments(
        _fits(
            problem, num_fits, family, num_steps, num_samples, seed, None, precision, progress,
            "local_fits",
        )
    )  # fmt: skip


def _fits(
    problem: Problem | Target,
    num_fits: int,
    family: str,
    num_steps: int,
    num_samples: int | None,
    seed: int,
    start: Numbers | None,
    precision: str,
    progress: bool,
    name: str,
) -> list[LocalFit]:
    if not isinstance(problem, Problem | Target):
        raise ArgumentError(f"problem: wanted a Problem or a Target, got {type(problem).__name__}")
    if family not in FAMILIES:
        raise unknown_name("family", family, FAMILIES)
    num_steps = check_count("num_steps", num_steps, 1)
    seed = check_count("seed", seed, 0)
    if isinstance(problem, Problem):
        refuse_sources(problem.data, name)
    with scope(precision):
        densities = densities_of(problem)
        check_problem(problem, densities)
        num_samples = _num_samples(num_samples, densities.layout.dimension, family)
        starts, unit = _starts(densities, num_fits, seed, start)
        climb = Climb(densities, family == "dense", num_steps, num_samples, seed)
        fits, lengths = [], []
        # One by one: together, every trial of a line search would wait for the slowest fit.
        with reporter(progress) as bars:
            for i, x in enumerate(starts):
                label = "fit" if num_fits == 1 else f"fit {i + 1}"
                fit, length = climb.from_start(x, unit, bars, label)
                fits.append(fit)
                lengths.append(length)
    short = sum(length > WORRYING for length in lengths)
    if short:
        warnings.warn(
            f"{short} of {num_fits} fits ended before a maximum of the bound (gradient "
            f"{max(lengths):.2g}): give more num_steps, or check that the density is smooth and "
            "has a finite integral",
            FitWarning,
            4,
        )
    return fits


def _num_samples(num_samples: int | None, dimension: int, family: str) -> int:
    dense = family == "dense"
    if num_samples is None:
        wanted = SAMPLES_PER_DIMENSION * dimension
        wanted = wanted if dense else min(wanted, MOST_SAMPLES)
        return max(LEAST_SAMPLES, wanted + wanted % 2)
    num_samples = check_count("num_samples", num_samples, 2)
    if num_samples % 2:
        raise ArgumentError(
            f"num_samples: wanted an even number, since draws come in pairs, got {num_samples}"
        )
    if dense and num_samples < 2 * dimension:
        raise ArgumentError(
            f"num_samples: a dense fit in {dimension} dimensions is unbounded with fewer than "
            f"{2 * dimension} draws, got {num_samples}; give more, or family='diagonal'"
        )
    return num_samples


def _starts(
    densities: Densities, num_fits: int, seed: int, start: Numbers | None
) -> tuple[Array, Array]:
    """Points to begin at, and the spread of such points, coordinate by coordinate."""
    count = max(LEAST_STARTS, STARTS_PER_FIT * num_fits)
    keys = jax.random.split(jax.random.key(seed % 2**32), count)
    vectors, good = _looked_at(densities, keys)
    vectors = np.asarray(vectors)
    # A median, since a prior may have no variance.
    away = np.abs(vectors - np.median(vectors, axis=0))
    spread = 1.4826 * np.median(away, axis=0)
    unit = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
    if start is not None:
        wanted = densities.layout.dimension
        chosen = np.asarray(start, float)
        if chosen.shape != (wanted,):
            raise ArgumentError(
                f"start: wanted {wanted} values in one vector, got shape {chosen.shape}"
            )
        if not np.isfinite(chosen).all():
            raise ArgumentError(f"start: wanted finite values, got {chosen}")
        return jnp.asarray(chosen[None]), jnp.asarray(unit)
    found = vectors[np.asarray(good)][:num_fits]
    if len(found) < num_fits:
        raise StartError(
            f"only {len(found)} of {count} starting points have a finite log density and gradient, "
            f"and {num_fits} are wanted; check the support and the scale of the prior, base or "
            "example"
        )
    return jnp.asarray(found), jnp.asarray(unit)


@eqx.filter_jit
def _looked_at(densities: Densities, keys: Keys) -> tuple[Float[Array, "n d"], Bool[Array, " n"]]:
    vectors = jax.vmap(densities.draw)(keys)
    values, slopes = jax.lax.map(jax.value_and_grad(densities.whole), vectors)
    return vectors, jnp.isfinite(values) & jnp.all(jnp.isfinite(slopes), axis=1)
