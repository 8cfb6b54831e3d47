"""The check of the base's own moments, and bases that have none."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from temperance.methods.report import weights

SHAPE = (4, 800)


def drawn(draw: Any, seed: int, shift: float = 0.0) -> dict[str, np.ndarray]:
    """Draws of the base itself, so that all of their weights for it are one."""
    keys = jax.random.split(jax.random.key(seed), SHAPE[0] * SHAPE[1])
    position = np.asarray(jax.vmap(draw)(keys), float).reshape(*SHAPE, -1)
    return {"position": position + shift, "log_weight_base": np.zeros((*SHAPE, 1))}


def normal_and_cauchy(key: Any) -> Any:
    one, two = jax.random.split(key)
    return jnp.stack([jax.random.normal(one), jax.random.cauchy(two)])


def check(draw: Any, draws: dict[str, np.ndarray]) -> dict[str, float]:
    ladder = SimpleNamespace(hot=None, draw_hot=draw)
    return {name: float(value) for name, (_, value) in weights._base_check(draws, ladder).items()}


def test_variables_without_moments_are_left_out(seed: int):
    found = check(normal_and_cauchy, drawn(normal_and_cauchy, seed))
    assert (found["base_heavy"], found["base_checks"]) == (1, 2)
    assert found["base_z"] < 4.5
    # The one that has moments is still checked.
    assert check(normal_and_cauchy, drawn(normal_and_cauchy, seed, shift=0.5))["base_z"] > 6


def test_a_base_without_any_moments_is_not_checked(seed: int):
    def cauchy(key: Any) -> Any:
        return jax.random.cauchy(key, (2,))

    found = check(cauchy, drawn(cauchy, seed))
    assert found == {"base_error": 0.0, "base_z": 0.0, "base_checks": 0, "base_heavy": 2}


def test_moments_that_exist_are_all_checked(seed: int):
    def normal(key: Any) -> Any:
        return jax.random.normal(key, (3,))

    found = check(normal, drawn(normal, seed))
    assert (found["base_heavy"], found["base_checks"]) == (0, 6)
    assert found["base_z"] == pytest.approx(2.0, abs=2.5)
    assert found["base_error"] < 0.2
