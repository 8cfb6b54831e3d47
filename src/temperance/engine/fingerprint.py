"""The identity of a run by its content: equal if and only if continuing it makes sense.

A model function is identified by the program JAX traces from it (its jaxpr) and by the values it
closes over, never by its name, its address or the file it stands in; data by their bytes; a source
of rows, which may not be read whole, by its shape, its dtype and the bytes of a few rows; options
by their values. Every part is kept apart, so that two runs that differ can be told apart in words.

What a jaxpr does not show is not seen: the backward rule of a `custom_vjp` or `custom_jvp`
function (fingerprint its gradient as a function of its own where that matters), and what the code
of a host callback reads from the outside other than by closing over it.
"""

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from types import CodeType, FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from temperance._types import Options
from temperance._version import __version__
from temperance.errors import ArgumentError, DataError
from temperance.rows.in_programs import RemoteRows
from temperance.rows.source import RowSource, spaced_rows

_ADDRESS = re.compile(r"0x[0-9a-fA-FX]+")
# Names of jitted and custom-rule functions, as a jaxpr prints them: renaming changes no draw.
_LABEL = re.compile(r"\b(name|jvp|fwd|bwd)=[\w<>.]+")
_SHOWN = 8
# Rows of a source that are looked at.
_SAMPLED = 32


def fingerprint(
    functions: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]],
    data: PyTree,
    options: Options,
    seed: PyTree,
) -> dict[str, str]:
    """The parts of a run's identity, by name; the same in every process that makes the same call.

    `functions` maps a name to a function and the arguments to trace it with, which may be
    `jax.ShapeDtypeStruct`s: only their shapes and dtypes count. `seed` is a number or a key.
    """
    parts = {
        "package": __version__,
        "jax": jax.__version__,
        "x64": json.dumps(bool(jax.config.read("jax_enable_x64"))),
        "seed": _normal(seed, "seed"),
    }
    for name, (function, arguments) in functions.items():
        parts[f"model:{name}"] = _describe_function(function, arguments)
    parts |= _describe_data(data)
    for name, value in options.items():
        parts[f"option:{name}"] = _normal(value, name)
    return dict(sorted(parts.items()))


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What differs between two fingerprints, one line of words for each part; empty if nothing."""
    names = sorted(set(old) | set(new))
    return [_in_words(n, old.get(n), new.get(n)) for n in names if old.get(n) != new.get(n)]


def _in_words(part: str, old: str | None, new: str | None) -> str:
    kind, _, name = part.partition(":")
    what = {
        "package": "the version of temperance",
        "jax": "the version of JAX",
        "x64": "whether 64-bit numbers are enabled",
        "seed": "the seed",
        "option": f"the option {name!r}",
        "model": f"the model function {name!r}",
        "data": f"the data {name}" if name else "the structure of the data",
    }.get(kind, f"the part {part!r}")
    if kind in ("model", "data") and old is not None and new is not None:
        return f"{what}: {_what_changed(kind, old, new)}"
    return f"{what}: {_shown(old)} in the checkpoint, {_shown(new)} now"


def _what_changed(kind: str, old: str, new: str) -> str:
    (old_form, old_bytes), (new_form, new_bytes) = old.rsplit(" ", 1), new.rsplit(" ", 1)
    if old_form == new_form:
        return "other values of what it closes over" if kind == "model" else "other values"
    if kind == "data":
        return f"{old_form} in the checkpoint, {new_form} now"
    same = old_bytes == new_bytes
    return "another formula" if same else "another formula, or other values it closes over"


def _shown(value: str | None) -> str:
    return "absent" if value is None else value


# -- models --------------------------------------------------------------------------------------


def _describe_function(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    closed = jax.make_jaxpr(function)(*arguments)
    # Colour and source lines depend on the terminal and on the caller's files.
    text = closed.pretty_print(source_info=False, name_stack=False, use_color=False)
    constants = hashlib.sha256()
    for constant in _constants(closed):
        constants.update(constant.encode())
    return f"{_sha256(_scrub(text).encode())} {constants.hexdigest()}"


def _scrub(text: str) -> str:
    return _LABEL.sub(r"\1=", _ADDRESS.sub("0x", text))


def _constants(jaxpr: Any) -> Iterator[str]:
    """Every value a jaxpr holds that its text does not print, in the order of its equations."""
    for constant in getattr(jaxpr, "consts", ()):
        yield _describe_array(constant)
    for equation in jaxpr.eqns:
        for variable in equation.invars:
            if np.ndim(getattr(variable, "val", 0)):
                yield _describe_array(variable.val)
        for name, value in sorted(equation.params.items()):
            yield from _constants_of_parameter(name, value)


def _constants_of_parameter(name: str, value: Any) -> Iterator[str]:
    for leaf in jax.tree.leaves(value, is_leaf=lambda leaf: hasattr(leaf, "eqns")):
        if hasattr(leaf, "eqns"):
            yield from _constants(leaf)
        elif isinstance(leaf, np.ndarray | jax.Array):
            yield _describe_array(leaf)
        elif "callback" in name and callable(leaf):
            yield json.dumps(_describe_code(getattr(leaf, "callback_func", leaf), "a callback"))


# -- data ----------------------------------------------------------------------------------------


def _describe_data(data: PyTree) -> dict[str, str]:
    leaves, structure = jax.tree.flatten_with_path(data)
    form = re.sub(r"\s+", " ", _ADDRESS.sub("0x", str(structure)))
    parts = {"data": f"{form} {_sha256(form.encode())}"}
    for path, leaf in leaves:
        describe = _describe_source if isinstance(leaf, RowSource) else _describe_array
        parts[f"data:{jax.tree_util.keystr(path) or 'array'}"] = describe(leaf)
    return parts


def _describe_source(source: RowSource) -> str:
    return f"{_form(source)} {_sha256(spaced_rows(source, _SAMPLED).view(np.uint8).data)}"


def _describe_array(value: Any) -> str:
    array = host_array(value)
    if array.dtype.hasobject:
        # The bytes of such an array are addresses: another process would never see them again.
        raise DataError(
            f"data of dtype {array.dtype} (such as {value!r:.60}) have no bytes to compare: "
            "give arrays of numbers"
        )
    flat = np.ascontiguousarray(array).reshape(-1)
    return f"{_form(array)} {_sha256(flat.view(np.uint8).data if flat.size else b'')}"


def _form(array: np.ndarray | RowSource) -> str:
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"


def host_array(value: Any) -> np.ndarray:
    """`value` as a NumPy array, bit for bit; a typed random key as its key data."""
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


def _sha256(content: Any) -> str:
    return hashlib.sha256(content).hexdigest()


# -- options -------------------------------------------------------------------------------------


def _normal(value: Any, name: str) -> str:
    return json.dumps(_plain(value, name), sort_keys=True)


def _plain(value: Any, name: str) -> Any:
    """`value` in terms of JSON, equal for equal content."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | jax.Array):
        array = host_array(value)
        shown = array.tolist() if array.size <= _SHOWN else _describe_array(array).split()[1]
        return f"{_form(array)} {shown}"
    if isinstance(value, RemoteRows):
        return _describe_source(value.held.source)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, name) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, name) for item in value), key=repr)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
        return {"type": type(value).__qualname__} | _plain(fields, name)
    if isinstance(value, PurePath | np.dtype | type | jax.tree_util.PyTreeDef):
        return str(value)
    return _describe_code(value, f"the option {name!r}")


def _describe_code(value: Any, name: str) -> Any:
    """A function by its byte code and what it closes over: where it was defined does not count."""
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        return {"type": "partial"} | {"of": _plain(parts, name)}
    function = getattr(value, "__wrapped__", value)
    if not isinstance(function, FunctionType):
        raise ArgumentError(
            f"{name} is a {type(value).__name__}, whose content cannot be compared between "
            "runs: give numbers, text, arrays, functions, or dataclasses of them"
        )
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    inside = _plain([cells, function.__defaults__, function.__kwdefaults__], name)
    return {"function": _sha256(json.dumps([_code(function.__code__), inside]).encode())[:16]}


def _code(code: CodeType) -> list[Any]:
    inner = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), inner]
