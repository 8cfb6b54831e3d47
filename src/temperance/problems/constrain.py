"""Draws as the user names them: a problem's `constrain`, applied to every position that was drawn.

A sampler moves over unconstrained values, and people read scales, probabilities and derived
quantities. The map between them is applied once, when the run is over, in pieces that fit.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from temperance.errors import ArgumentError
from temperance.problems.layout import Layout

# Numbers made at once.
MOST_NUMBERS = 3e6


def constrained_shapes(constrain: Callable[..., Any], layout: Layout) -> dict[str, tuple[int, ...]]:
    """The shape of everything that `constrain` makes of a position, by name.

    It raises where that are not named arrays, before a run whose draws it would lose.
    """
    form = _form(_on_vector(constrain, layout), layout)
    return {name: tuple(leaf.shape) for name, leaf in form.items()}


def constrained_draws(
    constrain: Callable[..., Any], layout: Layout, vectors: np.ndarray
) -> dict[str, np.ndarray]:
    """What `constrain` makes of every draw, (chain, draw, ...)."""
    of_vector = _on_vector(constrain, layout)
    form = _form(of_vector, layout)
    lead = vectors.shape[:2]
    flat = vectors.reshape(prod(lead), -1)
    size = max(1, int(MOST_NUMBERS / max(1, sum(prod(leaf.shape) for leaf in form.values()))))
    function = jax.jit(jax.vmap(of_vector))
    parts = [function(flat[start : start + size]) for start in range(0, len(flat), size)]
    whole = {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in form}
    return {name: array.reshape(*lead, *array.shape[1:]) for name, array in whole.items()}


def _on_vector(constrain: Callable[..., Any], layout: Layout) -> Callable[[Array], Any]:
    def of_vector(vector: Array) -> Any:
        named = constrain(layout.unravel(vector))
        if not isinstance(named, dict) or not all(isinstance(name, str) for name in named):
            raise ArgumentError(
                "constrain: wanted a dictionary of named arrays for a position, got "
                f"{type(named).__name__}"
            )
        return {name: jnp.asarray(array) for name, array in named.items()}

    return of_vector


def _form(of_vector: Callable[[Array], Any], layout: Layout) -> dict[str, jax.ShapeDtypeStruct]:
    vector = jax.ShapeDtypeStruct((layout.dimension,), jnp.result_type(float))
    try:
        return jax.eval_shape(of_vector, vector)
    except ArgumentError:
        raise
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise ArgumentError(
            f"constrain: it fails on a position: {error}; wanted a function of a position that "
            "returns named arrays"
        ) from error
