"""Geweke's joint test in independent replicates, for posteriors that nobody can draw.

    theta ~ prior,  y ~ p(. | theta),  theta' <- k steps of the posterior's kernel given y:
    (theta', y) has the law of (theta, y).

The pair (theta, y) is an exact draw from the joint law although the posterior cannot be drawn, so
`invariance` applies with y as the part of the state that no step changes. Geweke (2004) alternates
between the two and compares averages along one chain; replicates cost more and need no
guess at its autocorrelation.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
from jaxtyping import Array, Float

from temperance._types import Data, Key
from temperance.testing.invariance import ALPHA, Verdict, invariance

Theta = TypeVar("Theta")


# Modules and not closures, so that equal parts are compiled once.


class _Joint(eqx.Module):
    draw_prior: Callable[..., Any]
    draw_data: Callable[..., Any]

    def __call__(self, key: Key) -> tuple[Any, Any]:
        key_theta, key_data = jax.random.split(key)
        theta = self.draw_prior(key_theta)
        return theta, self.draw_data(key_data, theta)


class _Step(eqx.Module):
    step: Callable[..., Any]

    def __call__(self, key: Key, state: tuple[Any, Any]) -> tuple[Any, Any]:
        theta, data = state
        return self.step(key, theta, data), data


class _Statistics(eqx.Module):
    statistics: Callable[..., Any]

    def __call__(self, state: tuple[Any, Any]) -> Array:
        return self.statistics(*state)


def joint(
    draw_prior: Callable[[Key], Theta],
    draw_data: Callable[[Key, Theta], Data],
    step: Callable[[Key, Theta, Data], Theta],
    statistics: Callable[[Theta, Data], Float[Array, " statistics"]],
    *,
    num_steps: int = 10,
    seed: int = 0,
    num_replicates: int = 4096,
    band: tuple[float, float] = (0.05, 1.0),
    alpha: float = ALPHA,
) -> Verdict:
    """Whether `step`, which takes the data, is a kernel of the posterior given those data.

    Statistics should mix theta with the data: a kernel of the *prior* is right in theta alone.
    Each must involve theta, since one that no step changes is no test of the step.
    """
    return invariance(
        _Step(step),
        _Joint(draw_prior, draw_data),
        _Statistics(statistics),
        num_steps=num_steps,
        seed=seed,
        num_replicates=num_replicates,
        band=band,
        alpha=alpha,
    )
