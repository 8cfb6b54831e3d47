"""Nobody outside of `methods/` holds a method's name, so that a method is one file and one line.

What calls `sample` may name a method, as users do: its default, the command line's, that of
`bootstrap`, and the demo. `mint` is the name of a move, too, and `auto` a choice of other things.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import temperance
from temperance.methods import METHODS

SOURCE = Path(temperance.__file__).parent
CALLERS = {
    "sampling.py": {"auto"},
    "cli/__init__.py": {"auto"},
    "bases/bootstrap.py": {"gibbs-ct"},
    "cli/demo/few_rows.py": {"plain", "tt"},
    "cli/demo/many_rows.py": {"plain", "pt", "spt", "stt"},
}
NAMES_OF_MOVES = {"mint"}
# What other things than methods are chosen of their own accord.
OTHER_CHOICES = {
    "cli/demo/figures.py": {"auto"},
    "models/gaussian_process/fast_regression.py": {"auto"},
    "reports/crosscat_figures.py": {"auto"},
}


def literals(source: str) -> Iterator[str]:
    """Every text in a program that is a method's name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in METHODS:
            yield str(node.value)


def holders() -> dict[str, set[str]]:
    """The names that files outside of `methods/` hold."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE)
        if place.parts[0] != "methods":
            held = set(literals(path.read_text()))
            moves = NAMES_OF_MOVES if place.parts[0] == "moves" else set()
            found[place.as_posix()] = held - moves - OTHER_CHOICES.get(place.as_posix(), set())
    return {place: held for place, held in found.items() if held}


def test_only_callers_of_sample_name_methods() -> None:
    assert holders() == CALLERS


def test_a_dispatch_on_a_name_is_noticed() -> None:
    assert list(literals("if method == 'spt':\n    pass")) == ["spt"]
    assert list(literals("COST = {'gibbs-ct': 4, 'other': 1}")) == ["gibbs-ct"]


FILES = {path.stem for path in (SOURCE / "methods").glob("*.py")} - {"__init__"}


def test_a_method_is_a_file_of_its_name() -> None:
    assert {name.replace("-", "_") for name in METHODS} == FILES


def test_the_contract_keeps_all_methods_apart() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    contracts = {one["id"]: one for one in settings["tool"]["importlinter"]["contracts"]}
    kept_apart = contracts["methods"]["modules"]
    assert set(kept_apart) == {f"temperance.methods.{name}" for name in FILES}
