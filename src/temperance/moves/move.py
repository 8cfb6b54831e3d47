"""Moves: how to travel at one temperature.

A move is a Markov kernel (key, point, rung, params) -> (point, info) that leaves the rung's density
invariant. It carries the components of the point it lands on, so whoever changes the rung
afterwards evaluates nothing again.

Every tuned move speaks of its scale in the same two words: `step_size`, one number for each tuned
part of the move, and `factor`, a square root of the position's covariance at the rung: a vector
(standard deviations) or a lower triangle. In the coordinates z with x = factor z every move is
isotropic.
"""

import abc
import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from temperance._types import Key, Point
from temperance.errors import ArgumentError, MoveError
from temperance.ladders.ladder import AbstractLadder, Rung
from temperance.moves.accept import Tried
from temperance.moves.minibatch.batch_law import BatchLaw
from temperance.problems.layout import Layout
from temperance.problems.problem import Problem, Target

# What a state of some components counts for, by name of the weight.
Weigh = Callable[[Float[Array, " components"]], dict[str, Array]]


class Params(NamedTuple):
    """What warm-up tunes: step sizes of the move's parts, and a root of the covariance."""

    step_size: Float[Array, " parts"]
    factor: Float[Array, " d"] | Float[Array, "d d"]


class BatchInfo(NamedTuple):
    """What a mini-batch step says of its batch.

    `num_rows` are the terms it evaluated, `variance` that of the noise in its log ratio, `raised`
    says that the batch had to grow, and `trusted` that in the end the noise was small enough.
    """

    num_rows: Float[Array, ""]
    variance: Float[Array, ""]
    raised: Float[Array, ""]
    trusted: Float[Array, ""]


class Info(NamedTuple):
    """What one step says of itself; evaluations are of densities, with or without gradient.

    `num_values` are those without. A step that says `accepted` returns a point that it evaluated
    itself: what the point knew before may be of other rows. `impossible` says that the step ended
    where the density is zero. `slope` is a gradient that it saw near its start, for warm-up to
    learn scales from where points carry none. `batch` is there if only some rows were looked at.
    """

    acceptance: Float[Array, " parts"]
    accepted: Bool[Array, ""]
    diverging: Bool[Array, ""]
    num_evaluations: Int[Array, ""]
    num_values: Int[Array, ""] | int = 0
    impossible: Bool[Array, ""] | bool = False
    slope: Float[Array, " d"] | None = None
    batch: BatchInfo | None = None


def info_of(tried: Tried, num_values: Int[Array, ""]) -> Info:
    """What one Metropolis update says of itself, or several together; none uses a gradient."""
    return Info(
        jnp.mean(tried.acceptance)[None],
        jnp.any(tried.accepted),
        jnp.asarray(False),
        num_values,
        num_values,
        jnp.any(tried.lost),
    )


class AbstractMove(eqx.Module):
    """A kernel that leaves a rung's density invariant.

    `reversible` says that the kernel satisfies detailed balance; tempered transitions need that
    or a `reversal`. `exact` says that it leaves the density invariant rather than nearly so. A
    move that declares either falsely biases its samplers without any sign of it in the output.
    """

    reversible: eqx.AbstractVar[bool]
    exact: eqx.AbstractVar[bool]
    uses_gradient: eqx.AbstractVar[bool]
    metric: eqx.AbstractVar[str]
    step_sizes: eqx.AbstractVar[tuple[float | None, ...]]
    target_acceptance: eqx.AbstractVar[tuple[float, ...]]

    # What most moves are not. A move that is says so by a constant of its class, or by a property
    # where it depends on a field.
    reads_rows = False
    """Whether it runs where points know their log prior alone, and reads a few rows a step."""
    branches = False
    """Whether a step decides as it goes what to evaluate.

    Chains and rungs then run one after another, since a batch of decisions would evaluate both
    sides of each.
    """
    keeps_memory = False
    """Whether a state is more than its position: what a point remembers cannot be made anew."""
    gathers = False
    """Whether a step lands on one of several states, of which a draw keeps them all."""
    references = tuple[str, ...]()
    """Keys of the papers behind it, for `cite`."""

    def placed(self, problem: Problem | Target, layout: Layout) -> "AbstractMove":
        """The move where positions are vectors of this layout, with what the problem tells it."""
        return self

    def check_ladder(self, ladder: AbstractLadder) -> None:
        """Raise where the move cannot run on a ladder."""
        return

    def batch_law(self, num_rows: int) -> BatchLaw | None:
        """The tempered law that batches of the `num_rows` rows stand for; None without batches."""
        return None

    def remember(self, point: Point, rung: Rung) -> Point:
        """A starting point with what the move keeps beside the position."""
        return point

    def keepsakes(self, point: Point, weigh: Weigh | None = None) -> dict[str, Array]:
        """What a draw keeps of the move's last step beside the position, by name.

        `weigh` says by name what a state of given components counts for, where draws are weighted.
        """
        return {}

    def fast_index(self, layout: Layout) -> np.ndarray:
        """Of a move that gathers: where the coordinates are in which its states differ."""
        raise MoveError(f"{type(self).__name__} gathers no states")

    def draw_start(self) -> Callable[[Key], Float[Array, " d"]] | None:
        """Where to start, as a vector, if the move knows better than the prior."""
        return None

    @abc.abstractmethod
    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        """One transition from `point`."""

    def initial_step_sizes(self, dimension: int) -> Float[Array, " parts"]:
        """Fixed step sizes as given, tuned ones where they start."""
        start = 0.5 * dimension**-0.25
        sizes = zip(self.step_sizes, self.longest_steps(), strict=True)
        return jnp.asarray([min(start, most) if s is None else s for s, most in sizes], float)

    def reversal(self) -> "AbstractMove | None":
        """The kernel run backwards, with the same parameters; None where nobody knows it."""
        return self if self.reversible else None

    def sees_gradients(self) -> bool:
        """Whether every step sees a gradient, at its point or on its way."""
        return self.uses_gradient

    def longest_steps(self) -> tuple[float, ...]:
        """Step sizes beyond which a part gains nothing, whatever it accepts."""
        return (math.inf,) * len(self.step_sizes)


def step_at(
    move: AbstractMove, rung: Rung, key: Key, point: Point, params: Params
) -> tuple[Point, Info]:
    """A step of the move, with an info that is arrays throughout, as loops over rungs need it."""
    point, info = move.step(key, point, rung, params)
    return point, jax.tree.map(jnp.asarray, info)


def refuse_few_rows(move: AbstractMove) -> None:
    """Raise where a ladder's samplers cannot use a move that reads a few rows."""
    if move.reads_rows:
        raise MoveError(
            f"{type(move).__name__} reads a few rows a step, and never knows the density that a "
            "swap or a transition has to compare: run it alone, as method='mint' or 'plain', or "
            "heat by batches with method='mintee'"
        )


def whiten(factor: Array, vector: Float[Array, " d"]) -> Float[Array, " d"]:
    """Factor' v: how a gradient looks in the isotropic coordinates."""
    return factor * vector if factor.ndim == 1 else factor.T @ vector


def colour(factor: Array, vector: Float[Array, " d"]) -> Float[Array, " d"]:
    """Factor v: how an isotropic step looks in the position's coordinates."""
    return factor * vector if factor.ndim == 1 else factor @ vector


def slope_at(rung: Rung, point: Point) -> Float[Array, " d"]:
    """The rung's gradient at a point: from what it carries, or evaluated where it carries none."""
    return rung.slope(point.position) if point.gradients is None else rung.gradient(point)


METRICS = ("unit", "diagonal", "dense")


def checked_step(value: float | None, name: str) -> float | None:
    """A fixed step size, if it is one; None is tuned in warm-up."""
    if value is not None and not value > 0:
        raise ArgumentError(f"{name}: wanted a positive number or None (tuned), got {value!r}")
    return None if value is None else float(value)


def checked_metric(metric: str) -> str:
    """A known metric's name."""
    if metric not in METRICS:
        raise ArgumentError(f"metric: wanted 'diagonal', 'dense' or 'unit', got {metric!r}")
    return metric


def wider_metric(one: str, two: str) -> str:
    """The metric that has what both need."""
    return max(one, two, key=METRICS.index)
