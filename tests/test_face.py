"""A package offers what it says under TYPE_CHECKING, and an offered name wins over a submodule."""

import copy
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import temperance
import temperance.crosscat
from temperance.face import homes

PACKAGES = [temperance, temperance.crosscat]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_offered_name_is_what_its_module_has(package):
    found = homes(Path(package.__file__).read_text())
    assert sorted({*found, "__version__"} if package is temperance else found) == package.__all__
    assert set(package.__all__) <= set(dir(package))
    for name, module in found.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)


def shadowed():
    folder = Path(temperance.__file__).parent
    modules = {path.stem for path in folder.iterdir()}
    return sorted(modules.intersection(temperance.__all__))


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_function_wins_over_the_submodule_of_its_name():
    assert {"sample", "report", "summary", "cite"} <= set(shadowed())
    lines = ["import sys, types, temperance"]
    for name in shadowed():
        lines += [
            f"import temperance.{name}",
            f"assert isinstance(temperance.{name}, types.FunctionType)",
            f"from temperance import {name}",
            f"assert {name} is temperance.{name}",
            f"assert isinstance(sys.modules['temperance.{name}'], types.ModuleType)",
        ]
    run("\n".join(lines))


def test_submodules_are_attributes():
    run("import temperance as tp; assert tp.errors.DataError is tp.crosscat.schema.DataError")


def test_a_star_brings_everything():
    brought = {}
    exec("from temperance import *", brought)
    assert set(temperance.__all__) <= set(brought)
    assert brought["sample"] is temperance.sample


def test_what_is_not_there_is_said_as_python_says_it():
    with pytest.raises(AttributeError, match="module 'temperance' has no attribute 'simple'"):
        temperance.simple  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'simple' from 'temperance'"):
        exec("from temperance import simple", {})
    assert not hasattr(temperance, "__wrapped__")


def test_a_missing_dependency_of_a_submodule_is_named():
    program = """
import sys
sys.modules["numba"] = None  # importing it raises
import temperance.crosscat
try:
    temperance.crosscat.compiled
except ModuleNotFoundError as error:
    assert "numba" in str(error)
else:
    raise AssertionError
"""
    run(program)


def test_a_name_can_be_replaced_and_put_back(monkeypatch):
    kept = temperance.sample
    with monkeypatch.context() as patch:
        patch.setattr(temperance, "sample", len)
        assert temperance.sample([1]) == 1
    assert temperance.sample is kept
    assert copy.copy(kept) is kept


def test_only_guarded_imports_are_read():
    source = "from a.b import c\nif TYPE_CHECKING:\n    from a.d import e, f\n    import g\n"
    assert homes(source) == {"e": "a.d", "f": "a.d"}
