"""Names that a model shares with other parts of a result, and names that no result can hold."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import temperance as tp
from temperance.errors import ArgumentError
from temperance.problems import checks

FEW: dict[str, Any] = {"num_draws": 6, "num_warmup": 0, "num_chains": 2, "progress": False}


def density(x: Any) -> Any:
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in x.values())


def target(sizes: dict[str, tuple[int, ...]], **names: Any) -> Any:
    """A standard normal law of named arrays, heated towards a wider one."""
    dimension = sum(int(np.prod(shape)) for shape in sizes.values())
    base = tp.Gaussian(np.zeros(dimension), np.full(dimension, 4.0))
    example = {name: np.zeros(shape) for name, shape in sizes.items()}
    return tp.Target(density, base=base, example=example, **names)


# What `sample_stats`, `tempering` and `evidence` have after `pt` or `joint-ct`.
SHARED = {"beta": (3,), "control": (2,), "lp": (3, 2), "log_weight": (2,), "barrier": (1,)}
AXES = {
    "beta": ["rung"], "control": ["pair"], "lp": ["rung", "component"], "log_weight": ["pair"],
    "barrier": ["estimator"],
}  # fmt: skip
LABELS = {"rung": ["a", "b", "c"], "pair": [10, 20]}


@pytest.mark.parametrize(
    "call",
    [
        {"method": "pt", "num_rungs": 4},
        pytest.param({"method": "joint-ct", "log_zeta": 0.0}, marks=pytest.mark.slow),
        pytest.param({"method": "st", "num_rungs": 4}, marks=pytest.mark.slow),
    ],
    ids=lambda call: call["method"],
)
def test_a_model_has_its_own_names_beside_those_of_other_groups(call: dict[str, Any]) -> None:
    call = {"move": "metropolis", **call}
    tree = tp.sample(target(SHARED, dims=AXES, coords=LABELS), **call, **FEW)
    posterior = tree["posterior"].dataset
    assert {name: list(array.dims[2:]) for name, array in posterior.data_vars.items()} == AXES
    assert list(posterior["rung"].values) == LABELS["rung"]
    assert list(posterior["pair"].values) == LABELS["pair"]
    plain = tp.sample(target(SHARED), **call, **FEW)
    for group in ("sample_stats", "tempering", "evidence"):
        assert tree[group].dataset.identical(plain[group].dataset)
    for name in SHARED:
        np.testing.assert_array_equal(posterior[name].values, plain["posterior"][name].values)


def split(x: Any) -> Any:
    """What is drawn by other names: `y` keeps its shape and `x` does not."""
    return {"x": jnp.sum(x["x"], keepdims=True), "y": x["y"], "beta": x["y"]}


def test_positions_beside_constrained_values_have_their_own_axes() -> None:
    dims = {"x": ["rung"], "y": ["pair"], "beta": ["pair"], "lp": ["a", "b", "c"]}
    tree = tp.sample(
        target({"x": (3,), "y": (2,)}, constrain=split, dims=dims), "pt", "metropolis",
        num_rungs=4, **FEW,
    )  # fmt: skip
    shown, free = tree["posterior"].dataset, tree["unconstrained_posterior"].dataset
    assert {n: a.dims[2:] for n, a in shown.items()} == {
        "x": ("rung",), "y": ("pair",), "beta": ("pair",),
    }  # fmt: skip
    assert {n: a.dims[2:] for n, a in free.items()} == {"x": ("x_dim_0",), "y": ("pair",)}


TWO = {"x": (3,), "y": (2, 3)}
WRONG: dict[str, tuple[dict[str, tuple[int, ...]], dict[str, Any], str]] = {
    "chain": (TWO, {"dims": {"x": ["chain"]}}, "axis 'chain', which is of every result"),
    "draw": (TWO, {"dims": {"y": ["a", "draw"]}}, "axis 'draw', which is of every result"),
    "too many": (TWO, {"dims": {"x": ["a", "b"]}}, "'x' has 1 axes, and .* names 2"),
    "twice": ({"y": (2, 2)}, {"dims": {"y": ["a", "a"]}}, "axis 'a', which is named twice"),
    "a variable": (TWO, {"dims": {"y": ["x"]}}, "axis 'x' of 'y' has the name of a variable"),
    "itself": (TWO, {"dims": {"x": ["x"]}}, "axis 'x' of 'x' has the name of a variable"),
    "two lengths": (TWO, {"dims": {"x": ["a"], "y": ["a"]}}, "'a' has 3 entries in 'x' and 2"),
    "labels": (TWO, {"dims": {"x": ["a"]}, "coords": {"a": [1, 2]}}, "'a' has 2 values"),
    "a default": ({"x": (3,), "x_dim_0": ()}, {}, "axis 'x_dim_0' of 'x' has the name"),
    "variable chain": ({"chain": (2,)}, {}, "a variable is called 'chain'"),
    "constrained": (
        {"x": (3,), "y": (2,)},
        {"constrain": split, "dims": {"beta": ["draw"]}},
        "'beta' has an axis 'draw'",
    ),
    "unconstrained": (
        {"draw": (3,)},
        {"constrain": lambda x: {"x": x["draw"]}},
        "a variable is called 'draw'",
    ),
}


@pytest.mark.parametrize(("sizes", "names", "words"), WRONG.values(), ids=WRONG)
def test_names_that_a_result_cannot_hold_are_refused_at_once(
    sizes: dict[str, Any], names: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        tp.sample(target(sizes, **names), "pt", **FEW)
    with pytest.raises(ArgumentError, match=words):
        tp.advi(target(sizes, **names), progress=False)


@pytest.mark.parametrize(
    ("sizes", "names", "words"),
    [
        (TWO, {"dims": {"x": ["member"]}}, "'x' has an axis 'member'"),
        ({"x": (1,), "log_weight": (1,)}, {}, "called 'log_weight'"),
        ({"x": (1,), "member": (1,)}, {}, "called 'member'"),
    ],
)
def test_names_that_members_of_an_ensemble_need(
    sizes: dict[str, Any], names: dict[str, Any], words: str
) -> None:
    """They are taken by ensemble moves alone."""
    with pytest.raises(ArgumentError, match=words):
        tp.sample(target(sizes, **names), "plain", tp.ensemble(fast="x"), **FEW)
    tree = tp.sample(target(sizes, **names), "plain", "metropolis", **FEW)
    assert set(tree["posterior"].dataset.data_vars) == set(sizes)


def test_broken_twin_dims_for_every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unchecked, a clash comes out when the run is over, and only then."""
    monkeypatch.setattr(checks, "check_names", lambda *_, **__: None)
    with pytest.raises(ValueError, match="more dims"):
        tp.sample(target(TWO, dims={"x": ["a", "b"]}), "plain", "metropolis", **FEW)
