"""Terms that count the rows on which they are evaluated, as the program runs.

A callback inside the terms adds the rows of every execution, one for each member of a batch, and
tells an evaluation with gradient from one without.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

SEEN: Counter[str] = Counter()


def add(kind: str, rows: int, value: Array) -> None:
    SEEN[kind] += int(rows) * np.size(value)


@jax.custom_vjp
def counted(total: Array, rows: int) -> Array:
    jax.debug.callback(partial(add, "plain"), rows, total)
    return total


def _forward(total: Array, rows: int) -> tuple[Array, None]:
    jax.debug.callback(partial(add, "gradient"), rows, total)
    return total, None


def _backward(_: None, slope: Array) -> tuple[Array, None]:
    return slope, None


counted.defvjp(_forward, _backward)


def terms(x: Array, data: Array) -> Array:
    values = -0.5 * (data - x[0] + 0.1 * x[1] ** 2) ** 2
    # The terms themselves are what is counted, by way of a zero that XLA cannot see through.
    return values + (counted(x[0], data.shape[0]) - x[0]) / data.shape[0]


def count_rows(function: Callable[..., Any], *args: Any) -> tuple[Any, dict[str, int]]:
    """What `function` returns, and the rows it evaluated, with gradient and without."""
    SEEN.clear()
    result = jax.block_until_ready(function(*args))
    jax.effects_barrier()
    return result, {kind: SEEN[kind] for kind in ("plain", "gradient")}
