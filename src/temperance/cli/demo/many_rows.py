"""The same kind of question where every look at the data costs.

Half of 200,000 people were treated, and nobody wrote down who. The treatment moves what is measured
by an unknown effect; the mean of all is known, and the noise is one. Does it raise or lower?

    y_i ~ 1/2 N(-effect/2, 1) + 1/2 N(effect/2, 1),       effect ~ N(0.5, 0.5^2)

The likelihood is the same for an effect and its opposite, so the data say how large it is and not
its sign, and the prior alone weighs the two modes. They are twenty standard deviations apart, with
fifteen nats between them. On a 64th of the rows a quarter of a nat is left: a subsample is as hot
as a power of the likelihood, and 64 times cheaper. A row tells something of the effect by |y|
alone, so the rows are cut into four strata by |y|, and every subsample has its share of each.

With t = effect y / 2 a row's term is -y^2/2 - effect^2/8 + log cosh t.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy.special import ndtri
from scipy.stats import norm as scipy_norm

from temperance._types import Data, Key, Options, Position, Scalar
from temperance.cli.demo.asking import PER_MILLION, Exact, FloatArray, Question
from temperance.moves.hmc import hmc
from temperance.problems.problem import Problem

NUM_ROWS, EFFECT, DATA_SEED = 200_000, 0.25, 1
EFFECT_MEAN, EFFECT_SCALE = 0.5, 0.5
# From a 64th of the rows on. Swaps bear wide steps; a transition is accepted for all of them at
# once, which takes narrower ones, and makes a better draw for it.
SWAP_SHARES = tuple(64.0 ** -np.linspace(1, 0, 4))
TRANSITION_SHARES = tuple(64.0 ** -np.linspace(1, 0, 6))
COUNTS: Options = {"num_draws": 160, "num_warmup": 60}
TRANSITIONS: Options = {"num_draws": 90}
NUM_STRATA = 4
QUICK_ROWS = 20_000
COLUMNS = (
    "sampler", "P(effect > 0)", "10⁹ rows", "ESS/s", PER_MILLION, "R-hat", "verdict",
)  # fmt: skip


def measurements(num_rows: int = NUM_ROWS) -> FloatArray:
    """The data: the same on every machine, from uniforms and the normal quantile function."""
    uniforms = np.random.default_rng(DATA_SEED).random((2, num_rows))
    # The wall between the modes is about N effect^4 / 64: of fewer rows a larger effect makes one
    # as high, and higher, since chance takes some of it away.
    effect = EFFECT * (NUM_ROWS / num_rows) ** (1 / 3)
    return np.where(uniforms[0] < 0.5, -0.5, 0.5) * effect + ndtri(uniforms[1])


def log_prior(position: Position) -> Scalar:
    """Normalised."""
    return norm.logpdf(position["effect"], EFFECT_MEAN, EFFECT_SCALE)


def draw_prior(key: Key) -> Position:
    """Exactly from that prior."""
    return {"effect": EFFECT_MEAN + EFFECT_SCALE * jax.random.normal(key)}


def terms(position: Position, data: Data) -> Any:
    """Log density of each measurement, whether it was treated summed out."""
    half = 0.5 * position["effect"]
    t = jnp.abs(half * data["y"])
    log_cosh = t + jnp.log1p(jnp.exp(-2 * t)) - np.log(2)
    return log_cosh - 0.5 * (data["y"] ** 2 + half**2 + np.log(2 * np.pi))


def problem(num_rows: int = NUM_ROWS) -> Problem:
    """The problem: `temperance run temperance.cli.demo.many_rows:problem` runs it too."""
    return Problem(log_prior, terms, {"y": measurements(num_rows)}, draw_prior)


def known(num_rows: int = NUM_ROWS, reach: float = 8.0, num_points: int = 33) -> Exact:
    """By the trapezoid rule around one mode, which the likelihood shares with the other.

    Points are half a standard deviation apart, where the rule is exact for what is nearly a
    Gaussian. The variance says where the mode is, and how wide.
    """
    y = measurements(num_rows)
    half = np.sqrt(max(np.mean(y**2) - 1, 0.5 / np.sqrt(num_rows)))
    steps = np.linspace(-reach, reach, num_points)
    effects = 2 * half + steps * np.sqrt(2 / num_rows) / half
    effects = effects[effects > 0]
    likelihood = np.array([_log_likelihood(y, effect) for effect in effects])
    sides = [
        likelihood + scipy_norm.logpdf(sign * effects, EFFECT_MEAN, EFFECT_SCALE)
        for sign in (1, -1)
    ]
    up, down = (np.logaddexp.reduce(side) for side in sides)
    total = np.logaddexp(up, down)
    return Exact(float(np.exp(up - total)), float(total + np.log(effects[1] - effects[0])))


def _log_likelihood(y: FloatArray, effect: float) -> float:
    t = np.abs(0.5 * effect * y)
    log_cosh = t + np.log1p(np.exp(-2 * t)) - np.log(2)
    return float(np.sum(log_cosh + scipy_norm.logpdf(y))) - len(y) * effect**2 / 8


def question(quick: bool = False, num_rows: int | None = None) -> Question:
    """Whom to ask, and for how long. All use the same move, and one sweep a draw."""
    num_rows = num_rows or (QUICK_ROWS if quick else NUM_ROWS)
    size = np.abs(measurements(num_rows))
    bounds = np.quantile(size, np.linspace(0, 1, NUM_STRATA + 1)[1:-1])
    strata = np.searchsorted(bounds, size)
    methods: dict[str, Options] = {
        "HMC": {"method": "plain"},
        "PT": {"method": "pt", "betas": SWAP_SHARES, "sweeps_per_draw": 1},
        "SPT": {"method": "spt", "sizes": SWAP_SHARES, "strata": strata, "sweeps_per_draw": 1},
        "STT": {"method": "stt", "sizes": TRANSITION_SHARES, "strata": strata} | TRANSITIONS,
    }
    move: Options = {"move": hmc(num_steps=2)}
    samplers = {name: move | COUNTS | options for name, options in methods.items()}
    # Nothing is chosen by a pilot, so that a short warm-up runs the programs of a long one.
    compiling = {"num_draws": 1, "num_warmup": 2}
    return Question(problem(num_rows), known(num_rows), right, samplers, compiling, COLUMNS)


def right(posterior: Any) -> FloatArray:
    """Whether the effect is positive, by draw."""
    return (posterior["effect"].values > 0).astype(float)
