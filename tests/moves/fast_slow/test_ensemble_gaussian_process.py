"""Ensembles in the posterior of a Gaussian process, by both routes: Geweke's joint test."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.moves.fast_slow.broken_ensemble import WeighedByTheTarget

import temperance as tp
from temperance._types import Key
from temperance.ladders.ladder import SingleRung
from temperance.moves.move import Params
from temperance.problems.layout import Layout
from temperance.problems.problem import densities_of
from temperance.samplers.plain import Plain
from temperance.testing import joint

INPUTS = np.array([[0.0], [0.4], [1.0], [1.1], [2.0]])
CONSTANT, NUGGET = 0.5, 0.1
PRIORS = {
    "length": tp.LogNormal(0.0, 0.7), "scale": tp.LogNormal(0.0, 0.7),
    "noise": tp.LogNormal(-0.7, 0.7),
}  # fmt: skip


def problem(route: str, y: Any = None) -> tp.Problem:
    y = np.zeros(len(INPUTS)) if y is None else y
    return tp.fast_gaussian_process(
        INPUTS, y, constant=CONSTANT, nugget=NUGGET, priors=PRIORS, route=route
    )


class Regression(eqx.Module):
    """Hyperparameters and data from the model, and a step of an ensemble given them."""

    layout: Layout
    move: Any
    route: str = eqx.field(static=True)

    def draw_prior(self, key: Key) -> Array:
        return self.layout.ravel(problem(self.route).draw_prior(key))

    def draw_data(self, key: Key, theta: Array) -> Array:
        """The response, by a dense covariance written out once more."""
        log_length, log_noise, log_scale = self.named(theta)
        scaled = jnp.asarray(INPUTS) * jnp.exp(-log_length)
        squares = (scaled - scaled.T) ** 2
        kernel = CONSTANT**2 + jnp.exp(-0.5 * squares) + NUGGET**2 * jnp.eye(len(INPUTS))
        noise = jnp.exp(2 * log_noise) * jnp.eye(len(INPUTS))
        root = jnp.linalg.cholesky(jnp.exp(2 * log_scale) * kernel + noise)
        return root @ jax.random.normal(key, (len(INPUTS),))

    def named(self, theta: Array) -> tuple[Array, Array, Array]:
        log_length, other, log_scale = theta[0], theta[1], theta[2]
        return log_length, other + log_scale if self.route == "cholesky" else other, log_scale

    def step(self, key: Key, theta: Array, y: Array) -> Array:
        known: Any = densities_of(problem(self.route))
        likelihood = replace(known.cold, data=known.cold.data | {"y": y})
        whole = replace(known.whole, log_likelihood=likelihood)
        params = Params(jnp.asarray([[1.0]]), jnp.full((1, 3), 0.7))
        sampler = Plain(SingleRung(whole), self.move, params)
        return sampler.step(key, sampler.init(theta))[0].point.position

    def statistics(self, theta: Array, y: Array) -> Array:
        log_length, log_noise, log_scale = self.named(theta)
        size = jnp.tanh(jnp.log(jnp.mean(y**2) + 0.01))
        rough = jnp.tanh(jnp.log(jnp.mean(jnp.diff(y) ** 2) + 0.01))
        alone = jnp.stack([log_length, log_noise, log_scale])
        return jnp.concatenate([jnp.tanh(alone), jnp.tanh(alone) * size, jnp.tanh(alone) * rough])


def regression(route: str, base: Any) -> Regression:
    made: Any = problem(route)
    layout = densities_of(made).layout
    fast = len(made.terms.fast)
    move = tp.ensemble(members=4**fast, base=base, update="one at a time").placed(made, layout)
    return Regression(layout, jax.tree.map(jnp.asarray, move, is_leaf=_is_array), route)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray)


def verdict(asked: Regression, seed: int) -> Any:
    return joint(
        asked.draw_prior, asked.draw_data, asked.step, asked.statistics,
        num_steps=5, seed=seed, num_replicates=2048,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("route", "base"),
    [
        ("cholesky", "independent"),
        pytest.param("spectral", "grid", marks=pytest.mark.slow),
        pytest.param("cholesky", "grid", marks=pytest.mark.slow),
        pytest.param("spectral", "independent", marks=pytest.mark.slow),
    ],
)
def test_ensembles_draw_from_the_posterior(route: str, base: str, seed: int):
    assert verdict(regression(route, base), seed).passed


def test_members_weighed_by_the_target_are_seen(seed: int):
    asked = regression("cholesky", "independent")
    wrong = replace(asked.move, measure=WeighedByTheTarget(asked.move.measure.base))
    assert not verdict(replace(asked, move=wrong), seed).lawful
