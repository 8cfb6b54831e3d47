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

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.scipy.stats import norm
from scipy.special import ndtri

from temperance._types import Data, Key, Position, Scalar
from temperance.diagnostics import effective_size, standard_error
from temperance.problem import Problem
from temperance.result import log_evidence
from temperance.sample import RunWarning, sample

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
BAD_RHAT = 1.05

FloatArray = npt.NDArray[np.float64]


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
    """The demo's problem: `temperance run temperance.demo:problem` runs it too."""
    return Problem(log_prior, terms, {"y": measurements()}, draw_prior)


@dataclass(frozen=True)
class Known:
    """The exact answer on a grid: rows are the minority's centre, columns the majority's."""

    grid: FloatArray
    log_prior: FloatArray
    log_likelihood: FloatArray
    weight: float  # posterior probability that the larger group is on the right
    log_z: float


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
    return Known(grid, prior, likelihood, weight, log_z)


@dataclass(frozen=True)
class Row:
    """What one sampler found. `seconds` are those of a run that compiles nothing."""

    name: str
    tree: Any
    on_right: FloatArray  # (chain, draw): whether the larger group is on the right
    weight: float
    weight_error: float
    log_z: float | None
    log_z_error: float | None
    ess: float
    seconds: float
    rhat: float
    verdict: str

    @property
    def ess_per_second(self) -> float:
        """With warm-up, without compilation."""
        return self.ess / self.seconds

    @property
    def ess_per_million(self) -> float:
        """For a million evaluations of one row's term."""
        return 1e6 * self.ess / self.tree.attrs["num_row_evaluations"]


def run(
    seed: int = SEED, quick: bool = False, say: Callable[[str], None] | None = None
) -> tuple[Known, list[Row]]:
    """Ask every sampler; `say` is told what is going on."""
    asked, answer = problem(), known()
    say = say or (lambda _: None)
    counts = QUICK if quick else FULL
    rows = []
    for name, options in SAMPLERS.items():
        say(f"{name}: compiling")
        # A few draws compile everything that the timed run needs.
        _ask(asked, options | counts | {"num_draws": 8, "seed": seed})
        say(f"{name}: drawing")
        began = time.monotonic()
        tree = _ask(asked, options | counts | {"seed": seed})
        rows.append(read(name, tree, time.monotonic() - began, answer))
    return answer, rows


def _ask(asked: Problem, options: dict[str, Any]) -> Any:
    """`sample` keeps what an interrupted run has; here Ctrl-C means stop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)
        tree = sample(asked, progress=False, **options)
    if tree.attrs["stopped"] == "interrupted":
        raise KeyboardInterrupt
    return tree


def read(name: str, tree: Any, seconds: float, answer: Known) -> Row:
    """A sampler's row of the table."""
    from temperance.arviz import summary_table

    posterior = tree["posterior"]
    on_right = (posterior["majority"].values > posterior["minority"].values).astype(float)
    ess = float(np.nan_to_num(effective_size(on_right)))
    error = float(standard_error(on_right))
    log_z, log_z_error = log_evidence(tree) if "evidence" in tree.children else (None, None)
    weight, rhat = float(on_right.mean()), float(summary_table(tree)["r_hat"].max())
    return Row(
        name, tree, on_right, weight, error, log_z, log_z_error, ess, seconds, rhat,
        verdict(on_right, error, rhat, answer.weight),
    )  # fmt: skip


def verdict(on_right: FloatArray, error: float, rhat: float, truth: float) -> str:
    """What a person should make of it."""
    by_chain = on_right.mean(axis=1)
    if np.isin(by_chain, (0.0, 1.0)).all():
        if by_chain.min() == by_chain.max():
            seen = truth if by_chain[0] == 1.0 else 1 - truth
            hidden = ", and R-hat does not show it" if rhat < BAD_RHAT else ""
            return f"found one mode of two, with {seen:.0%} of the probability{hidden}"
        return "every chain stays where it began: the weight only counts the starts"
    off = abs(float(by_chain.mean()) - truth)
    doubt = "" if off < 3 * error else ": more than chance allows"
    return f"found both modes; weight off by {off:.3f}, {off / error:.1f} standard errors{doubt}"


COLUMNS = (
    "sampler", "P(larger on the right)", "log Z", "ESS/s", "ESS per 10⁶ rows", "R-hat", "verdict",
)  # fmt: skip


def table(answer: Known, rows: list[Row]) -> list[list[str]]:
    """The rows of the table as text, for the terminal and the page alike; the truth comes first."""
    exact = ["exact", f"{answer.weight:.3f}", f"{answer.log_z:.2f}", "", "", "", "by quadrature"]
    return [exact] + [
        [
            row.name,
            f"{row.weight:.3f} ± {row.weight_error:.3f}" if row.ess else f"{row.weight:.3f}",
            "-" if row.log_z is None else f"{row.log_z:.2f} ± {row.log_z_error:.2f}",
            f"{row.ess_per_second:.0f}",
            f"{row.ess_per_million:.2f}",
            f"{row.rhat:.2f}",
            row.verdict,
        ]
        for row in rows
    ]
