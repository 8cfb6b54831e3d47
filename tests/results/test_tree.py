"""What comes back: names, axes and groups as ArviZ has them, on disk as in memory."""

import os
import re
from pathlib import Path
from typing import Any

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.shared import small_runs
from tests.shared.small_runs import assert_identical, run, uninterrupted

import temperance as tp
from temperance.methods.report.evidence import log_densities
from temperance.results.tree import log_evidence

CHAINS, DRAWS = small_runs.SHORT["num_chains"], small_runs.SHORT["num_draws"]

# -- groups --------------------------------------------------------------------------------------


def test_groups_of_parallel_tempering() -> None:
    tree = uninterrupted("pt")
    assert set(tree.children) == {"posterior", "sample_stats", "tempering", "evidence"}
    stats = tree["sample_stats"].dataset
    assert set(stats.data_vars) == {"lp", "acceptance_rate", "diverging"}
    assert all(stats[name].dims == ("chain", "draw") for name in stats.data_vars)
    ladder = tree["tempering"].dataset
    rungs = ladder.sizes["rung"]
    wanted = {
        "beta": ("rung",),
        "step_size": ("rung", "part"),
        "move_acceptance": ("rung", "part"),
        "diverging_rate": ("rung",),
        "num_evaluations": ("rung",),
        "swap_acceptance": ("pair",),
        "barrier": (),
        "round_trips": ("chain",),
        "replica": ("chain", "draw", "rung"),
        "components": ("chain", "draw", "sweep", "rung", "component"),
    }
    assert {name: array.dims for name, array in ladder.data_vars.items()} == wanted
    assert dict(ladder.sizes) == {
        "rung": rungs, "part": 1, "pair": rungs - 1, "component": 2,
        "chain": CHAINS, "draw": DRAWS, "sweep": 4,
    }  # fmt: skip
    assert (ladder["beta"][0], ladder["beta"][-1]) == (0.0, 1.0)
    assert (np.sort(ladder["replica"].values) == np.arange(rungs)).all()
    assert list(tree["evidence"]["estimator"].values) == ["mbar", "stepping_stones"]
    assert tree["evidence"]["log_ratio"].shape == (2, rungs - 1)


def test_the_parts_of_a_tree_agree() -> None:
    """lp is prior plus likelihood at the draw; the barrier is what swaps reject."""
    tree = uninterrupted("pt")
    ladder = tree["tempering"].dataset
    target = ladder["components"].isel(sweep=-1, rung=-1).values
    np.testing.assert_allclose(tree["sample_stats"]["lp"].values, target.sum(-1), rtol=1e-13)
    mean = jnp.asarray(tree["posterior"]["mean"].values)
    prior = jax.vmap(jax.vmap(lambda m: small_runs.log_prior({"mean": m})))(mean)
    likelihood = jax.vmap(jax.vmap(lambda m: small_runs.log_likelihood({"mean": m})))(mean)
    np.testing.assert_allclose(target[..., 0], prior, rtol=1e-13)
    np.testing.assert_allclose(target[..., 1], likelihood, rtol=1e-13)
    rejection = 1 - ladder["swap_acceptance"].values
    np.testing.assert_allclose(ladder["barrier"], rejection.sum())
    per_step = tree["evidence"]["log_ratio"].sum("pair").values
    np.testing.assert_allclose(tree["evidence"]["log_evidence"].values, per_step, rtol=1e-12)


def test_groups_of_the_others() -> None:
    plain, transitions, hand = (uninterrupted(case) for case in ("plain", "tt", "hand"))
    assert set(plain.children) == {"posterior", "sample_stats"}
    assert set(transitions.children) == {"posterior", "sample_stats", "tempering"}
    stats = transitions["sample_stats"].dataset
    assert {"transition_acceptance", "log_ratio"} < set(stats.data_vars)
    assert np.isfinite(stats["log_ratio"]).all()
    assert 0 < float(transitions["tempering"]["transition_rate"]) <= 1
    np.testing.assert_array_equal(transitions["tempering"]["beta"], small_runs.BETAS)
    assert set(hand.children) == {"posterior", "sample_stats", "tempering", "evidence"}
    np.testing.assert_array_equal(hand["tempering"]["step_size"], np.full((3, 1), 0.7))


def test_facts_of_a_run() -> None:
    attrs = uninterrupted("pt").attrs
    wanted = {"method": "pt", "seed": 1, "num_warmup": 60, "precision": "double", "stopped": ""}
    assert wanted.items() <= attrs.items()
    assert attrs["sweeps_per_draw"] == 8
    assert attrs["seconds"] > 0
    assert "Metropolis" in attrs["move"]
    assert uninterrupted("hand").attrs["method"] == "ParallelTempering"


def test_evaluations_are_counted() -> None:
    """One density a rung and sweep by Metropolis, five an iteration of HMC, draws alone."""
    tempered, plain = uninterrupted("pt"), uninterrupted("plain")
    rungs = tempered["tempering"].sizes["rung"]
    assert tempered.attrs["num_evaluations"] == CHAINS * DRAWS * 8 * rungs
    assert plain.attrs["num_evaluations"] == CHAINS * DRAWS * 5
    assert plain.attrs["num_row_evaluations"] == CHAINS * DRAWS * 5 * len(small_runs.ROWS)


def test_components_of_a_draw_are_evenly_spaced() -> None:
    """Four of eight sweeps: the second, the fourth, the sixth and the eighth."""
    long = run("hand", sweeps_per_draw=8, num_draws=5)["tempering"]["components"].values
    each = run("hand", sweeps_per_draw=1, num_draws=40)["tempering"]["components"].values
    assert long.shape[2] == 4
    np.testing.assert_allclose(long.reshape(CHAINS, 20, *long.shape[3:]), each[:, 1::2, 0])


# -- names and axes ------------------------------------------------------------------------------

FEW: dict[str, Any] = {"num_draws": 6, "num_warmup": 0, "num_chains": 2, "progress": False}


def normal(x: Any) -> Any:
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(x))


@pytest.mark.parametrize(
    ("example", "names", "wanted"),
    [
        (np.zeros(6), {}, {"x": {"x_dim_0": 6}}),
        (np.zeros((2, 3)), {}, {"x": {"x_dim_0": 2, "x_dim_1": 3}}),
        (
            {"b": {"c": np.zeros(2), "d": [np.zeros(()), np.zeros(1)]}, "a": np.zeros(2)},
            {},
            {
                "a": {"a_dim_0": 2},
                "b_c": {"b_c_dim_0": 2},
                "b_d_0": {},
                "b_d_1": {"b_d_1_dim_0": 1},
            },
        ),
        (
            {"slope": np.zeros((2, 2)), "level": np.zeros(2)},
            {
                "dims": {"slope": ["city", "year"], "level": ["city"]},
                "coords": {"city": ["Ghent", "Delft"], "year": [2001, 2002]},
            },
            {"slope": {"city": 2, "year": 2}, "level": {"city": 2}},
        ),
    ],
    ids=["bare vector", "bare matrix", "nested", "named axes"],
)
def test_names_and_axes_follow_the_position(
    example: Any, names: dict[str, Any], wanted: dict[str, dict[str, int]]
) -> None:
    tree = tp.sample(tp.Target(normal, example=example, **names), "plain", "metropolis", **FEW)
    posterior = tree["posterior"].dataset
    axes = {"chain": 2, "draw": 6}
    assert {name: dict(array.sizes) for name, array in posterior.data_vars.items()} == {
        name: axes | extra for name, extra in wanted.items()
    }
    for name, values in names.get("coords", {}).items():
        assert list(posterior[name].values) == values
    # Every leaf holds its own part of the vector: together they give the density.
    total = sum((a**2).sum([d for d in a.dims if d not in axes]) for a in posterior.values())
    np.testing.assert_allclose(tree["sample_stats"]["lp"], -0.5 * total, rtol=1e-12)


def test_leaves_that_would_share_a_name_are_refused() -> None:
    target = tp.Target(normal, example={"a_b": np.zeros(1), "a": {"b": np.zeros(1)}})
    with pytest.raises(tp.TemperanceError, match="share a name"):
        tp.sample(target, "plain", **FEW)


# -- other people's functions --------------------------------------------------------------------


@pytest.mark.parametrize("case", ["pt", "plain"])
def test_arviz_reads_it(case: str) -> None:
    tree = uninterrupted(case)
    table = arviz_stats.summary(tree, round_to="none")
    assert list(table.index) == ["mean[0]", "mean[1]"]
    assert np.isfinite(table["r_hat"].to_numpy(float)).all()
    for measure in (arviz_stats.ess, arviz_stats.rhat):
        values = measure(tree)["mean"]
        assert values.shape == (2,)
        assert np.isfinite(values).all()
    low, high = arviz_stats.hdi(tree)["mean"].values[0]
    assert low < high


# -- on disk -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["pt", "tt", "plain"])
@pytest.mark.parametrize("name", ["run.nc", "run.zarr"])
def test_saved_and_read_back_bit_for_bit(case: str, name: str, tmp_path: Path) -> None:
    tree = uninterrupted(case)
    path = tp.save(tree, tmp_path / name)
    assert path == tmp_path / name
    for _ in range(2):
        read = tp.load(str(path))
        assert_identical(read, tree)
        assert read.attrs == tree.attrs
        assert {name: type(value) for name, value in read.attrs.items()} == {
            name: type(value) for name, value in tree.attrs.items()
        }
        # Nothing is held open: the file can be written again, and removed.
        tp.save(read, path)
    read = tp.load(path)
    if case == "pt":
        assert log_evidence(read) == log_evidence(tree)


def test_single_precision_stays_single_on_disk(tmp_path: Path) -> None:
    target = tp.Target(normal, example=np.zeros(2))
    tree = tp.sample(target, "plain", "metropolis", precision="single", **FEW)
    assert tree["posterior"]["x"].dtype == np.float32
    assert_identical(tp.load(tp.save(tree, tmp_path / "run.nc")), tree)


# -- progress ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "labels", "words"),
    [
        ("pt", ["pilot", "warm", "draw"], r"ESS \d+ +R-hat \d\.\d{3} +swaps \d+%"),
        ("tt", ["warm", "draw"], r"ESS \d+ +R-hat \d\.\d{3} +swaps \d+%"),
        ("plain", ["warm", "draw"], r"ESS \d+ +R-hat \d\.\d{3}"),
    ],
)
def test_progress_is_shown(
    case: str,
    labels: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(os.environ, "COLUMNS", "120")
    tree = small_runs.run(case, progress=True)
    out, shown = capsys.readouterr()
    assert out == ""
    assert [label for label in ("pilot", "warm", "draw") if label in shown] == labels
    last = next(line for line in shown.splitlines() if line.startswith("draw"))
    assert f"{DRAWS}/{DRAWS}" in last
    assert re.search(r"eta \d:\d\d:\d\d", last)
    assert re.search(words, last), last
    assert_identical(tree, uninterrupted(case))
    small_runs.run(case, num_draws=2)
    assert capsys.readouterr() == ("", "")


def test_a_component_of_weight_zero_counts_nothing_even_where_it_is_infinite():
    weights = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    components = np.random.default_rng(0).normal(size=(2, 4, 3, 2))
    expected = np.einsum("tdkc,jc->tdkj", components, weights)
    np.testing.assert_allclose(log_densities(components, weights), expected)
    components[0, 1, 2, 1] = -np.inf
    found = log_densities(components, weights)
    impossible = found[0, 1, 2]
    assert impossible[0] == components[0, 1, 2, 0]
    assert np.isneginf(impossible[1:]).all()
    others = np.isfinite(components).all(axis=-1)
    np.testing.assert_allclose(found[others], expected[others])
