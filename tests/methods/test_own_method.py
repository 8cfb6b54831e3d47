"""A method of one's own, made of public names: it runs as itself, and never as another one."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import pytest
from tests.shared import small_runs
from typer.testing import CliRunner

import temperance as tp
from temperance import methods
from temperance.cli import app
from temperance.engine.fingerprint import differences, fingerprint
from temperance.engine.options import parsed
from temperance.errors import ArgumentError, CheckpointError, InterruptedRunError, UnknownNameError
from temperance.moves.named import move_named
from temperance.problems.problem import densities_of
from temperance.testing import CurvedGamma


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(methods.SwapOptions, methods.PowerOptions):
    """Those of `pt`."""

    sweeps_per_draw: int = methods.sweeps(8)


def prepare(call: methods.Call) -> methods.PowerRungs:
    """As `pt` does."""
    methods.need_base(call)
    given = call.options
    methods.check_agreement(given.num_rungs, given.betas, "betas")
    return methods.PowerRungs(
        call, given.betas, given.num_rungs, given.min_beta, given.scheme, given.swap_rounds
    )


# A copy of `pt`, made of what `temperance.methods` offers.
OWN: dict[str, Any] = {
    "name": "own",
    "summary": "parallel tempering, once more",
    "options": Options,
    "prepare": prepare,
    "stages": (methods.PowerPilot(), methods.WarmUp(), methods.Draw()),
    "report": methods.Report(
        (methods.Draws(), methods.Rungs(), methods.Swaps(), methods.RungEvidence())
    ),
    "sampler": tp.ParallelTempering,
    "ladder": tp.AbstractLadder,
}
# Of each option, a value that is not its default.
OTHERS: dict[str, Any] = {
    "num_rungs": 5,
    "betas": (0.0, 0.5, 1.0),
    "min_beta": 0.01,
    "scheme": "seo",
    "swaps_per_sweep": 3,
    "sweeps_per_draw": 1,
}


@pytest.fixture
def own() -> Iterator[tp.Method]:
    """The method, known to `sample` for the time of a test."""
    method = methods.register(tp.Method(**OWN))
    yield method
    del methods.METHODS[method.name]


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Types as a user gives them: what is tested is what the package says, and not beartype."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def test_all_that_is_offered_is_there() -> None:
    assert all(hasattr(methods, name) for name in methods.__all__)
    assert tp.Method is methods.Method


@pytest.mark.usefixtures("own")
def test_a_copy_of_pt_draws_what_pt_draws() -> None:
    tree = small_runs.run("pt", method="own")
    small_runs.assert_identical(tree, small_runs.uninterrupted("pt"))
    assert tree.attrs["method"] == "own"
    facts = tp.summary(tree).facts
    assert {"rungs", "swap acceptance", "log evidence (mbar)"} <= set(facts)


@pytest.mark.usefixtures("own")
def test_another_default_changes_the_draws() -> None:
    """The twin of the test above: equal draws are not equal whatever the method does."""
    other = small_runs.run("pt", method="own", swaps_per_sweep=1)
    with pytest.raises(AssertionError):
        small_runs.assert_identical(other, small_runs.uninterrupted("pt"))


@pytest.mark.parametrize("part", [part for part in OWN if part != "name"])
def test_a_method_without_a_part_is_refused(part: str) -> None:
    without = {name: value for name, value in OWN.items() if name != part}
    with pytest.raises(TypeError, match=rf"missing .* argument: '{part}'"):
        tp.Method(**without)


@dataclasses.dataclass(frozen=True)
class NotDeclared:
    num_rungs: int = 3


@dataclasses.dataclass(frozen=True)
class WithoutDefault:
    num_rungs: int = methods.option(dataclasses.MISSING, "number of rungs")


@dataclasses.dataclass(frozen=True)
class WithoutWords:
    num_rungs: int = methods.option(3, "")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": ""}, "wanted a name and a summary"),
        ({"name": None}, "wanted a name and a summary"),
        ({"summary": None}, "wanted a name and a summary"),
        ({"options": {}}, "options: wanted a dataclass, got {}"),
        ({"options": dict}, "options: wanted a dataclass, got <class 'dict'>"),
        ({"options": Options()}, r"options: wanted a dataclass, got Options\("),
        ({"options": NotDeclared}, "options: 'num_rungs' wants option"),
        ({"options": WithoutDefault}, "options: 'num_rungs' wants option"),
        ({"options": WithoutWords}, "options: 'num_rungs' wants option"),
        ({"prepare": None}, "prepare: wanted a function, got None"),
        ({"stages": ()}, "stages: the last one has to be one that draws"),
        ({"stages": (methods.WarmUp(),)}, "stages: the last one has to be one that draws"),
        ({"stages": (methods.Draw(), methods.WarmUp())}, "stages: the last one has to be one"),
        ({"stages": (methods.Draw,)}, "stages: wanted Stages, got <class"),
        ({"report": None}, "report: .* got None, which lacks arrays, stats, evidence, facts"),
        ({"report": methods.Draws()}, "report: .*, which lacks work"),
        ({"sampler": None}, "sampler: wanted a class"),
        ({"ladder": "powers"}, "ladder: wanted a class"),
    ],
)
def test_a_part_of_the_wrong_kind_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        tp.Method(**OWN | change)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("name", ["pt", "own"])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    known = dict(methods.METHODS)
    with pytest.raises(ArgumentError, match=f"method '{name}': this name is taken"):
        methods.register(tp.Method(**OWN | {"name": name}))
    assert known == methods.METHODS


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_method_is_not_registered() -> None:
    known = dict(methods.METHODS)
    with pytest.raises(ArgumentError, match="method: wanted a Method, got"):
        methods.register(prepare)
    assert known == methods.METHODS


def test_a_name_that_is_not_registered_is_unknown() -> None:
    with pytest.raises(UnknownNameError, match="own"):
        small_runs.run("pt", method="own")


@pytest.mark.usefixtures("own")
def test_wrong_options_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"option '\w+' of method 'own'.*num_rungs"):
        small_runs.run("pt", method="own", num_rung=3)
    with pytest.raises(ArgumentError, match="num_rungs is 3, but there are 2 betas"):
        small_runs.run("pt", method="own", num_rungs=3, betas=(0.0, 1.0))


def test_its_options_are_listed(own: tp.Method) -> None:
    said = CliRunner().invoke(app, ["methods"]).output
    assert own.name in said
    assert "parallel tempering, once more" in " ".join(said.split())


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(("one", "other"), [("own", "pt"), ("pt", "own")])
def test_a_checkpoint_is_not_another_methods(one: str, other: str, tmp_path: Path) -> None:
    path = tmp_path / "run.zarr"
    with pytest.raises(InterruptedRunError):
        small_runs.run("pt", method=one, checkpoint=path, max_seconds=1e-9)
    said = f'\'method\': "{one}" in the checkpoint, "{other}" now'
    with pytest.raises(CheckpointError, match=said):
        small_runs.run("pt", method=other, checkpoint=path)


def parts_of(own: tp.Method, **options: Any) -> dict[str, str]:
    """The fingerprint of a call with these options."""
    problem = small_runs.make_problem()
    call = methods.Call(
        problem, densities_of(problem), move_named("metropolis", own.move),
        parsed(own.name, own.options, options),
        num_chains=2, num_warmup=60, num_draws=40, key=jax.random.key(0), method=own.name,
    )  # fmt: skip
    shared = own.prepare(call)
    return fingerprint(shared.functions(), problem.data, shared.identity(), 0)


def test_every_option_is_tested() -> None:
    assert set(OTHERS) == {field.name for field in dataclasses.fields(Options)}


@pytest.mark.parametrize("name", OTHERS)
def test_each_option_is_part_of_the_fingerprint(name: str, own: tp.Method) -> None:
    found = differences(parts_of(own), parts_of(own, **{name: OTHERS[name]}))
    assert len(found) == 1
    assert f"the option {name!r}" in found[0]


class OneRule(tp.ParallelTempering):
    """Parallel tempering with a rule of its own for swaps: the first pair alone."""

    def swap_once(self, key, increments, parity):
        pairs = jnp.arange(increments.shape[1])
        return methods.swap_pairs(jax.random.uniform(key, pairs.shape), increments, pairs == 0)


def test_a_rule_for_swaps_is_what_swaps() -> None:
    """The pair that is compared swaps, in whatever round, and no other one."""
    ladder = CurvedGamma().ladder([0.0, 0.3, 1.0])
    params = tp.Params(jnp.ones((3, 1)), jnp.ones((3, 2)))
    sampler = OneRule(ladder, tp.metropolis(), params, swaps_per_sweep=3)
    states = jax.vmap(sampler.init)(jax.random.normal(jax.random.key(1), (50, 2)))
    _, info = jax.vmap(sampler.step)(jax.random.split(jax.random.key(0), 50), states)
    assert info.swapped[:, 0].any()
    assert not info.swapped[:, 1].any()


def test_a_rule_for_powers_is_refused_on_subsamples() -> None:
    problem = small_runs.make_problem()
    ladder = tp.PrefixLadder.of(problem, [2, problem.num_rows])
    d = densities_of(problem).layout.dimension
    with pytest.raises(ArgumentError, match="OneRule: swap_once is a rule for ladders of powers"):
        OneRule(ladder, tp.metropolis(), tp.Params(jnp.ones((2, 1)), jnp.ones((2, d))))


def test_a_sampler_by_hand_gets_the_report_of_the_nearest_class() -> None:
    ladder = CurvedGamma().ladder([0.0, 0.3, 1.0])
    params = tp.Params(jnp.ones((3, 1)), jnp.ones((3, 2)))
    method = methods.register(tp.Method(**OWN | {"name": "one-rule", "sampler": OneRule}))
    try:
        assert methods.method_like(OneRule(ladder, tp.metropolis(), params)) is method
        plain = tp.ParallelTempering(ladder, tp.metropolis(), params)
        assert methods.method_like(plain).name == "pt"
    finally:
        del methods.METHODS["one-rule"]


def test_a_result_of_a_method_that_is_not_registered_says_so(own: tp.Method) -> None:
    tree = small_runs.run("pt", method="own")
    assert not [words for words in tp.summary(tree).warnings if "not registered" in words]
    methods.METHODS.pop("own")
    try:
        assert any("'own' is not registered" in words for words in tp.summary(tree).warnings)
    finally:
        methods.METHODS["own"] = own


@pytest.mark.usefixtures("own")
def test_a_result_without_a_method_is_not_called_unregistered() -> None:
    """Such as a tree that somebody has put together."""
    tree = small_runs.run("pt", method="own")
    del tree.attrs["method"], tree.attrs["report"]
    assert not [words for words in tp.summary(tree).warnings if "not registered" in words]
