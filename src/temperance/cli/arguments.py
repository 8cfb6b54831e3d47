"""What the command line is given, as values: settings, a move, the problem itself.

Text becomes values as Python literals only; the one thing that is executed is the user's own model.
"""

import ast
import contextlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from temperance.errors import ArgumentError, TemperanceError, unknown_name


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """`name=value` pairs; values are Python literals, and anything else is text."""
    found = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not (equals and name.strip().isidentifier()):
            raise ArgumentError(f"--set: wanted name=value, got {setting!r}")
        try:
            found[name.strip()] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name.strip()] = text
    return found


def parse_move(text: str) -> Any:
    """A move by name, or by a call with literal keywords; nothing is evaluated."""
    if "(" not in text:
        return text
    from temperance.methods.methods import MOVES

    wanted = f"--move: wanted a name or a call such as 'hmc(num_steps=10)', got {text!r}"
    try:
        call = ast.parse(text, mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)) or call.args:
            raise ArgumentError(wanted)
        options = {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ArgumentError(wanted) from error
    name = call.func.id
    if name not in MOVES:
        raise unknown_name("move", name, MOVES)
    try:
        return MOVES[name](**options)
    except TypeError as error:
        raise ArgumentError(f"--move: {error}") from error


def load_problem(place: str) -> Any:
    """The Problem or Target at `file.py:name` or `package.module:name`."""
    source, colon, name = place.rpartition(":")
    if not colon or name.startswith(("/", "\\")):
        source, name = place, "problem"
    module = _load_file(Path(source)) if source.endswith(".py") else _load_module(source)
    from temperance.problems.problem import Problem, Target

    if not hasattr(module, name):
        able = [
            word
            for word, value in vars(module).items()
            if isinstance(value, Problem | Target)
            or (inspect.isfunction(value) and value.__module__ == module.__name__)
        ]
        raise unknown_name(f"name in {source}:", name, able)
    found = getattr(module, name)
    if callable(found) and not isinstance(found, Problem | Target):
        with _user_code(f"{place}()"):
            found = found()
    if not isinstance(found, Problem | Target):
        raise ArgumentError(
            f"{place}: wanted a Problem or a Target, or a function that returns one, got "
            f"{type(found).__name__}"
        )
    return found


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise ArgumentError(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As for a script: its neighbours can be imported, and its own classes found again.
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules.setdefault(path.stem, module)
    with _user_code(str(path)):
        spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    try:
        missing = importlib.util.find_spec(name) is None
    except (ImportError, ValueError):
        missing = True
    if missing:
        raise ArgumentError(f"{name}: there is no such module; a file's name ends in .py")
    with _user_code(name):
        return importlib.import_module(name)


@contextlib.contextmanager
def _user_code(place: str) -> Iterator[None]:
    """A mistake in the user's own code is said with its line, not with our frames."""
    try:
        yield
    except TemperanceError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        line = error.lineno if isinstance(error, SyntaxError) else last.lineno
        raise ArgumentError(
            f"{place}: failed with {type(error).__name__} at {Path(last.filename).name}:{line}: "
            f"{error}"
        ) from error
