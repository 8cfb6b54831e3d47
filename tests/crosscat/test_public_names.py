"""`temperance.crosscat` offers the names of its stub, and imports them when they are used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import temperance.crosscat

STUB = ast.parse(Path(temperance.crosscat.__file__).with_suffix(".pyi").read_text())
HOMES = {
    alias.name: f"temperance.crosscat.{line.module}"
    for line in STUB.body
    if isinstance(line, ast.ImportFrom)
    for alias in line.names
}


def test_every_public_name_is_what_its_module_has():
    assert sorted(HOMES) == sorted(temperance.crosscat.__all__)
    for name, module in HOMES.items():
        found = getattr(importlib.import_module(module), name)
        assert getattr(temperance.crosscat, name) is found


def test_only_public_names_are_listed():
    assert sorted(dir(temperance.crosscat)) == sorted(temperance.crosscat.__all__)


def test_no_module_has_the_name_of_a_public_one():
    folder = Path(temperance.crosscat.__file__).parent
    assert not {path.stem for path in folder.iterdir()}.intersection(temperance.crosscat.__all__)


def test_a_star_brings_everything():
    brought = {}
    exec("from temperance.crosscat import *", brought)
    assert set(temperance.crosscat.__all__) <= set(brought)


def test_an_unknown_name_is_an_error():
    with pytest.raises(AttributeError, match=r"temperance\.crosscat"):
        temperance.crosscat.simple  # noqa: B018


def test_a_missing_dependency_is_named():
    program = """
import sys
sys.modules["numba"] = None  # importing it raises
import temperance.crosscat.estimator
try:
    import temperance.crosscat.compilation
except ModuleNotFoundError as error:
    assert "numba" in str(error)
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
