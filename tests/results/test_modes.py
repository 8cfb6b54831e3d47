"""What a run says of its modes: each warning where it is due, none of a healthy run."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from tests.results.test_summary import assert_said, made

import temperance as tp
from temperance.results.modes import BRIDGE

HEALTHY: dict[str, Any] = {
    "found": [40, 60],
    "share": [0.31, 0.69],
    "error": [0.01, 0.01],
    "entries": [50, 50],
    "reference_share": [0.3, 0.7],
    "reference_error": [0.01, 0.01],
    "log_evidence": [-0.2, 0.6],
}
ATTRS: dict[str, Any] = {
    "num_draws": 1000,
    "num_missed": 0,
    "bound": 0.00599,
    "complete": 1,
    "tail_shape": 0.2,
    "efficiency": 0.5,
    "num_evaluations": 3000,
}


def with_modes(bridge: float = 1.0, bridge_error: float = 0.02, **changes: Any) -> Any:
    """A healthy tree with two modes and the bridge's log evidence, with `changes` by name."""
    tree = made()
    columns = HEALTHY | {name: value for name, value in changes.items() if name in HEALTHY}
    centers = np.array([[-4.0, 0.125], [4.0, 1.0]])
    variables = {name: (("mode",), np.asarray(value)) for name, value in columns.items()}
    variables["center_x"] = (("mode", "x_axis_0"), centers)
    attrs = ATTRS | {name: value for name, value in changes.items() if name in ATTRS}
    tree["modes"] = xr.DataTree(xr.Dataset(variables, attrs=attrs))
    old = tree["evidence"].dataset
    names = [*old["estimator"].values, BRIDGE]
    tree["evidence"] = xr.DataTree(
        xr.Dataset(
            {
                "log_evidence": ("estimator", [*old["log_evidence"].values, bridge]),
                "error": ("estimator", [*old["error"].values, bridge_error]),
            },
            coords={"estimator": names},
        )
    )
    return tree


SENTENCE = "a further mode would have to hold less than 0.006 of the base's mass (95 %): 1000 draws"


def test_a_healthy_run_is_not_warned_of_and_says_what_it_may_have_missed() -> None:
    said = tp.summary(with_modes())
    assert said.warnings == []
    assert_said(said.notes, [SENTENCE])
    assert "ended at no mode" not in said.notes[0]
    assert said.facts["modes"] == 2
    assert f"Note: {SENTENCE}" in str(said)
    assert list(said.modes["share"]) == [0.69, 0.31]
    assert "reference_share" in str(said)
    assert "reference_share" in said._repr_html_()


def test_a_run_without_a_hunt_says_nothing_of_modes() -> None:
    said = tp.summary(made())
    assert said.modes is None
    assert "modes" not in said.facts
    assert not [words for words in said.notes if "mode" in words]


WARNINGS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a mode that no chain visited": (
        {"share": [0.0, 1.0], "error": [0.0, 0.0], "entries": [0, 0]},
        ["mode 0 (x = -4, 0.125) holds about 30%", "mode 1 (x = 4, 1) has 100.0% of the draws"],
    ),
    "not visited, and the other share is not known well": (
        {"share": [0.0, 1.0], "error": [0.0, 0.1], "reference_error": [0.06, 0.1]},
        ["no chain visited it"],
    ),
    "shares that contradict": (
        {"share": [0.5, 0.5]},
        ["mode 0 (x = -4, 0.125) has 50.0% of the draws, and 30.0% of the mass", "mode 1"],
    ),
    "log evidence that differs": (
        {"bridge": 1.5},
        ["log evidence from the rungs and from a bridge to the reference differ by 0.50"],
    ),
}
SILENT: dict[str, dict[str, Any]] = {
    "shares within their errors": {"share": [0.4, 0.6], "error": [0.04, 0.04]},
    "log evidence within its errors": {"bridge": 1.4, "bridge_error": 0.2},
    "a small mode that was not visited": {
        "share": [0.0, 1.0], "error": [0.0, 0.0], "reference_share": [0.01, 0.99],
    },
}  # fmt: skip


@pytest.mark.parametrize("case", WARNINGS)
def test_each_warning_is_given_where_it_is_due(case: str) -> None:
    changes, wanted = WARNINGS[case]
    said = tp.summary(with_modes(**changes))
    assert_said(said.warnings, wanted)
    assert all("draw more" in words or "give more warm-up" in words for words in said.warnings)


@pytest.mark.parametrize("case", SILENT)
def test_what_chance_explains_is_not_warned_of(case: str) -> None:
    assert tp.summary(with_modes(**SILENT[case])).warnings == []


def test_what_a_thin_reference_says_of_shares_is_a_note() -> None:
    said = tp.summary(with_modes(share=[0.5, 0.5], bridge=1.5, tail_shape=0.9))
    assert not [words for words in said.warnings if "reference" in words]
    assert_said(said.notes, [SENTENCE, "the reference is thin in places (tail shape 0.90"])


def test_draws_that_ended_nowhere_are_counted() -> None:
    said = tp.summary(with_modes(num_missed=17))
    assert_said(said.notes, ["and 17 of them ended"])


# -- a real run ------------------------------------------------------------------------------------


def two_hills(x: Any) -> Any:
    """A quarter of the mass at -3, the rest at 3; log Z is 0."""
    left, right = jnp.sum((x["u"] + 3.0) ** 2), jnp.sum((x["u"] - 3.0) ** 2)
    logs = jnp.logaddexp(jnp.log(0.25) - 0.5 * left, jnp.log(0.75) - 0.5 * right)
    return logs - 0.5 * x["v"] ** 2 - 1.5 * jnp.log(2 * jnp.pi)


@pytest.fixture(scope="module")
def tree() -> Any:
    target = tp.Target(
        two_hills, base=tp.Gaussian(np.zeros(3), 16.0), example={"u": np.zeros(2), "v": 0.0}
    )
    return tp.sample(
        target, "pt", "metropolis", base="modes",
        num_warmup=200, num_draws=600, num_chains=4, progress=False,
    )  # fmt: skip


def test_the_group_of_a_run(tree: Any) -> None:
    group = tree["modes"].dataset
    assert {"mode": 2, "u_axis_0": 2}.items() <= dict(group.sizes).items()
    np.testing.assert_allclose(group["center_u"], [[3.0, 3.0], [-3.0, -3.0]], atol=0.1)
    np.testing.assert_allclose(group["center_v"], 0.0, atol=0.1)
    u = tree["posterior"]["u"].values
    # Shares are those of the draws, and entries are changes of mode.
    upper = u.sum(axis=-1) > 0
    np.testing.assert_allclose(group["share"], [upper.mean(), 1 - upper.mean()], atol=1e-9)
    crossed = upper[:, 1:] != upper[:, :-1]
    np.testing.assert_array_equal(
        group["entries"], [(crossed & upper[:, 1:]).sum(), (crossed & ~upper[:, 1:]).sum()]
    )
    for name, error in (("share", "error"), ("reference_share", "reference_error")):
        np.testing.assert_array_less(np.abs(group[name] - [0.75, 0.25]), 5 * group[error])
    wanted = np.log(group["reference_share"])
    np.testing.assert_allclose(group["log_evidence"], wanted, atol=0.2)


def test_the_bridge_is_an_estimate_of_log_evidence(tree: Any) -> None:
    value, error = tp.log_evidence(tree, BRIDGE)
    assert abs(value) < 5 * error < 0.3
    assert list(tree["evidence"]["estimator"].values)[-1] == BRIDGE
    other, its_error = tp.log_evidence(tree)
    assert abs(value - other) < 5 * np.hypot(error, its_error)


def test_a_real_run_is_not_warned_of_its_modes(tree: Any) -> None:
    said = tp.summary(tree)
    assert not [words for words in said.warnings if "mode" in words or "bridge" in words]
    assert [words for words in said.notes if words.startswith("a further mode would")]


@pytest.mark.parametrize("name", ["run.nc", "run.zarr"])
def test_modes_are_kept_in_files(name: str, tree: Any, tmp_path: Path) -> None:
    again = tp.load(tp.save(tree, tmp_path / name))
    xr.testing.assert_identical(again["modes"].dataset.load(), tree["modes"].dataset)
    assert tp.summary(again).notes == tp.summary(tree).notes
