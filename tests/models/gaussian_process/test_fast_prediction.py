"""Prediction over draws and over the members of their ensembles, against inverted matrices."""

from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr

import temperance as tp
from temperance.errors import ResultError
from temperance.models.gaussian_process import prediction

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(12, 2))
Y = 1.0 + np.cos(INPUTS[:, 0]) + 0.2 * RNG.normal(size=12)
NEW = RNG.normal(size=(5, 2))
CHAINS, DRAWS, MEMBERS = 2, 3, 4
CONSTANT, NUGGET = 1.5, 0.2


def problem_of(route: str) -> tp.Problem:
    return tp.fast_gaussian_process(INPUTS, Y, constant=CONSTANT, nugget=NUGGET, route=route)


def tree_of(route: str | None, seed: int = 1) -> xr.DataTree:
    """Draws, and unless `route` is None the members that belong to it."""
    rng = np.random.default_rng(seed)
    dims, shape = ["chain", "draw"], (CHAINS, DRAWS)
    posterior = {
        "log_length": ([*dims, "input"], 0.3 * rng.normal(size=(*shape, 2))),
        "log_scale": (dims, 0.5 * rng.normal(size=shape)),
        "log_noise": (dims, -1.0 + 0.5 * rng.normal(size=shape)),
    }
    groups = {"posterior": xr.Dataset(posterior)}
    if route is not None:
        names = {"cholesky": ["log_scale"], "spectral": ["log_scale", "log_noise"]}[route]
        ensemble = {name: rng.normal(size=(*shape, MEMBERS)) for name in names}
        weight = rng.dirichlet(np.ones(MEMBERS), size=shape)
        weight[0, 0, 1] = 0.0
        weight /= weight.sum(-1, keepdims=True)
        with np.errstate(divide="ignore"):
            ensemble["log_weight"] = np.log(weight)
        ensemble["log_scale"][0, 0, 1] = 800.0  # where there is no density, and no weight
        dims = [*dims, "member"]
        groups["ensemble"] = xr.Dataset({name: (dims, v) for name, v in ensemble.items()})
    return xr.DataTree.from_dict(groups)


def given_one(length: np.ndarray, eta: float, sigma: float, noisy: bool) -> tuple[Any, Any]:
    def correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        squares = np.sum(((a[:, None] - b[None]) / length) ** 2, -1)
        return np.exp(-squares / 2)

    own = (eta**2 * NUGGET**2 + sigma**2) * np.eye(len(Y))
    inverse = np.linalg.inv(eta**2 * (CONSTANT**2 + correlation(INPUTS, INPUTS)) + own)
    there = eta**2 * (CONSTANT**2 + correlation(NEW, INPUTS))
    variance = eta**2 * (CONSTANT**2 + 1) - np.einsum("mi,ij,mj->m", there, inverse, there)
    return there @ inverse @ Y, variance + noisy * (eta**2 * NUGGET**2 + sigma**2)


def by_hand(tree: Any, route: str | None, noisy: bool) -> tuple[np.ndarray, np.ndarray]:
    """The moments of the mixture over all draws and members at once."""
    means, variances, weights = [], [], []
    posterior = tree.posterior
    for c, d in np.ndindex(CHAINS, DRAWS):
        length = np.exp(posterior["log_length"].values[c, d])
        eta, sigma = (np.exp(posterior[f"log_{n}"].values[c, d]) for n in ("scale", "noise"))
        if route is None:
            members = [(1.0, eta, sigma)]
        else:
            group = tree.ensemble
            etas = np.exp(np.minimum(group["log_scale"].values[c, d], 300.0))
            sigmas = etas * sigma / eta
            if route == "spectral":
                sigmas = np.exp(group["log_noise"].values[c, d])
            share = np.exp(group["log_weight"].values[c, d])
            members = [m for m in zip(share, etas, sigmas, strict=True) if m[0] > 0]
        for weight, one_eta, one_sigma in members:
            mean, variance = given_one(length, one_eta, one_sigma, noisy)
            means.append(mean)
            variances.append(variance)
            weights.append(weight / (CHAINS * DRAWS))
    mean = np.average(means, axis=0, weights=weights)
    second = np.average(np.array(variances) + np.array(means) ** 2, axis=0, weights=weights)
    return mean, second - mean**2


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("with_members", [True, False], ids=["members", "draws alone"])
@pytest.mark.parametrize("route", ["cholesky", "spectral"])
def test_prediction_is_that_of_the_inverses(
    route: str, with_members: bool, noisy: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(prediction, "CHUNK", 3)  # with a last chunk that is not full
    members = route if with_members else None
    tree = tree_of(members)
    mean, variance = by_hand(tree, members, noisy)
    found = tp.predict(problem_of(route), tree, NEW, noisy=noisy)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-8)
    assert found.draws is None


def test_members_are_those_of_the_draws_that_are_kept():
    route = "spectral"
    tree = tree_of(route)
    chosen = xr.DataTree.from_dict(
        {name: tree[name].to_dataset().isel(chain=[0], draw=[0]) for name in tree.children}
    )
    found = tp.predict(problem_of(route), tree, NEW, num_draws=1)
    alone = tp.predict(problem_of(route), chosen, NEW)
    np.testing.assert_allclose(found.mean, alone.mean, rtol=1e-12)
    np.testing.assert_allclose(found.variance, alone.variance, rtol=1e-12)


@pytest.mark.parametrize("route", ["cholesky", "spectral"])
def test_functions_are_drawn_at_the_draws(route: str, seed: int):
    problem = problem_of(route)
    with_members = tp.predict(problem, tree_of(route), NEW, functions=True, seed=seed)
    without = tp.predict(problem, tree_of(None), NEW, functions=True, seed=seed)
    assert with_members.draws is not None
    assert with_members.draws.shape == (CHAINS * DRAWS, len(NEW))
    np.testing.assert_allclose(with_members.draws, without.draws, rtol=1e-10)
    assert np.abs(with_members.variance - without.variance).max() > 1e-3


def test_weights_matter():
    tree = tree_of("spectral")
    group = tree["ensemble"].to_dataset()
    log_weight = group["log_weight"]
    flat = group.assign(log_weight=xr.where(np.isfinite(log_weight), 0.0, -np.inf))
    other = xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset(), "ensemble": flat})
    mean, _ = by_hand(tree, "spectral", False)
    found = tp.predict(problem_of("spectral"), other, NEW)
    assert np.abs(found.mean - mean).max() > 1e-3


# How often each draw counts: whole numbers, as many as there are draws.
COUNTS = np.array([[2, 0, 1], [0, 3, 0]])


def in_order(group: Any, places: np.ndarray) -> xr.Dataset:
    """The draws of all chains at these places, as one chain."""
    chain, draw = (xr.DataArray(part, dims="draw") for part in np.divmod(places, DRAWS))
    return group.to_dataset().isel(chain=chain, draw=draw).expand_dims("chain")


@pytest.mark.parametrize("route", [None, "cholesky", "spectral"])
def test_draws_count_by_their_weights(route: str | None):
    tree = tree_of(route)
    with np.errstate(divide="ignore"):
        logs = xr.DataArray(np.log(COUNTS) + 3.0, dims=["chain", "draw"])
    groups = {name: tree[name].to_dataset() for name in tree.children}
    # With members the draw's own weight says nothing of their mean, and their sum does.
    own = logs if route is None else logs[:, ::-1]
    groups["sample_stats"] = xr.Dataset({"log_weight": own})
    if route is not None:
        members = groups["ensemble"]
        groups["ensemble"] = members.assign(log_weight=members["log_weight"] + logs)
    problem = problem_of(route or "cholesky")
    found = tp.predict(problem, xr.DataTree.from_dict(groups), NEW)
    places = np.repeat(np.arange(CHAINS * DRAWS), COUNTS.ravel())
    repeated = xr.DataTree.from_dict({n: in_order(tree[n], places) for n in tree.children})
    wanted = tp.predict(problem, repeated, NEW)
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-12)
    np.testing.assert_allclose(found.variance, wanted.variance, rtol=1e-12)
    unweighted = tp.predict(problem, tree, NEW)
    assert np.abs(unweighted.mean - wanted.mean).max() > 1e-3


def test_members_of_another_run_are_refused():
    with pytest.raises(ResultError, match=r"log_noise.*'ensemble'"):
        tp.predict(problem_of("spectral"), tree_of("cholesky"), NEW)
    tree = tree_of("cholesky")
    fewer = {
        "posterior": tree["posterior"].to_dataset(),
        "ensemble": tree["ensemble"].to_dataset().isel(draw=[0]),
    }
    with pytest.raises(ResultError, match="2 draws"):
        tp.predict(problem_of("cholesky"), xr.DataTree.from_dict(fewer), NEW)


def test_single_precision():
    tree = tree_of("spectral")
    double = tp.predict(problem_of("spectral"), tree, NEW)
    single = tp.predict(problem_of("spectral"), tree, NEW, precision="single")
    np.testing.assert_allclose(double.mean, single.mean, rtol=1e-3)
    assert jax.config.jax_enable_x64


def test_a_run_by_cholesky_is_read_by_the_names_of_its_model():
    problem = problem_of("cholesky")
    tree = tp.sample(
        problem,
        "plain",
        move="metropolis",
        num_draws=20,
        num_warmup=20,
        num_chains=2,
        progress=False,
    )
    names = set(tree["posterior"].data_vars)
    assert {"log_length", "log_scale", "log_noise"} <= names
    assert "log_ratio" in tree["unconstrained_posterior"].data_vars
    ratio = tree["posterior"]["log_noise"] - tree["posterior"]["log_scale"]
    np.testing.assert_allclose(ratio, tree["unconstrained_posterior"]["log_ratio"], atol=1e-12)
    assert np.isfinite(tp.predict(problem, tree, NEW, noisy=True).variance).all()
