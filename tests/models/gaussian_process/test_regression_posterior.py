"""Geweke's joint test of hyperparameters: prior, data and HMC belong to one model."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tests.models.gaussian_process.broken_priors import GammaWithoutJacobian

import temperance as tp
from temperance.ladders.ladder import SingleRung
from temperance.moves.move import Params
from temperance.samplers.plain import Plain
from temperance.testing import joint

SIZE = {"num_steps": 5, "num_replicates": 2048}
FEW = jnp.asarray([[-1.0], [0.2], [0.3], [1.1], [2.0]])


def draw_data(key: Any, position: Any):
    covariance = _covariance(position)
    return jnp.linalg.cholesky(covariance) @ jax.random.normal(key, (len(FEW),))


def _covariance(position: Any):
    squares = (FEW - FEW.T) ** 2 * jnp.exp(-2 * position["log_length"][0])
    noise = jnp.exp(2 * position["log_noise"]) + 1e-8
    return jnp.exp(2 * position["log_scale"] - squares / 2) + noise * jnp.eye(len(FEW))


def hmc_step(**priors: Any):
    problem = tp.gaussian_process(FEW, np.zeros(len(FEW)), priors=priors)

    def step(key: Any, position: Any, y: Any):
        def density(x: Any):
            assert problem.log_likelihood is not None
            return problem.log_prior(x) + problem.log_likelihood(x, {"inputs": FEW, "y": y})

        params = Params(jnp.full((1, 1), 0.25), jnp.ones((1, 3)))
        sampler = Plain(SingleRung(density), tp.hmc(num_steps=3), params)
        return sampler.step(key, sampler.init(position))[0].point.position

    return step


def statistics(position: Any, y: Any):
    length, scale, noise = (position[f"log_{name}"] for name in ("length", "scale", "noise"))
    size = jnp.log(jnp.mean(y**2))
    rough = jnp.tanh(y[1] * y[2] - y[0] * y[4])
    return jnp.stack(
        [length[0] * rough, scale * size, noise * size, noise, scale, length[0] * noise]
    )


def prior_draw(key: Any):
    return tp.gaussian_process(FEW, np.zeros(len(FEW))).draw_prior(key)


def test_hmc_leaves_the_posterior_invariant(seed: int):
    verdict = joint(prior_draw, draw_data, hmc_step(), statistics, seed=seed, **SIZE)
    assert verdict.passed, verdict


def test_a_prior_without_its_jacobian_is_rejected(seed: int):
    wrong = hmc_step(noise=GammaWithoutJacobian(2.0, 2.0))
    verdict = joint(prior_draw, draw_data, wrong, statistics, seed=seed, **SIZE)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict
