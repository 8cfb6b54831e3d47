"""A block on disk: one uncompressed chunk an array, and a checksum over every byte."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from temperance.engine.checkpoint import files

_SYNCS = 8


class DamageError(Exception):
    """A block is not what was written; the message says how."""


@dataclass(frozen=True)
class Block:
    """A finished block. Its arrays are read from disk at each access, bit for bit as given."""

    path: Path
    index: int
    phase: str
    start: int
    count: int
    notes: dict[str, Any]
    forms: dict[str, list[dict[str, Any]]]

    @property
    def position(self) -> int:
        """Where in its phase the next block starts."""
        return self.start + self.count

    @property
    def draws(self) -> dict[str, np.ndarray]:
        """The draws by name."""
        return {form["name"]: read_array(self.path, form) for form in self.forms["draws"]}

    @property
    def leaves(self) -> list[np.ndarray]:
        """The leaves of the sampler's state after this block, in the order of flattening."""
        return [read_array(self.path, form) for form in self.forms["state"]]


def _array_metadata(form: Mapping[str, Any]) -> bytes:
    dtype = np.dtype(form["dtype"])
    zero: Any = {"b": False, "c": [0.0, 0.0]}.get(dtype.kind, 0)
    # A chunk of extent zero is not allowed, even of an array without elements.
    chunk = [max(1, extent) for extent in form["shape"]]
    return files.dump(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": form["shape"],
            "data_type": form["dtype"],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": zero,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": {"name": form["name"]},
        }
    )


def _chunk(path: Path, form: Mapping[str, Any]) -> Path:
    return path / form["folder"] / ".".join(["c"] + ["0"] * len(form["shape"]))


def _head(block: Block) -> dict[str, Any]:
    names = ("index", "phase", "start", "count", "notes", "forms")
    return {name: getattr(block, name) for name in names}


def checksum(head: Mapping[str, Any], arrays: Iterable[np.ndarray]) -> str:
    """Of everything a block says of itself, and of every byte of its arrays."""
    digest = hashlib.sha256(files.dump(head))
    for array in arrays:
        digest.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


def write_block(folder: Path, block: Block, arrays: list[np.ndarray]) -> None:
    """Write all of a block into a new folder, and force it to disk."""
    forms = [*block.forms["draws"], *block.forms["state"]]
    # reshape, because ascontiguousarray gives a scalar an axis
    raw = [np.ascontiguousarray(a, a.dtype.newbyteorder("<")).reshape(a.shape) for a in arrays]
    head = _head(block)
    contents = {folder / "zarr.json": files.group(head | {"sha256": checksum(head, raw)})}
    for form, array in zip(forms, raw, strict=True):
        contents[folder / form["folder"] / "zarr.json"] = _array_metadata(form)
        contents[_chunk(folder, form)] = array.tobytes()
    folder.mkdir()
    for form in forms:
        (folder / form["folder"]).mkdir()
    for path, content in contents.items():
        files.write_file(path, content)
    # Forced out together, because the disk then takes them in a few goes instead of dozens.
    with ThreadPoolExecutor(_SYNCS) as pool:
        list(
            pool.map(files.sync, [*contents, *(folder / form["folder"] for form in forms), folder])
        )


def read_array(path: Path, form: Mapping[str, Any]) -> np.ndarray:
    """One array, if its file has the right size."""
    dtype, chunk = np.dtype(form["dtype"]).newbyteorder("<"), _chunk(path, form)
    size, wanted = chunk.stat().st_size, math.prod(form["shape"]) * dtype.itemsize
    if size != wanted:
        raise DamageError(f"{form['folder']} has {size} bytes instead of {wanted}")
    return np.fromfile(chunk, dtype).reshape(form["shape"]).astype(form["dtype"], copy=False)


def read_block(path: Path, index: int) -> Block:
    """The block at `path`, if every byte of it is what was written; else `DamageError`."""
    text = (path / "zarr.json").read_bytes()
    head = json.loads(text)["attributes"]
    # Equal text and equal checksum: then no file of the block differs from what was written.
    if files.group(head) != text:
        raise DamageError("its zarr.json was altered")
    wanted = head.pop("sha256")
    forms = [*head["forms"]["draws"], *head["forms"]["state"]]
    for form in forms:
        if (path / form["folder"] / "zarr.json").read_bytes() != _array_metadata(form):
            raise DamageError(f"the zarr.json of {form['folder']} was altered")
    if checksum(head, (read_array(path, form) for form in forms)) != wanted:
        raise DamageError("its checksum does not match")
    if head["index"] != index:
        raise DamageError(f"it was written as block {head['index']}")
    return Block(path=path, **head)
