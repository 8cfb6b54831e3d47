"""A question with a known answer, asked of three samplers.

A hundred measurements come from two groups, one of 45 % and one of 55 %, with unit noise. Where are
the groups' centres, and is the larger group the one on the right?

    y_i ~ 0.45 N(minority, 1) + 0.55 N(majority, 1)
    minority ~ N(2, 3^2),   majority ~ N(-2, 3^2)

The prior expects the larger group on the left, the data speak for the right, and the posterior has
two modes far apart that share the probability unequally. A chain that starts from the prior mostly
starts near the lesser one, and cannot leave. With two parameters the exact answer is a sum over a
grid, so every sampler's answer can be compared with the truth.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy.special import ndtri

from temperance._types import Data, Key, Position, Scalar
from temperance.cli.demo.asking import PER_MILLION, Exact, FloatArray, Question
from temperance.problems.problem import Problem

NUM_ROWS, SHARE, CENTER, DATA_SEED = 100, 0.45, 2.0, 1
PRIOR_MEAN, PRIOR_SCALE = 2.0, 3.0
SAMPLERS: dict[str, dict[str, Any]] = {
    "NUTS": {"method": "plain", "move": "nuts"},
    "PT": {},
    "TT": {"method": "tt"},
}
# From about half of all seeds the four chains of NUTS start in one mode and find it alone, as here;
# from the others they start in both, and the weight counts the starts.
SEED = 1
FULL = {"num_draws": 1500, "num_warmup": 500}
QUICK = {"num_draws": 200, "num_warmup": 200}
COLUMNS = (
    "sampler", "P(larger on the right)", "log Z", "ESS/s", PER_MILLION, "R-hat", "verdict",
)  # fmt: skip


def measurements() -> FloatArray:
    """The data: the same on every machine, from uniforms and the normal quantile function."""
    uniforms = np.random.default_rng(DATA_SEED).random((2, NUM_ROWS))
    return np.where(uniforms[0] < SHARE, -CENTER, CENTER) + ndtri(uniforms[1])


def log_prior(position: Position) -> Scalar:
    """Normalised, so that log Z is the log evidence."""
    return norm.logpdf(position["minority"], PRIOR_MEAN, PRIOR_SCALE) + norm.logpdf(
        position["majority"], -PRIOR_MEAN, PRIOR_SCALE
    )


def draw_prior(key: Key) -> Position:
    """Exactly from that prior."""
    minority, majority = PRIOR_SCALE * jax.random.normal(key, (2,))
    return {"minority": PRIOR_MEAN + minority, "majority": majority - PRIOR_MEAN}


def terms(position: Position, data: Data) -> Any:
    """Log density of each measurement, its group summed out."""
    return jnp.logaddexp(
        np.log(SHARE) + norm.logpdf(data["y"], position["minority"]),
        np.log1p(-SHARE) + norm.logpdf(data["y"], position["majority"]),
    )


def problem() -> Problem:
    """The demo's problem: `temperance run temperance.cli.demo:problem` runs it too."""
    return Problem(log_prior, terms, {"y": measurements()}, draw_prior)


@dataclass(frozen=True)
class Known(Exact):
    """The exact answer and its grid: rows are the minority's centre, columns the majority's."""

    grid: FloatArray
    log_prior: FloatArray
    log_likelihood: FloatArray


def known(half_width: float = 6.0, num_points: int = 301) -> Known:
    """By the trapezoid rule, whose error falls exponentially on a density this smooth."""
    grid: FloatArray = np.linspace(-half_width, half_width, num_points)
    spacing = 2 * half_width / (num_points - 1)
    each = -0.5 * (measurements() - grid[:, None]) ** 2 - 0.5 * np.log(2 * np.pi)
    minority, majority = each + np.log(SHARE), each + np.log1p(-SHARE)
    likelihood = np.stack([np.logaddexp(row, majority).sum(axis=1) for row in minority])
    scale = 0.5 * np.log(2 * np.pi * PRIOR_SCALE**2)
    sides = [-0.5 * ((grid - m) / PRIOR_SCALE) ** 2 - scale for m in (PRIOR_MEAN, -PRIOR_MEAN)]
    prior = sides[0][:, None] + sides[1][None, :]
    joint = prior + likelihood
    on_right = grid[None, :] > grid[:, None]
    total = np.logaddexp.reduce(joint, axis=None)
    log_z = float(total + 2 * np.log(spacing))
    weight = float(np.exp(np.logaddexp.reduce(joint[on_right]) - total))
    return Known(weight, log_z, grid, prior, likelihood)


def question(quick: bool = False) -> Question:
    """Whom to ask, and for how long."""
    counts = QUICK if quick else FULL
    samplers = {name: options | counts for name, options in SAMPLERS.items()}
    # The pilots and with them the numbers of rungs depend on the length of warm-up.
    return Question(problem(), known(), right, samplers, {"num_draws": 8}, COLUMNS)


def right(posterior: Any) -> FloatArray:
    """Whether the larger group is on the right, by draw."""
    return (posterior["majority"].values > posterior["minority"].values).astype(float)
