"""Prediction from posterior draws, against a computation that inverts the matrix."""

from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr

import temperance as tp
from temperance.models.gaussian_process import prediction
from temperance.models.gaussian_process.kernels import KERNELS

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(25, 2))
Y = np.cos(INPUTS[:, 0]) + 0.2 * RNG.normal(size=25)
NEW = RNG.normal(size=(7, 2))


def tree_of(num_chains: int = 2, num_draws: int = 6, num_inputs: int = 2) -> xr.DataTree:
    shape = (num_chains, num_draws)
    dims = ["chain", "draw"]
    values = {
        "log_length": ([*dims, "input"], 0.3 * RNG.normal(size=(*shape, num_inputs))),
        "log_scale": (dims, 0.2 * RNG.normal(size=shape)),
        "log_noise": (dims, -1.5 + 0.2 * RNG.normal(size=shape)),
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(values)})


def by_hand(problem: Any, tree: Any, new: np.ndarray, noisy: bool):
    """Means and variances of each draw, in chain and draw order."""
    kernel = problem.terms.kernel
    draws = tree.posterior.to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)

    def correlation(a: np.ndarray, b: np.ndarray, length: np.ndarray):
        squares = np.sum(((a[:, None] - b[None]) / length) ** 2, -1)
        return np.asarray(kernel(jax.numpy.asarray(squares)))

    means, variances = [], []
    for i in range(draws.sizes["sample"]):
        one = {
            name: np.exp(draws[f"log_{name}"].values[i]) for name in ("length", "scale", "noise")
        }
        here = one["scale"] ** 2 * correlation(INPUTS, INPUTS, one["length"])
        inverse = np.linalg.inv(here + (one["noise"] ** 2 + 1e-8) * np.eye(len(INPUTS)))
        there = one["scale"] ** 2 * correlation(new, INPUTS, one["length"])
        means.append(there @ inverse @ Y)
        explained = np.einsum("mi,ij,mj->m", there, inverse, there)
        variances.append(one["scale"] ** 2 - explained + noisy * one["noise"] ** 2)
    return np.array(means), np.array(variances)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_prediction_is_that_of_the_inverse(
    kernel: str, noisy: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(prediction, "CHUNK", 3)  # with a last chunk that is not full
    problem, tree = tp.gaussian_process(INPUTS, Y, kernel=kernel), tree_of()
    means, variances = by_hand(problem, tree, NEW, noisy)
    found = tp.predict(problem, tree, NEW, noisy=noisy)
    np.testing.assert_allclose(found.mean, means.mean(0), rtol=1e-9)
    np.testing.assert_allclose(found.variance, variances.mean(0) + means.var(0), rtol=1e-8)
    assert found.draws is None


def test_draws_are_thinned_evenly():
    problem, tree = tp.gaussian_process(INPUTS, Y), tree_of()
    means, _ = by_hand(problem, tree, NEW, False)
    found = tp.predict(problem, tree, NEW, num_draws=3)
    np.testing.assert_allclose(found.mean, means[[0, 6, 11]].mean(0), rtol=1e-9)
    every = tp.predict(problem, tree, NEW, num_draws=None)
    np.testing.assert_allclose(every.mean, means.mean(0), rtol=1e-9)


def test_functions_have_the_moments_of_the_prediction(seed: int):
    problem = tp.gaussian_process(INPUTS, Y)
    one = tree_of(1, 1)
    posterior = one.posterior.to_dataset().isel(draw=[0] * 4000)
    many = xr.DataTree.from_dict({"posterior": posterior})
    found = tp.predict(problem, many, NEW, num_draws=None, functions=True, seed=seed)
    assert found.draws is not None
    assert found.draws.shape == (4000, len(NEW))
    z = (found.draws - found.mean) / np.sqrt(found.variance)
    assert np.abs(z.mean(0)).max() < 5 / np.sqrt(4000)
    assert np.abs((z**2).mean(0) - 1).max() < 6 * np.sqrt(2 / 4000)
    # Jointly: near inputs go together.
    near = tp.predict(
        problem, many, NEW[0] + np.array([[0, 0], [1e-3, 0]]), num_draws=500, functions=True
    )
    assert np.corrcoef(near.draws.T)[0, 1] > 0.99


def test_single_precision_and_one_input():
    x = np.linspace(-2, 2, 25)
    problem = tp.gaussian_process(x, Y)
    tree = tree_of(num_inputs=1)
    double = tp.predict(problem, tree, [0.0, 0.5])
    single = tp.predict(problem, tree, [0.0, 0.5], precision="single")
    np.testing.assert_allclose(double.mean, single.mean, rtol=1e-3)
