"""A store of finished blocks that no crash can spoil.

    run.zarr/zarr.json            a zarr v3 group: the format, its version, the run's fingerprint
    run.zarr/block-000012/        a zarr v3 group: phase, start, count, notes, a checksum
        draws-NAME/  state-00003/     one uncompressed chunk each: zarr.json and the bytes

A block is written under a temporary name, forced to disk, and renamed into place. Renaming is
atomic: a process killed at any moment leaves the whole block or a name that nobody reads. The
checksum covers every byte of a block, so what was damaged afterwards is dropped, never used.

The files are written here and not by the zarr library, because only then is it known that every
byte is on disk before the rename; zarr reads them like any others. No pickle: nothing is executed.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from urllib.parse import quote

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .errors import ArgumentError, CheckpointError
from .fingerprint import differences, host_array

FORMAT = "temperance checkpoint"
VERSION = 1
_LOCK, _TEMPORARY = ".lock", ".tmp-"
_SYNCS = 8
_BLOCK = re.compile(r"block-(\d{6,})")
_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)")


class CheckpointWarning(UserWarning):
    """Damaged blocks were found and set aside; the run goes on from the last good one."""


class _DamageError(Exception):
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
        return {form["name"]: _read_array(self.path, form) for form in self.forms["draws"]}

    @property
    def leaves(self) -> list[np.ndarray]:
        """The leaves of the sampler's state after this block, in the order of flattening."""
        return [_read_array(self.path, form) for form in self.forms["state"]]


@final
class Store:
    """The finished blocks of one run, in order, held by one process at a time.

    After `append` returns, the block is on disk for good. `open` gives back exactly the blocks up
    to the last good one; `close` (or leaving a `with`) lets another process in, as does dying.
    """

    def __init__(self, path: Path, blocks: list[Block], lock: int) -> None:
        self.path = path
        self._blocks = blocks
        self._lock: int | None = lock

    @classmethod
    def open(cls, path: str | os.PathLike[str], fingerprint: Mapping[str, str]) -> "Store":
        """Open the checkpoint of the run with that fingerprint, or begin one where there is none.

        Raises `CheckpointError`, and touches nothing, if the path holds anything else, the
        checkpoint of another run, or one that a living process uses.
        """
        path = Path(path)
        _check_ours(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = _acquire(path)
        except OSError as error:
            raise CheckpointError(f"cannot write the checkpoint {path}: {error}") from error
        try:
            _begin_or_compare(path, dict(fingerprint))
            for left_over in path.glob(f"{_TEMPORARY}*"):
                _remove(left_over)
            return cls(path, _good_blocks(path), lock)
        except BaseException:
            _release(path, lock)
            raise

    def append(
        self,
        phase: str,
        start: int,
        draws: Mapping[str, Any],
        state: PyTree,
        notes: Mapping[str, Any] | None = None,
        *,
        count: int | None = None,
    ) -> Block:
        """Keep a finished block: `count` steps of `phase` from `start` on, and the state after.

        Draws have one row for each step, so `count` is needed only where there are none. Starts
        must follow on, and names, dtypes and shapes of draws stay the same within a phase.
        """
        if self._lock is None:
            raise CheckpointError(f"the checkpoint {self.path} is closed: open it again")
        arrays = {name: host_array(value) for name, value in draws.items()}
        leaves, _ = jax.tree.flatten_with_path(state)
        rows = {array.shape[:1] for array in arrays.values()} | (
            set() if count is None else {(count,)}
        )
        if len(rows) > 1 or () in rows:
            raise ArgumentError(f"draws must have one row for each step, got {sorted(rows)} rows")
        block = Block(
            self.path / f"block-{len(self._blocks):06d}",
            len(self._blocks),
            phase,
            int(start),
            rows.pop()[0] if rows else 0,
            _as_json(notes or {}),
            {
                "draws": [_form(k, "draws-" + quote(k, safe="[]'"), a) for k, a in arrays.items()],
                "state": [_form_of_leaf(i, *leaf) for i, leaf in enumerate(leaves)],
            },
        )
        self._check_follows(block)
        self._commit(block, [*arrays.values(), *(host_array(leaf) for _, leaf in leaves)])
        return block

    def _check_follows(self, block: Block) -> None:
        earlier = self.blocks(block.phase)
        wanted = earlier[-1].position if earlier else 0
        if block.start != wanted:
            raise ArgumentError(
                f"start is {block.start}, but phase {block.phase!r} is at {wanted}: give start={wanted}"
            )
        row = [
            [(f["name"], f["dtype"], f["shape"][1:]) for f in b.forms["draws"]]
            for b in (*earlier[-1:], block)
        ]
        if row[0] != row[-1]:
            raise ArgumentError(
                f"draws of phase {block.phase!r} were {row[0]} and are {row[-1]} in block "
                f"{block.index}: names, dtypes and shapes must stay"
            )

    def _commit(self, block: Block, arrays: list[np.ndarray]) -> None:
        temporary = _temporary(block.path)
        try:
            _remove(temporary)
            _write_block(temporary, block, arrays)
            os.rename(temporary, block.path)
            self._blocks.append(block)
            _sync(self.path)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise CheckpointError(f"cannot write {block.path}: {error}") from error

    def blocks(self, phase: str) -> list[Block]:
        """The finished blocks of a phase, in order."""
        return [block for block in self._blocks if block.phase == phase]

    @property
    def last(self) -> Block | None:
        """The last good block, of whatever phase; None before the first."""
        return self._blocks[-1] if self._blocks else None

    def draws(self, phase: str) -> dict[str, np.ndarray]:
        """All draws of a phase, joined along their first axis; empty if there are none."""
        parts = [block.draws for block in self.blocks(phase)]
        return {name: np.concatenate([p[name] for p in parts]) for name in (parts or [{}])[0]}

    def restore(self, template: PyTree) -> PyTree:
        """The state after the last block, in the structure of `template` and bit for bit.

        Leaves come back as what the template has there: NumPy or JAX arrays, random keys, numbers.
        The template may hold `jax.ShapeDtypeStruct`s. Raises `CheckpointError` if it does not fit.
        """
        if self.last is None:
            raise CheckpointError(f"the checkpoint {self.path} holds no finished block to restore")
        leaves, structure = jax.tree.flatten_with_path(template)
        saved = self.last.forms["state"]
        wanted = [_form_of_leaf(i, *leaf) for i, leaf in enumerate(leaves)]
        if saved != wanted:
            raise CheckpointError(_misfit(self.path, saved, wanted))
        values = [
            _like(leaf, value, form["key"])
            for (_, leaf), value, form in zip(leaves, self.last.leaves, saved, strict=True)
        ]
        return jax.tree.unflatten(structure, values)

    def close(self) -> None:
        """Let other processes use the checkpoint. Closing twice is harmless."""
        if self._lock is not None:
            _release(self.path, self._lock)
            self._lock = None

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# -- what an array or a leaf looks like ----------------------------------------------------------


def _form(name: str, folder: str, array: np.ndarray, key: str | None = None) -> dict[str, Any]:
    if not _DTYPE.fullmatch(array.dtype.name):
        raise ArgumentError(f"{name!r} has dtype {array.dtype}: only numbers and bools can be kept")
    dtype, shape = array.dtype.name, list(array.shape)
    return {"name": name, "folder": folder, "dtype": dtype, "shape": shape, "key": key}


def _form_of_leaf(index: int, path: Any, leaf: Any) -> dict[str, Any]:
    key = None
    if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            key = str(leaf.dtype)
            leaf = jax.eval_shape(jax.random.key_data, leaf)
        # Only shape and dtype are read, so a template need not be filled, nor a state copied.
        leaf = np.broadcast_to(np.empty((), leaf.dtype), leaf.shape)
    return _form(jax.tree_util.keystr(path), f"state-{index:05d}", np.asarray(leaf), key)


def _misfit(path: Path, saved: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> str:
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


def _like(template: Any, value: np.ndarray, key: str | None) -> Any:
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


def _as_json(notes: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(notes, default=lambda value: value.tolist()))
    except (TypeError, ValueError, AttributeError) as error:
        raise ArgumentError(f"notes must be made of what JSON knows: {error}") from error


# -- blocks on disk ------------------------------------------------------------------------------


def _dump(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _group(attributes: Mapping[str, Any]) -> bytes:
    return _dump({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def _array_metadata(form: Mapping[str, Any]) -> bytes:
    dtype = np.dtype(form["dtype"])
    zero: Any = {"b": False, "c": [0.0, 0.0]}.get(dtype.kind, 0)
    # A chunk of extent zero is not allowed, even of an array without elements.
    chunk = [max(1, extent) for extent in form["shape"]]
    return _dump(
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


def _checksum(head: Mapping[str, Any], arrays: Iterable[np.ndarray]) -> str:
    digest = hashlib.sha256(_dump(head))
    for array in arrays:
        digest.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


def _write_block(folder: Path, block: Block, arrays: list[np.ndarray]) -> None:
    forms = [*block.forms["draws"], *block.forms["state"]]
    # reshape, because ascontiguousarray gives a scalar an axis
    raw = [np.ascontiguousarray(a, a.dtype.newbyteorder("<")).reshape(a.shape) for a in arrays]
    head = _head(block)
    files = {folder / "zarr.json": _group(head | {"sha256": _checksum(head, raw)})}
    for form, array in zip(forms, raw, strict=True):
        files[folder / form["folder"] / "zarr.json"] = _array_metadata(form)
        files[_chunk(folder, form)] = array.tobytes()
    folder.mkdir()
    for form in forms:
        (folder / form["folder"]).mkdir()
    for path, content in files.items():
        _write_file(path, content)
    # Forced out together, because the disk then takes them in a few goes instead of dozens.
    with ThreadPoolExecutor(_SYNCS) as pool:
        list(pool.map(_sync, [*files, *(folder / form["folder"] for form in forms), folder]))


def _write_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _sync(path: Path) -> None:
    if sys.platform != "win32":  # which cannot open a directory
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _temporary(path: Path) -> Path:
    return path.with_name(f"{_TEMPORARY}{path.name}-{os.getpid()}")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _read_array(path: Path, form: Mapping[str, Any]) -> np.ndarray:
    dtype, chunk = np.dtype(form["dtype"]).newbyteorder("<"), _chunk(path, form)
    size, wanted = chunk.stat().st_size, math.prod(form["shape"]) * dtype.itemsize
    if size != wanted:
        raise _DamageError(f"{form['folder']} has {size} bytes instead of {wanted}")
    return np.fromfile(chunk, dtype).reshape(form["shape"]).astype(form["dtype"], copy=False)


def _read_block(path: Path, index: int) -> Block:
    text = (path / "zarr.json").read_bytes()
    head = json.loads(text)["attributes"]
    # Equal text and equal checksum: then no file of the block differs from what was written.
    if _group(head) != text:
        raise _DamageError("its zarr.json was altered")
    checksum = head.pop("sha256")
    forms = [*head["forms"]["draws"], *head["forms"]["state"]]
    for form in forms:
        if (path / form["folder"] / "zarr.json").read_bytes() != _array_metadata(form):
            raise _DamageError(f"the zarr.json of {form['folder']} was altered")
    if _checksum(head, (_read_array(path, form) for form in forms)) != checksum:
        raise _DamageError("its checksum does not match")
    if head["index"] != index:
        raise _DamageError(f"it was written as block {head['index']}")
    return Block(path=path, **head)


def _good_blocks(path: Path) -> list[Block]:
    """The blocks before the first damaged one, which is set aside with all that follow."""
    found = {int(m[1]) for entry in path.iterdir() if (m := _BLOCK.fullmatch(entry.name))}
    good: list[Block] = []
    for index in range(max(found, default=-1) + 1):
        try:
            good.append(_read_block(path / f"block-{index:06d}", index))
        except (FileNotFoundError, NotADirectoryError) as error:
            missing = Path(error.filename or "").relative_to(path)
            return _set_aside(path, good, found, f"{missing} is missing")
        except _DamageError as error:
            return _set_aside(path, good, found, str(error))
        except (ValueError, KeyError, TypeError) as error:
            return _set_aside(path, good, found, f"it cannot be read ({error!r})")
        except OSError as error:
            # A disk that fails to answer is no proof of damage: nothing may be dropped for it.
            raise CheckpointError(f"cannot read the checkpoint {path}: {error}") from error
    return good


def _set_aside(path: Path, good: list[Block], found: set[int], why: str) -> list[Block]:
    first = len(good)
    aside = Path(tempfile.mkdtemp(prefix=".dropped-", dir=path))
    _write_file(aside / "zarr.json", _group({}))
    dropped = sorted(index for index in found if index >= first)
    for index in dropped:
        name = f"block-{index:06d}"
        os.rename(path / name, aside / name)
    after = len([index for index in dropped if index > first])
    follow = (
        f"block {first - 1} is the last good one: the run goes on from phase "
        f"{good[-1].phase!r}, position {good[-1].position}"
        if good
        else "no good block is left: the run starts anew"
    )
    warnings.warn(
        f"checkpoint {path}: block {first} is damaged: {why}. It and the {after} after it are not "
        f"used and were moved to {aside.name}; {follow}",
        CheckpointWarning,
        stacklevel=4,
    )
    return good


# -- the directory and who holds it --------------------------------------------------------------


def _check_ours(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise _foreign(path, "it is a file")
    names = {entry.name for entry in path.iterdir()}
    if "zarr.json" in names:
        _read_root(path)
    elif any(not name.startswith((_LOCK, _TEMPORARY)) for name in names):
        raise _foreign(path, "it is a directory with other things in it and no zarr.json")


def _foreign(path: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"{path} exists but is not a temperance checkpoint: {why}. Nothing in it was touched; "
        "choose another path"
    )


def _read_root(path: Path) -> dict[str, str]:
    try:
        attributes = json.loads((path / "zarr.json").read_bytes())["attributes"]
        named, version = attributes["format"], attributes["version"]
        fingerprint = dict(attributes["fingerprint"])
    except (ValueError, KeyError, TypeError, IsADirectoryError) as error:
        raise _foreign(path, "its zarr.json does not describe one") from error
    if named != FORMAT:
        raise _foreign(path, f"its format is {named!r}")
    if version != VERSION:
        raise CheckpointError(
            f"the checkpoint {path} has format version {version}, this temperance reads "
            f"{VERSION}: use the temperance that wrote it, or choose another path"
        )
    return fingerprint


def _begin_or_compare(path: Path, fingerprint: dict[str, str]) -> None:
    root = path / "zarr.json"
    if not root.exists():
        attributes = {"format": FORMAT, "version": VERSION, "fingerprint": fingerprint}
        temporary = _temporary(root)
        _write_file(temporary, _group(attributes))
        _sync(temporary)
        os.rename(temporary, root)
        _sync(path)
    elif lines := differences(_read_root(path), fingerprint):
        raise CheckpointError(
            f"the checkpoint {path} belongs to another run. What differs:\n  "
            + "\n  ".join(lines)
            + "\nCall with the same arguments to continue that run, choose another path for this "
            "one, or delete that path to start anew"
        )


def _try_lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        # Far behind the text, which others must be able to read.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _acquire(path: Path) -> int:
    """Hold the lock file and write our process id into it.

    The system holds the lock and lets go of it when the process ends, however it ends: a file
    left behind by a dead process locks nothing, even if its id now belongs to another.
    """
    lock = path / _LOCK
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _try_lock(descriptor)
            # Whoever held it may have removed the file meanwhile: then this lock guards nothing.
            if lock.exists() and os.path.samestat(os.fstat(descriptor), lock.stat()):
                break
            os.close(descriptor)
        except (BlockingIOError, PermissionError) as error:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise _in_use(path, holder) from error
        except OSError:
            os.close(descriptor)
            raise
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    return descriptor


def _in_use(path: Path, holder: str) -> CheckpointError:
    own = holder == str(os.getpid())
    who = "this very process" if own else f"another process (id {holder})"
    what = "close that store first" if own else "wait for it to end, stop it"
    return CheckpointError(
        f"the checkpoint {path} is in use by {who}: {what}, or choose another path"
    )


def _release(path: Path, lock: int) -> None:
    # Removed while still held: a newcomer sees that its file is no longer there, and tries again.
    with contextlib.suppress(OSError):
        (path / _LOCK).unlink()
    os.close(lock)
