"""How a bound is climbed: L-BFGS with a line search over fixed draws, twice.

    1. a diagonal Gaussian from the start, in units of the spread of starting points, until the
       gradient is of length one;
    2. the family asked for, from there, in units of the standard deviations just found, until the
       gradient is so short that the bound is within about a thousandth of its maximum.

The second pass makes a fit independent of the units of the parameters, and begins a dense factor
where the function bends by about one along each of its many entries. The bound that is reported is
computed with fresh draws of the fit, since the fixed ones flatter it, and from log p - log q, whose
spread vanishes as the fit gets better.
"""

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Scalar
from temperance.errors import StartError
from temperance.bases.fit import LocalFit
from temperance.problems.problem import Densities
from temperance.programs.progress import Reporter
from temperance.bases.variational_bound import (
    LOWEST,
    Objective,
    Parameters,
    fixed_draws,
    log_ratios,
    standard,
    turns,
)

# Standard deviations to begin with, in units of the spread of starts; the first that is finite.
FIRST_SCALES = (0.1, 1e-2, 1e-4)
# Lengths of the gradient: where the first pass ends, and where the second does.
ROUGH, FINE = 1.0, 1e-3
# Pairs of steps that L-BFGS remembers; trials along one line; steps without gain before it ends.
MEMORY, TRIALS, PATIENT = 20, 20, 5
# Pairs of fresh draws for the bound.
BOUND_PAIRS = 2048
# How long a block of steps should take while somebody watches, in seconds, and the first block.
WATCHED, FIRST_BLOCK = 0.7, 8


class Course(NamedTuple):
    """Where a climb is: parameters, what L-BFGS remembers, the bound, and the gradient's length."""

    parameters: Parameters
    memory: Any
    bound: Scalar
    length: Scalar
    still: Int[Array, ""]
    num_steps: Int[Array, ""]


class Climb:
    """Fits of one family to one target, from any number of starts."""

    def __init__(
        self, densities: Densities, dense: bool, num_steps: int, num_samples: int, seed: int
    ):
        self.densities, self.dense, self.num_steps = densities, dense, num_steps
        self.dimension = densities.layout.dimension
        self.at_once = turns(densities.num_rows, self.dimension)
        self.draws = jnp.asarray(fixed_draws(num_samples, self.dimension, seed))
        fresh = np.random.default_rng([seed, 1]).standard_normal((BOUND_PAIRS, self.dimension))
        self.fresh = jnp.asarray(np.concatenate([fresh, -fresh]))

    def from_start(
        self, start: Array, unit: Array, bars: Reporter, label: str
    ) -> tuple[LocalFit, float]:
        """One fit, and the length of the gradient where it ended."""
        rough = self._objective(start, unit)
        first = self._first(rough)
        bars.begin(label, 2 * self.num_steps, 0)
        course = self._run(rough, first, ROUGH, bars, 0)
        center = start + unit * course.parameters.mean
        unit = unit * jnp.exp(course.parameters.log_scale)
        fine = self._objective(center, unit)
        begin = standard(self.dimension, 1.0, dense=self.dense)
        course = self._run(fine, begin, FINE, bars, self.num_steps)
        bars.update(2 * self.num_steps, f"bound {float(course.bound):.2f}")
        factor = course.parameters.factor()
        factor = factor * (unit if factor.ndim == 1 else unit[:, None])
        mean = center + unit * course.parameters.mean
        ratios = np.asarray(_ratios(self.densities.whole, mean, factor, self.fresh, self.at_once))
        pairs = ratios.reshape(2, -1).mean(0)
        finite = np.isfinite(pairs).all()
        factor = np.asarray(factor, np.float64)
        fit = LocalFit(
            np.asarray(mean, np.float64),
            factor**2 if factor.ndim == 1 else factor @ factor.T,
            float(pairs.mean(dtype=np.float64)) if finite else -np.inf,
            float(pairs.std() / np.sqrt(len(pairs))) if finite else np.inf,
        )
        return fit, float(course.length)

    def _objective(self, center: Array, unit: Array) -> Objective:
        return Objective(self.densities.whole, center, unit, self.draws, self.at_once)

    def _first(self, objective: Objective) -> Parameters:
        for scale in FIRST_SCALES:
            parameters = standard(self.dimension, scale, dense=False)
            if -float(_value(objective, parameters)) > 0.5 * LOWEST:
                return parameters
        raise StartError(
            "no draw about the start has a finite log density, however near; give another start=, "
            "or write parameters with bounds on the whole line, such as their log"
        )

    def _run(
        self, objective: Objective, begin: Parameters, least: float, bars: Reporter, before: int
    ) -> Course:
        course = _begin(begin)
        done, pace = 0, FIRST_BLOCK
        while done < self.num_steps and _goes_on(course, least):
            count = min(pace, self.num_steps - done)
            began = time.monotonic()
            # Arrays, so that another number is not another program.
            course = _steps(objective, course, jnp.asarray(count), jnp.asarray(least))
            jax.block_until_ready(course)
            seconds = time.monotonic() - began
            done += count
            bars.update(before + done, f"bound {float(course.bound):.2f}")
            pace = int(np.clip(count * WATCHED / max(seconds, 1e-6), 1, 4 * count))
        return course


def _lbfgs() -> Any:
    search = optax.scale_by_zoom_linesearch(TRIALS, initial_guess_strategy="one")
    return optax.lbfgs(memory_size=MEMORY, linesearch=search)


def _goes_on(course: Course, least: Any) -> Any:
    return (course.length > least) & (course.still < PATIENT)


@eqx.filter_jit
def _value(objective: Objective, parameters: Parameters) -> Scalar:
    return objective(parameters)


@eqx.filter_jit
def _ratios(*args: Any) -> Array:
    return log_ratios(*args)


@eqx.filter_jit
def _begin(parameters: Parameters) -> Course:
    value = jnp.asarray(jnp.inf, parameters.mean.dtype)
    zero = jnp.zeros((), int)
    course = Course(parameters, _lbfgs().init(parameters), -value, value, zero, zero)
    # Without weak types, which a loop makes strong: first and later steps are then one program.
    return jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), course)


@eqx.filter_jit
def _steps(
    objective: Objective, course: Course, count: Int[Array, ""], least: Float[Array, ""]
) -> Course:
    method = _lbfgs()
    stop = course.num_steps + count

    def step(course: Course) -> Course:
        value, slope = optax.value_and_grad_from_state(objective)(
            course.parameters, state=course.memory
        )
        change, memory = method.update(
            slope, course.memory, course.parameters, value=value, grad=slope, value_fn=objective
        )
        parameters = jax.tree.map(jnp.add, course.parameters, change)
        bound = -optax.tree.get(memory, "value")
        length = optax.tree.norm(optax.tree.get(memory, "grad"))
        # Gains below rounding are none.
        gained = bound > course.bound + 4 * jnp.finfo(bound.dtype).eps * jnp.abs(bound)
        still = jnp.where(gained, 0, course.still + 1)
        return Course(parameters, memory, bound, length, still, course.num_steps + 1)

    def unfinished(course: Course) -> Bool[Array, ""]:
        return _goes_on(course, least) & (course.num_steps < stop)

    return jax.lax.while_loop(unfinished, step, course)
