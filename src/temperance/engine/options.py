"""Options of a method: each declared once, with its name, type, default, check and help.

    @dataclass(frozen=True, kw_only=True)
    class Options:
        num_rungs: int | None = option(None, "number of rungs (default: chosen)", count(2))

The declaration is what a call is checked by, what the command line and the reference page show, and
what the fingerprint of a run holds: every field, with no list to keep beside them.

A check is a function of the option's name and of what was given. It returns the value as the run
uses it, or raises an `ArgumentError` that names the option. `None` stands for the default that the
method chooses, and is not checked.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from temperance._types import Options
from temperance.errors import ArgumentError, unknown_name
from temperance.problems.checks import check_count, is_number

Check = Callable[[str, Any], Any]


def option(
    default: Any,
    words: str,
    check: Check | None = None,
    *,
    formerly: str = "",
    traced: bool = False,
    kind: str = "",
) -> Any:
    """A field of a method's options.

    `formerly` is a deprecated name that still works. `traced` says that the value is a function or
    made into one, which the run's identity holds as such (`Shared.functions`). `kind` names the
    type where the annotation does not.
    """
    about = {"help": words, "check": check, "formerly": formerly, "traced": traced, "kind": kind}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Described:
    """An option as a page shows it. Where the default is None, the words say what that means."""

    name: str
    kind: str
    default: Any
    words: str


def described(options: type) -> list[Described]:
    """What each option is, as it was declared."""
    return [
        Described(one.name, _kind(one), one.default, one.metadata["help"])
        for one in fields(options)
    ]


def _kind(one: Field) -> str:
    """The type of an option, without the None that stands for a default."""
    named = one.type.__name__ if isinstance(one.type, type) else str(one.type)
    named = named.removesuffix(" | None").replace("tuple[float, ...]", "floats")
    return one.metadata["kind"] or named


def parsed(method: str, options: type, given: Mapping[str, Any]) -> Any:
    """The options of a call, checked; an unknown name is refused with the nearest known one."""
    known = {one.name: one for one in fields(options)}
    given = _renamed(method, known, given)
    for name in given:
        if name not in known:
            raise unknown_name("option", name, known or ("(none)",), f" of method {method!r}")
    return options(**{name: _checked(known[name], value) for name, value in given.items()})


def _renamed(method: str, known: Mapping[str, Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options under the names that they have now."""
    now = {one.metadata["formerly"]: name for name, one in known.items()}
    now.pop("", None)
    found: dict[str, Any] = {}
    for name, value in given.items():
        name_now = now.get(name, name)
        if name_now in found or (name_now != name and name_now in given):
            raise ArgumentError(f"{name} and {name_now}: these are the same option; give one")
        if name_now != name:
            warnings.warn(
                f"{name}= of method {method!r} is deprecated: it is called {name_now}= now",
                FutureWarning,  # which people see, unlike a DeprecationWarning
                stacklevel=2,
            )
        found[name_now] = value
    return found


def _checked(one: Field, value: Any) -> Any:
    check = one.metadata["check"]
    if value is None and one.default is None:
        return None
    return value if check is None else check(one.name, value)


def identity(options: Any) -> Options:
    """The values by name: all of them, so that a new field is part of a run's identity."""
    kept = [one.name for one in fields(options) if not one.metadata["traced"]]
    return {name: getattr(options, name) for name in kept}


def check_declared(options: type) -> None:
    """Raise if a field of an options class was not declared by `option`, or has no default."""
    for one in fields(options):
        if "help" not in one.metadata or not one.metadata["help"] or one.default is MISSING:
            raise ArgumentError(
                f"options: {one.name!r} wants option(default, words), which is what calls are "
                "checked by and what the reference shows"
            )


# -- checks --------------------------------------------------------------------------------------


def count(least: int) -> Check:
    """A whole number of at least `least`."""
    return lambda name, value: check_count(name, value, least)


def number(words: str, holds: Callable[[float], bool]) -> Check:
    """A number of which `holds` is true; `words` say which that are."""

    def check(name: str, value: Any) -> float:
        if not (is_number(value) and holds(value)):
            raise ArgumentError(f"{name}: wanted {words}, got {value!r}")
        return float(value)

    return check


def one_of(kind: str, names: Iterable[str]) -> Check:
    """One of several names; `kind` says of what."""
    known = tuple(names)

    def check(_: str, value: Any) -> str:
        if value not in known:
            raise unknown_name(kind, value, known)
        return value

    return check


def flag(words: str = "True or False", values: tuple[Any, ...] = (True, False)) -> Check:
    """One of a few values, compared by identity of type, so that 1 is not True."""

    def check(name: str, value: Any) -> Any:
        if not any(value is one for one in values):
            raise ArgumentError(f"{name}: wanted {words}, got {value!r}")
        return value

    return check
