"""The directory: whether it is ours, and which run it belongs to."""

import json
from pathlib import Path

from temperance.engine.checkpoint import files
from temperance.engine.checkpoint.lock import LOCK
from temperance.engine.fingerprint import differences
from temperance.errors import CheckpointError

FORMAT = "temperance checkpoint"
# Goes up when what a checkpoint holds is of another form.
VERSION = 2


def check_ours(path: Path) -> None:
    """Raise unless there is nothing at `path`, or a checkpoint that can be read."""
    if not path.exists():
        return
    if not path.is_dir():
        raise _foreign(path, "it is a file")
    names = {entry.name for entry in path.iterdir()}
    if "zarr.json" in names:
        _read_root(path)
    elif any(not name.startswith((LOCK, files.TEMPORARY)) for name in names):
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
            f"the checkpoint {path} was written by another version of temperance (format version "
            f"{version}, this one has {VERSION}), whose runs cannot be continued here: use the "
            "version that wrote it, choose another path, or delete that path to start anew"
        )
    return fingerprint


def begin_or_compare(path: Path, fingerprint: dict[str, str]) -> None:
    """Write the run's fingerprint into a new checkpoint; compare it with an existing one's."""
    root = path / "zarr.json"
    if not root.exists():
        attributes = {"format": FORMAT, "version": VERSION, "fingerprint": fingerprint}
        temporary = files.temporary(root)
        files.write_file(temporary, files.group(attributes))
        files.sync(temporary)
        temporary.rename(root)
        files.sync(path)
    elif lines := differences(_read_root(path), fingerprint):
        raise CheckpointError(
            f"the checkpoint {path} belongs to another run. What differs:\n  "
            + "\n  ".join(lines)
            + "\nCall with the same arguments to continue that run, choose another path for this "
            "one, or delete that path to start anew"
        )
