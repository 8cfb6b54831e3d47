"""What a problem's `constrain` does to a result: names, axes, values, and nothing else."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from tests.shared import small_runs

import temperance as tp
from temperance.errors import ArgumentError
from temperance.problems import constrain as constrained

FEW: dict[str, Any] = {"num_draws": 6, "num_warmup": 0, "num_chains": 2, "progress": False}
NAMES = {"dims": {"share": ["kind"], "mean": ["axis"]}, "coords": {"kind": ["a", "b", "c"]}}


def shares(x):
    """A simplex of three from two free values, and the values themselves."""
    free = jnp.concatenate([x["mean"], jnp.zeros(1)])
    return {"share": jnp.exp(free) / jnp.sum(jnp.exp(free)), "mean": x["mean"], "n": jnp.array(3)}


def run(**changes: Any) -> Any:
    problem = small_runs.make_problem(constrain=shares, **NAMES, **changes)
    return tp.sample(problem, "plain", "metropolis", **FEW)


@pytest.mark.parametrize("most", [3e6, 12.0], ids=["at once", "in pieces"])
def test_the_posterior_is_constrained_and_the_positions_are_kept(
    most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constrained, "MOST_NUMBERS", most)
    tree = run()
    plain = tp.sample(small_runs.make_problem(), "plain", "metropolis", **FEW)
    positions = plain["posterior"]["mean"].values
    np.testing.assert_array_equal(tree["unconstrained_posterior"]["mean"].values, positions)
    posterior = tree["posterior"].dataset
    assert {name: array.dims[2:] for name, array in posterior.data_vars.items()} == {
        "share": ("kind",), "mean": ("axis",), "n": (),
    }  # fmt: skip
    assert list(posterior["kind"].values) == ["a", "b", "c"]
    free = np.exp(np.concatenate([positions, np.zeros((2, 6, 1))], axis=-1))
    np.testing.assert_allclose(posterior["share"], free / free.sum(-1, keepdims=True), rtol=1e-13)
    np.testing.assert_array_equal(tree["sample_stats"]["lp"], plain["sample_stats"]["lp"])
    assert tree["unconstrained_posterior"]["mean"].dims == ("chain", "draw", "axis")


def test_the_positions_have_axes_of_their_own_where_shapes_differ() -> None:
    target = tp.Target(
        lambda x: -0.5 * jnp.sum(x["p"] ** 2),
        example={"p": np.zeros(2)},
        dims={"p": ["kind"]},
        coords={"kind": ["a", "b", "c"]},
        constrain=lambda x: {"p": jnp.concatenate([x["p"], -jnp.sum(x["p"], keepdims=True)])},
    )
    tree = tp.sample(target, "plain", "metropolis", **FEW)
    assert tree["posterior"]["p"].dims == ("chain", "draw", "kind")
    assert tree["unconstrained_posterior"]["p"].dims == ("chain", "draw", "p_dim_0")


def test_both_groups_are_saved(tmp_path: Path) -> None:
    tree = run()
    small_runs.assert_identical(tp.load(tp.save(tree, tmp_path / "run.nc")), tree)


@pytest.mark.parametrize(
    ("constrain", "words"),
    [
        (3.0, "wanted a function"),
        (lambda x: x["mean"], "wanted a dictionary"),
        (lambda x: {1: x["mean"]}, "wanted a dictionary"),
        (lambda x: {"a": x["nothing"]}, "fails on a position"),
    ],
)
def test_wrong_ones_are_refused_before_the_run(
    constrain: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the types that tests check, and that users do not.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ArgumentError, match=f"constrain: .*{words}"):
        tp.sample(small_runs.make_problem(constrain=constrain), "plain", **FEW)
