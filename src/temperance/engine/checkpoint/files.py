"""Single files: what zarr calls a group, how bytes are forced to disk, names nobody reads."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TEMPORARY = ".tmp-"


def dump(content: Mapping[str, Any]) -> bytes:
    """JSON, the same for the same content."""
    return json.dumps(content, sort_keys=True).encode()


def group(attributes: Mapping[str, Any]) -> bytes:
    """The metadata of a zarr v3 group."""
    return dump({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def write_file(path: Path, content: bytes) -> None:
    """Give a file its content, which may still be on its way to the disk."""
    path.write_bytes(content)


def sync(path: Path) -> None:
    """Wait until a file, or a directory's list of names, is on the disk."""
    if sys.platform != "win32":  # which cannot open a directory
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def temporary(path: Path) -> Path:
    """A name beside `path` that is removed if it is ever found left over."""
    return path.with_name(f"{TEMPORARY}{path.name}-{os.getpid()}")


def remove(path: Path) -> None:
    """Remove a file or a whole directory, if there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
