"""Options as they are declared: checked, renamed, described, and all in a run's identity."""

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest
from tests.shared import small_runs

from temperance.engine.options import (
    check_declared,
    count,
    described,
    flag,
    identity,
    number,
    one_of,
    option,
    parsed,
)
from temperance.errors import ArgumentError, UnknownNameError
from temperance.methods import METHODS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Few:
    least: float = option(
        0.5, "the least of something", number("above 0", lambda x: x > 0), formerly="minimum"
    )
    num_parts: int | None = option(None, "how many (default: as many as there are)", count(2))
    scheme: str = option("one", "which", one_of("scheme", ("one", "two")))
    both: Any = option(False, "both of them", flag(), kind="yes or no", traced=True)


RENAMED = [
    ("pt", "min_beta", 0.01),
    ("tt", "min_beta", 0.01),
    ("spt", "min_rows", 2),
    ("spt", "min_rows", 0.5),
    ("stt", "min_rows", 2),
    ("ee", "max_temperature", 30.0),
    ("mintee", "max_temperature", 30.0),
]


def test_what_is_declared_is_what_is_described() -> None:
    first, second, third, fourth = described(Few)
    assert dataclasses.astuple(first) == ("least", "float", 0.5, "the least of something")
    assert (second.kind, second.default) == ("int", None)
    assert (third.kind, third.default) == ("str", "one")
    assert fourth.kind == "yes or no"


def test_all_values_but_functions_are_the_identity() -> None:
    assert identity(Few(num_parts=3)) == {"least": 0.5, "num_parts": 3, "scheme": "one"}


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"least": 0.0}, ArgumentError, "least: wanted above 0, got 0.0"),
        ({"least": None}, ArgumentError, "least: wanted above 0, got None"),
        ({"num_parts": 1}, ArgumentError, "num_parts"),
        ({"scheme": "ones"}, UnknownNameError, "one"),
        ({"both": 1}, ArgumentError, "both: wanted True or False, got 1"),
        ({"leest": 1.0}, UnknownNameError, "least"),
    ],
)
def test_wrong_values_are_refused(given: dict[str, Any], error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        parsed("few", Few, given)


def test_none_is_the_default_that_a_method_chooses() -> None:
    assert parsed("few", Few, {"num_parts": None}) == Few()


def test_every_method_declares_its_options() -> None:
    for method in METHODS.values():
        check_declared(method.options)


def test_every_renamed_option_is_tested_here() -> None:
    found = {
        (method.name, field.name)
        for method in METHODS.values()
        for field in dataclasses.fields(method.options)
        if field.metadata["formerly"]
    }
    assert found == {(name, option) for name, option, _ in RENAMED}


@pytest.mark.parametrize(("method", "name", "value"), RENAMED)
def test_the_former_name_works_and_warns(method: str, name: str, value: Any) -> None:
    options = METHODS[method].options
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        now = parsed(method, options, {name: value})
    says = rf"hottest= of method '{method}' is deprecated: it is called {name}= now"
    with pytest.warns(FutureWarning, match=says):
        before = parsed(method, options, {"hottest": value})
    assert before == now


@pytest.mark.parametrize(("method", "name", "value"), RENAMED)
@pytest.mark.parametrize("turned", [False, True])
def test_both_names_are_one_too_many(method: str, name: str, value: Any, turned: bool) -> None:
    both = {"hottest": value, name: value}
    given = dict(reversed(both.items())) if turned else both
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        with pytest.raises(ArgumentError, match=f"hottest and {name}: these are the same option"):
            parsed(method, METHODS[method].options, given)


def test_a_run_by_the_former_name_is_the_same_run() -> None:
    short: dict[str, Any] = {"betas": None, "num_rungs": 3, "num_warmup": 20}
    with pytest.warns(FutureWarning, match="it is called min_beta= now"):
        before = small_runs.run("tt", hottest=0.1, **short)
    now = small_runs.run("tt", min_beta=0.1, **short)
    small_runs.assert_identical(now, before)
    assert np.isclose(float(now["tempering"]["beta"][0]), 0.1)
