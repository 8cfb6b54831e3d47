"""The page of a run: it stands alone, says what the summary says, and disturbs nobody."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest
from tests.shared.pages import assert_alone

import temperance as tp
from temperance.errors import ArgumentError
from temperance.reports import page
from temperance.reports.run_figures import MOST_VARIABLES, scalars, worst_first

COUNTS = {"num_draws": 60, "num_warmup": 60, "num_chains": 2, "progress": False}


def log_density(x):
    sides = jnp.stack([-jnp.sum((x["a"] + 3) ** 2), -jnp.sum((x["a"] - 3) ** 2)])
    return jax.nn.logsumexp(sides) - jnp.sum(x["b"] ** 2)


def target() -> tp.Target:
    example = {"a": np.zeros(()), "b": np.zeros(2)}
    return tp.Target(log_density, base=tp.Gaussian([0.0, 0.0, 0.0], 9.0), example=example)


@pytest.fixture(scope="module")
def trees():
    methods = {"plain": {}, "pt": {"num_rungs": 4}, "tt": {"num_rungs": 4}}
    return {
        name: tp.sample(target(), name, "metropolis", **COUNTS, **options)
        for name, options in methods.items()
    }


@pytest.mark.parametrize("method", ["plain", "pt", "tt"])
def test_a_page_stands_alone_and_says_what_the_summary_says(trees, method: str, tmp_path: Path):
    saved = tp.load(tp.save(trees[method], tmp_path / "run.nc"))
    path = tp.report(saved, tmp_path / "run.html")
    html = path.read_text(encoding="utf-8")
    assert_alone(html)
    said = tp.summary(saved)
    for words in said.warnings + said.notes:
        assert page.escape(words[1:]) in html
    for name in said.table.index:
        assert str(name) in html
    assert page.escape(tp.cite(saved)) in html
    assert ("Swaps accepted" in html or "The ladder" in html) == (method != "plain")
    assert ("log evidence" in html) == (method == "pt")
    if method == "pt":
        assert f"{tp.log_evidence(saved)[0]:.4f}" in html


def test_drawing_leaves_the_callers_matplotlib_alone(trees, tmp_path: Path):
    before, pyplot = dict(mpl.rcParams), "matplotlib.pyplot" in sys.modules
    tp.report(trees["pt"], tmp_path / "run.html")
    assert dict(mpl.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) == pyplot


def test_what_is_not_a_run_is_refused(tmp_path: Path):
    with pytest.raises(ArgumentError, match="wanted what `sample` or `load` returns"):
        tp.report([1, 2, 3], tmp_path / "run.html")


def test_text_is_escaped():
    html = page.page("<b>", "a & b", [page.section("<i>", page.table(["<u>"], [["<s>"]]))], "<p>")
    for raw in ("<b>", "<i>", "<u>", "<s>", "a & b"):
        assert raw not in html
    assert "&lt;b&gt;" in html


def test_no_warnings_is_said_too():
    assert "No warnings" in page.warnings([])
    assert "<li>Chains disagree.</li>" in page.warnings(["chains disagree"])


def test_notes_are_said_apart_and_only_if_there_are_any():
    assert page.notes([]) == ""
    assert "<li>The base has no moments.</li>" in page.notes(["the base has no moments"])


def test_many_variables_show_those_that_disagree_most(trees):
    found = scalars(trees["plain"]["posterior"].dataset)
    assert [name for name, _ in found] == ["a", "b[0]", "b[1]"]
    many = [(str(i), values) for i in range(6) for _, values in found]
    apart = found[1][1].copy()
    apart[0] += 100
    chosen = worst_first([*many, ("apart", apart)])
    assert len(chosen) == MOST_VARIABLES
    assert chosen[0][0] == "apart"
