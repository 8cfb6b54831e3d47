"""A problem or target heated towards another base than its own.

    hot = log base,      cold = the whole log density, prior and all,

a bridge from the one to the other. The nearer the base is to the target, the shorter the way.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from temperance.errors import ArgumentError
from temperance.problems.problem import BaseDraw, Densities, Problem, Target, densities_of
from temperance.programs.compiled import traceable


def rebased(problem: Problem | Target, base: Any) -> Densities:
    """The densities of a bridge from `base` to the whole of `problem`.

    `base` is a normalised log density of the position laid out as one vector, with a `draw(key)`
    that draws from exactly it, such as `Gaussian`. A base that is not normalised shifts log
    evidence by the constant it lacks, and nothing says so.
    """
    if not isinstance(problem, Problem | Target):
        raise ArgumentError(f"problem: wanted a Problem or a Target, got {type(problem).__name__}")
    if isinstance(base, type) or not (callable(base) and hasattr(base, "draw")):
        raise ArgumentError(
            "base: wanted a normalised log density of a vector with a draw(key), such as "
            f"Gaussian(mean, covariance); got {base!r}"
        )
    densities = densities_of(problem)
    base = traceable(base)
    wanted = densities.layout.dimension
    got = _shape("base: its draw", base.draw, jax.random.key(0))
    if got != (wanted,):
        raise ArgumentError(
            f"base: draws have shape {got}, but the position has {wanted} values in all; give a "
            "base of that dimension"
        )
    value = _shape("base", base, jax.ShapeDtypeStruct((wanted,), jnp.result_type(float)))
    if value != ():
        raise ArgumentError(f"base: wanted a scalar log density, got shape {value}")
    whole = densities.whole
    return Densities(base, whole, whole, BaseDraw(base), densities.layout, True, densities.num_rows)


def _shape(name: str, function: Any, argument: Any) -> tuple[int, ...]:
    try:
        return np.shape(jax.eval_shape(function, argument))
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise ArgumentError(f"{name} fails: {error}") from error
