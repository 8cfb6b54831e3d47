"""What an array or a leaf of a state looks like, and how a leaf is made of its bytes again."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from temperance.errors import ArgumentError, CheckpointError

_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)")


def form(name: str, folder: str, array: np.ndarray, key: str | None = None) -> dict[str, Any]:
    """The name, place, dtype and shape of an array that can be kept."""
    if not _DTYPE.fullmatch(array.dtype.name):
        raise ArgumentError(f"{name!r} has dtype {array.dtype}: only numbers and bools can be kept")
    dtype, shape = array.dtype.name, list(array.shape)
    return {"name": name, "folder": folder, "dtype": dtype, "shape": shape, "key": key}


def form_of_leaf(index: int, path: Any, leaf: Any) -> dict[str, Any]:
    """The form of a leaf of a state; random keys are kept as the numbers they are."""
    key = None
    if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            key = str(leaf.dtype)
            leaf = jax.eval_shape(jax.random.key_data, leaf)
        # Only shape and dtype are read, so a template need not be filled, nor a state copied.
        leaf = np.broadcast_to(np.empty((), leaf.dtype), leaf.shape)
    return form(jax.tree_util.keystr(path), f"state-{index:05d}", np.asarray(leaf), key)


def misfit(path: Path, saved: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> str:
    """Words for a state that is not what a sampler wants."""

    def show(form: dict[str, Any]) -> str:
        return f"{form['name'] or 'the state'}: {form['key'] or form['dtype']}{form['shape']}"

    pairs = [(show(s), show(w)) for s, w in zip(saved, wanted, strict=False) if s != w]
    what = (
        f"it holds {pairs[0][0]} where {pairs[0][1]} is wanted"
        if pairs
        else f"it holds {len(saved)} leaves where {len(wanted)} are wanted"
    )
    return (
        f"the state in the checkpoint {path} does not fit this sampler: {what}. "
        "Call with the arguments of the first run, or choose another path"
    )


def like(template: Any, value: np.ndarray, key: str | None) -> Any:
    """A leaf of the template's kind with the kept value."""
    if isinstance(template, np.ndarray | np.generic):
        return value if isinstance(template, np.ndarray) else value[()]
    if isinstance(template, bool | int | float | complex):
        return value.item()
    sharding = getattr(template, "sharding", None)
    spread = sharding is not None and len(sharding.device_set) > 1
    array = jax.device_put(value, sharding if spread and key is None else None)
    if array.dtype != value.dtype:
        raise CheckpointError(
            f"the state holds {value.dtype} but 64-bit numbers are disabled: "
            "resume under jax.enable_x64(True), as the first run was"
        )
    return array if key is None else jax.random.wrap_key_data(array, impl=_implementation(key))


def _implementation(key: str) -> str:
    for name in ("threefry2x32", "rbg", "unsafe_rbg"):
        if str(jax.random.key(0, impl=name).dtype) == key:
            return name
    raise CheckpointError(f"the state holds random keys of the unknown kind {key}")


def as_json(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Notes in terms of JSON."""
    try:
        return json.loads(json.dumps(notes, default=lambda value: value.tolist()))
    except (TypeError, ValueError, AttributeError) as error:
        raise ArgumentError(f"notes must be made of what JSON knows: {error}") from error
