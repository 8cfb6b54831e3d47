"""The public names are those of the stubs, each is what its module has, and nothing else shows."""

import ast
import copy
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import temperance
import temperance.crosscat

PACKAGES = [temperance, temperance.crosscat]
per_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)


def homes(package):
    """The module of each name in a package's stub."""
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    return {
        alias.name: f"{package.__name__}.{line.module}"
        for line in stub.body
        if isinstance(line, ast.ImportFrom) and line.module
        for alias in line.names
    }


@per_package
def test_every_public_name_is_what_its_module_has(package):
    found = homes(package)
    assert set(found) <= set(package.__all__)
    for name, module in found.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)


@per_package
def test_what_is_shown_is_public_and_listed_once(package):
    assert sorted(dir(package)) == sorted(package.__all__)
    assert len(set(package.__all__)) == len(package.__all__)


@per_package
def test_no_module_has_the_name_of_a_public_function(package):
    """Python would bind the module to the name of the function when it is imported."""
    modules = {path.stem for path in Path(package.__file__).parent.iterdir()}
    assert not modules & set(homes(package))


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_run_adds_nothing_to_what_is_shown():
    run(
        "import temperance as tp, temperance.sampling, temperance.results.summary\n"
        "before = dir(tp)\n"
        "target = tp.Target(lambda x: -0.5 * x**2, example=0.0)\n"
        "tree = tp.sample(target, 'plain', num_draws=2, num_warmup=0, progress=False)\n"
        "tp.summary(tree)\n"
        "assert dir(tp) == before == tp.__dir__() and 'samplers' not in dir(tp)"
    )


def test_submodules_are_attributes():
    run("import temperance as tp; assert tp.errors.DataError and tp.testing and tp.crosscat.Schema")


def test_a_star_brings_everything():
    brought = {}
    exec("from temperance import *", brought)
    assert set(temperance.__all__) <= set(brought)
    assert brought["sample"] is temperance.sample


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="simple"):
        temperance.simple  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'simple' from 'temperance'"):
        exec("from temperance import simple", {})
    assert not hasattr(temperance, "__wrapped__")


def test_a_missing_dependency_of_a_module_is_named():
    run(
        "import sys\n"
        "sys.modules['narwhals'] = None  # importing it raises\n"
        "import temperance as tp\n"
        "try:\n    tp.crosscat.CrossCat\n"
        "except ModuleNotFoundError as error:\n    assert 'narwhals' in str(error)\n"
        "else:\n    raise AssertionError\n"
    )


def test_a_name_can_be_replaced_and_put_back(monkeypatch):
    kept = temperance.sample
    with monkeypatch.context() as patch:
        patch.setattr(temperance, "sample", len)
        assert temperance.sample([1]) == 1
    assert temperance.sample is kept
    assert copy.copy(kept) is kept
