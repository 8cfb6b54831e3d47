"""Weighted draws that remember each other: means, errors, log Z and resampling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import temperance as tp
from temperance.errors import ArgumentError, ResultError
from temperance.estimates.resampling import relative
from temperance.estimates.weighted import kish, log_mean_weight, log_ratio, weighted_mean
from temperance.results.weighted_table import weighted_quantiles
from temperance.samplers.inverse_temperature import log_base_weight, log_target_weight

# A chain on the joint law of two normals, N(0, 1) and exp(Z) N(shift, 1), with beta summed out: its
# weights and expectations are known. Draws are exact and kept for a while, as a chain would.
SHIFT, LOG_Z = 1.5, 0.7


def joint_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """X of q^(1 - beta) (pi / Z)^beta: beta by its marginal on a grid, and x a normal."""
    grid = np.linspace(0, 1, 2001)
    mass = np.exp(-0.5 * grid * (1 - grid) * SHIFT**2)
    steps = np.concatenate([[0.0], np.cumsum(0.5 * (mass[1:] + mass[:-1]))])
    beta = np.interp(rng.uniform(size=shape) * steps[-1], steps, grid)
    return rng.normal(beta * SHIFT, 1.0)


def kept_for(draws: np.ndarray, rng: np.random.Generator, stay: float) -> np.ndarray:
    """Each draw again with probability `stay`, along the last axis."""
    moved = rng.uniform(size=draws.shape) >= stay
    moved[..., 0] = True
    last = np.maximum.accumulate(np.where(moved, np.arange(draws.shape[-1]), 0), axis=-1)
    return np.take_along_axis(draws, last, axis=-1)


def chains(seed: int, count: int, length: int, stay: float) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    x = kept_for(joint_draws(rng, (count, length)), rng, stay)
    tilt = jnp.asarray(SHIFT * x - 0.5 * SHIFT**2)
    return x, np.asarray(log_target_weight(tilt)), np.asarray(log_base_weight(tilt))


def covered(found: list[tuple[float, float]], truth: float) -> float:
    return float(np.mean([abs(value - truth) < 1.96 * error for value, error in found]))


def test_intervals_cover(seed: int):
    """Of log Z and of the target's mean; Kish's size, which forgets the memory, does not."""
    x, one, zero = chains(seed, 400, 600, 0.8)
    ratios = [log_ratio(one[i : i + 1], zero[i : i + 1], LOG_Z) for i in range(400)]
    assert 0.90 <= covered([(r.value, r.error) for r in ratios], LOG_Z) <= 0.99
    means = [weighted_mean(x[i : i + 1], one[i : i + 1]) for i in range(400)]
    assert 0.90 <= covered([(m.value, m.error) for m in means], SHIFT) <= 0.99
    naive = [(m.value, m.sd / np.sqrt(kish(w))) for m, w in zip(means, one, strict=True)]
    assert covered(naive, SHIFT) < 0.8


def test_the_effective_size_is_of_independent_draws(seed: int):
    x, one, _ = chains(seed, 400, 600, 0.8)
    means = [weighted_mean(x[i : i + 1], one[i : i + 1]) for i in range(400)]
    spread = np.var([m.value for m in means])
    assert np.median([m.ess for m in means]) == pytest.approx(1 / spread, rel=0.25)
    # About the estimated mean a variance is smaller by that mean's own.
    assert np.mean([m.sd**2 for m in means]) + spread == pytest.approx(1.0, abs=0.02)


def test_the_base_by_its_weights(seed: int):
    x, _, zero = chains(seed, 8, 4000, 0.5)
    found = weighted_mean(x, zero)
    assert abs(found.value) < 4.5 * found.error


def test_independent_weights(seed: int):
    rng = np.random.default_rng(seed)
    logs = rng.normal(-0.5, 1.0, (300, 4, 250))  # weights with a mean of one
    found = [log_mean_weight(one) for one in logs]
    assert 0.90 <= covered([(f.value, f.error) for f in found], 0.0) <= 0.99
    # A stochastic lower bound: below on average.
    assert np.mean([log_mean_weight(one[:1, :4]).value for one in logs]) < -0.05


def test_weights_are_relative():
    huge = np.array([[1e4, 1e4 + np.log(3.0), -np.inf]])
    assert relative(huge, (1, 3)) == pytest.approx(np.array([[0.75, 2.25, 0.0]]))
    assert kish(huge) == pytest.approx(16 / 10)
    with pytest.raises(ResultError, match="no draw has a weight"):
        relative(np.full((1, 3), -np.inf), (1, 3))
    assert log_mean_weight(np.full((1, 3), -np.inf)).error == np.inf


def test_quantiles_by_weight():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([0.1, 0.6, 0.3])
    assert weighted_quantiles(values, weights, (0.5, 0.7, 0.95)) == [1.0, 2.0, 3.0]


# -- of a tree -----------------------------------------------------------------------------------


def tree_of(x: np.ndarray, one: np.ndarray, zero: np.ndarray | None) -> xr.DataTree:
    stats = {"log_weight": (("chain", "draw"), one)}
    if zero is not None:
        stats["log_weight_base"] = (("chain", "draw"), zero)
    posterior = {"x": (("chain", "draw", "x_dim_0"), x[..., None])}
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset(posterior), "sample_stats": xr.Dataset(stats)}
    )


def test_expectations_of_a_tree(seed: int):
    x, one, zero = chains(seed, 4, 2000, 0.5)
    tree = tree_of(x, one, zero)
    by_name = tp.expectation(tree, "x")
    assert by_name.value == pytest.approx([SHIFT], abs=4.5 * float(by_name.error[0]))
    square = tp.expectation(tree, lambda x: x[..., 0] ** 2)
    assert abs(square.value - (1 + SHIFT**2)) < 4.5 * square.error
    base = tp.expectation(tree, under="base")["x"]
    assert abs(base.value[0]) < 4.5 * base.error[0]


def test_what_expectation_refuses(seed: int):
    x, one, zero = chains(seed, 2, 50, 0.5)
    tree = tree_of(x, one, zero)
    with pytest.raises(ArgumentError, match="'target' or 'base'"):
        tp.expectation(tree, under="prior")
    with pytest.raises(ArgumentError, match=r"wanted one of \['x'\], got 'y'"):
        tp.expectation(tree, "y")
    with pytest.raises(ArgumentError, match="one value for each chain and draw"):
        tp.expectation(tree, lambda x: x.sum())
    with pytest.raises(ResultError, match="no weights for the base"):
        tp.expectation(tree_of(x, one, None), under="base")


def test_resampling(seed: int):
    x, one, zero = chains(seed, 4, 2000, 0.0)
    tree = tree_of(x, one, zero)
    again = tp.resample(tree, 3000, seed=1)
    assert again["x"].shape == (1, 3000, 1)
    assert float(again["x"].mean()) == pytest.approx(SHIFT, abs=0.1)
    assert np.isin(again["x"].values, x).all()
    assert again.equals(tp.resample(tree, 3000, seed=1))
    with pytest.raises(ArgumentError, match="num_draws"):
        tp.resample(tree, 0)
    with pytest.raises(ResultError, match="no weights"):
        tp.resample(xr.DataTree.from_dict({"posterior": tree["posterior"].dataset,
                                           "sample_stats": xr.Dataset()}))  # fmt: skip


def test_every_draw_comes_as_often_as_its_weight(key: jax.Array):
    one = np.asarray(jax.random.normal(key, (1, 20)))
    tree = tree_of(np.arange(20.0)[None], one, one)
    count = 200_000
    counts = np.bincount(tp.resample(tree, count)["x"].values.astype(int).ravel(), minlength=20)
    shares = relative(one, one.shape)[0] / 20
    assert np.max(np.abs(counts - count * shares)) <= 1.0
