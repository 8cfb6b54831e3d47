"""`auto`: what it chooses and why, and that the choice and the draws are the same again."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.shared import small_runs
from tests.shared.small_runs import assert_identical, make_problem, run, uninterrupted

import temperance as tp
from temperance.engine.method import Asked, Choice
from temperance.errors import ArgumentError, InterruptedRunError, UnknownNameError
from temperance.methods import METHODS, auto
from temperance.problems.problem import densities_of

AUTO = METHODS["auto"]


def choice_of(problem: Any, move: Any = None, seed: int = 0, **options: Any) -> Choice:
    assert AUTO.choose is not None
    asked = Asked(
        problem, densities_of(problem), move, options, jax.random.key(seed), progress=False
    )
    return AUTO.choose(asked, METHODS)


def two_hills(x: Any) -> Any:
    left, right = jnp.sum((x + 3.0) ** 2), jnp.sum((x - 3.0) ** 2)
    return jnp.logaddexp(jnp.log(0.2) - 0.5 * left, jnp.log(0.8) - 0.5 * right)


def one_hill(x: Any) -> Any:
    return -0.5 * jnp.sum((x - 1.0) ** 2)


def many_hills(x: Any) -> Any:
    """A mode at each whole number."""
    return jnp.sum(10.0 * jnp.cos(2 * jnp.pi * x) - 1e-3 * x**2)


def funnel(x: Any) -> Any:
    return -0.5 * (x[0] / 3) ** 2 - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) - 2.0 * x[0]


WIDE = tp.Gaussian(np.zeros(2), 16.0)
TWO, ONE = tp.Target(two_hills, WIDE), tp.Target(one_hill, WIDE)
FEW_ROWS = np.random.default_rng(0).normal(size=40)


def sign_terms(x: Any, rows: Any) -> Any:
    """Rows that know the size of a mean and not its sign."""
    return -0.5 * (jnp.abs(x["mean"][0]) + 2.0 - rows) ** 2


def tall(monkeypatch: pytest.MonkeyPatch, terms: Any) -> tp.Problem:
    monkeypatch.setattr(auto, "TALL", 40)
    monkeypatch.setattr(auto, "SAMPLE", 10)
    return make_problem(terms=terms, data=FEW_ROWS + 5.0)


# -- choices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", [None, pytest.param("metropolis", marks=pytest.mark.slow)])
def test_several_modes_are_heated_from_a_reference(move: Any) -> None:
    found = choice_of(TWO, move)
    assert (found.method, found.move) == ("pt", move)
    assert found.options["base"].num_modes == 2
    assert "the hunt found 2 modes: parallel tempering from a reference" in found.why


def test_one_mode_with_dear_gradients_is_left_to_nuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "DEAR", 1.0)
    found = choice_of(ONE)
    assert (found.method, found.move, found.options) == ("plain", "nuts", {})
    assert found.reference.num_modes == 1
    assert "the hunt found 1 mode," in found.why
    assert "a gradient takes" in found.why
    assert choice_of(ONE, "mala").move == "mala"
    # Dear or not, several modes are heated.
    assert choice_of(TWO).method == "pt"


@pytest.mark.slow
def test_one_mode_with_cheap_gradients_is_heated_a_little() -> None:
    found = choice_of(ONE)
    assert found.method == "pt"
    assert found.options["base"].barrier < auto.SHORT
    assert found.options["sweeps_per_draw"] == auto.SHORT_SWEEPS


@pytest.mark.slow
def test_more_modes_than_a_mixture_holds_are_heated_from_the_base() -> None:
    target = tp.Target(many_hills, tp.Gaussian(np.zeros(2), 100.0))
    found = choice_of(target)
    assert (found.method, found.options) == ("pt", {"base": "own"})
    assert "heat comes from the base" in found.why


@pytest.mark.slow
def test_widths_that_differ_get_steps_of_local_size() -> None:
    target = tp.Target(funnel, tp.Gaussian(np.zeros(5), np.array([9.0] + [100.0] * 4)))
    found = choice_of(target)
    assert found.method == "pt"
    assert found.move == auto.LOCAL_STEPS
    assert "steps of local size" in found.why
    assert choice_of(target, "hmc").move == "hmc"


def test_tall_data_with_two_modes_are_tempered_by_subsamples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = choice_of(tall(monkeypatch, sign_terms))
    assert (found.method, found.options) == ("spt", {})
    assert "40 rows, of which 10 were looked at: the hunt found 2 modes" in found.why


@pytest.mark.slow
def test_tall_data_with_one_mode_are_left_to_nuts(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = tall(monkeypatch, small_runs.terms)
    found = choice_of(problem)
    assert (found.method, found.move, found.options) == ("plain", "nuts", {})
    assert "the hunt found 1 mode: NUTS alone" in found.why
    assert choice_of(problem, "hmc").move == "hmc"


def test_a_sample_of_rows_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The likelihood of the sample, raised, has about the size of the whole."""
    problem = tall(monkeypatch, small_runs.terms)
    x = jnp.array([2.0, 2.5])
    whole, some = densities_of(problem), auto.sampled(problem)
    assert whole.hot is not None
    assert some.hot is not None
    assert float(some.hot(x)) == pytest.approx(float(whole.hot(x)))
    assert float(some.whole(x)) == pytest.approx(float(whole.whole(x)), rel=0.5)


def test_a_move_that_reads_few_rows_runs_alone() -> None:
    move = tp.mint(batch_size=3)
    found = choice_of(make_problem(), move)
    assert (found.method, found.move, found.reference) == ("plain", move, None)
    assert "runs alone" in found.why


@pytest.mark.parametrize("options", [{}, {"num_rungs": 3}])
def test_a_move_that_needs_the_likelihood_of_rows_is_heated_from_the_prior(options: Any) -> None:
    """On a bridge from a reference it would be refused."""
    found = choice_of(make_problem(), tp.delayed("metropolis", batch_size=2), **options)
    assert (found.method, found.options) == ("pt", {"base": "own"} | options)
    plain = choice_of(make_problem(), tp.metropolis(), **options)
    assert plain.options["base"] != "own"


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "method", "taken"),
    [
        ({"num_rungs": 3}, "pt", {"num_rungs": 3, "base": "modes"}),
        ({"base": "prior"}, "pt", {"base": "prior"}),
        ({"min_beta": 0.1}, "pt", {"min_beta": 0.1}),
        ({"sizes": (2, 6)}, "spt", {"sizes": (2, 6)}),
        ({"evidence": True}, "spt", {"evidence": True}),
    ],
)
def test_options_decide(options: Any, method: str, taken: Any) -> None:
    found = choice_of(make_problem(), **options)
    assert (found.method, found.options) == (method, taken)
    assert f"the options {sorted(options)} belong to {method}" in found.why


def test_wrong_options_are_refused_before_anything_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto, "find_reference", None)
    with pytest.raises(UnknownNameError, match=r"did you mean 'num_rungs'.*|num_rungs"):
        tp.sample(make_problem(), num_rung=3, progress=False)
    with pytest.raises(ArgumentError, match=r"'base', 'sizes'\].*say which method is meant"):
        tp.sample(make_problem(), sizes=(2, 6), base="modes", progress=False)
    with pytest.raises(ArgumentError, match="num_rungs: wanted"):
        tp.sample(make_problem(), num_rungs=1, progress=False)
    with pytest.raises(UnknownNameError, match="did you mean 'hmc'"):
        tp.sample(make_problem(), move="hcm", progress=False)


# -- runs ------------------------------------------------------------------------------------------


def test_it_is_the_default_and_says_why() -> None:
    tree = uninterrupted("auto")
    assert tree.attrs["method"] == "pt"
    assert tree.attrs["why"].startswith("the hunt found 1 mode: parallel tempering")
    said = tp.summary(tree)
    assert said.facts["why"] == tree.attrs["why"]
    assert f"why: {tree.attrs['why']}" in str(said)
    default = tp.sample(make_problem(), move="metropolis", **small_runs.SHORT)
    assert_identical(default, tree)
    assert "why" not in uninterrupted("plain").attrs


@pytest.mark.slow
def test_other_seeds_give_other_draws() -> None:
    other = run("auto", seed=1)["posterior"]["mean"].values
    assert (other != uninterrupted("auto")["posterior"]["mean"].values).all()


def test_a_resumed_run_has_the_same_draws(tmp_path: Path) -> None:
    path = tmp_path / "run.zarr"
    with pytest.raises(InterruptedRunError):
        run("auto", checkpoint=path, max_seconds=1e-9)
    run("auto", checkpoint=path, num_draws=7)
    assert_identical(run("auto", checkpoint=path), uninterrupted("auto"))


@pytest.mark.slow
def test_nuts_alone_begins_at_the_reference_and_has_log_evidence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto, "DEAR", 1.0)
    options: dict[str, Any] = {"num_warmup": 100, "num_draws": 200, "progress": False}
    tree = tp.sample(ONE, **options)
    assert tree.attrs["method"] == "plain"
    value, error = tp.log_evidence(tree)
    assert abs(value - np.log(2 * np.pi)) < 5 * error + 1e-3 < 0.3
    assert list(tree["evidence"]["estimator"].values) == ["reference"]
    assert tree["modes"].sizes["mode"] == 1
    assert_identical(tp.sample(ONE, **options), tree)


@pytest.mark.slow
def test_two_modes_of_unequal_widths_get_their_shares(seed: int) -> None:
    """What parallel tempering from the base gets wrong without a word."""

    def unequal(x: Any) -> Any:
        wide, narrow = jnp.sum((x + 3.0) ** 2), jnp.sum((x - 3.0) ** 2) / 0.25**2
        return jnp.logaddexp(-0.5 * wide, -0.5 * narrow - 8 * np.log(0.25))

    target = tp.Target(unequal, tp.Gaussian(np.zeros(8), 36.0))
    tree = tp.sample(target, seed=seed, progress=False)
    share = float((tree["posterior"]["x"].sum("x_dim_0") > 0).mean())
    assert abs(share - 0.5) < 0.05
    value, error = tp.log_evidence(tree)
    assert abs(value - np.log(2) - 4 * np.log(2 * np.pi)) < 5 * error < 0.5
    assert not [words for words in tp.summary(tree).warnings if "mode" in words]
