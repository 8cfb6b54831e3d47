"""What a package offers, imported when it is first asked for.

A package says `from package.module import name` under TYPE_CHECKING, where editors and type
checkers read it, and `offer` reads the same lines: they are the one place that says where a name
lives. Submodules are reached as attributes too.

A name that is offered wins over a submodule of that name. `temperance.sample` is the function,
also after `import temperance.sample`, by which Python would bind the submodule there.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


class Face(ModuleType):
    """A package that imports what it offers at the first use."""

    __homes__: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name not in self.__homes__:
            return self._submodule(name)
        found = getattr(import_module(self.__homes__[name]), name)
        self.__dict__[name] = found
        return found

    def _submodule(self, name: str) -> ModuleType:
        path = f"{self.__name__}.{name}"
        try:
            return import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in self.__homes__):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self.__homes__})


def homes(source: str) -> dict[str, str]:
    """The module of each name that a source imports under `if TYPE_CHECKING`."""
    guarded = [
        line
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
    ]
    return {
        alias.name: line.module
        for line in guarded
        if isinstance(line, ast.ImportFrom) and line.module
        for alias in line.names
    }


def offer(package: str) -> None:
    """Let a package offer what it imports under `if TYPE_CHECKING`. Its last line calls this."""
    module = sys.modules[package]
    module.__dict__["__homes__"] = homes(Path(str(module.__file__)).read_text("utf-8"))
    module.__class__ = Face
