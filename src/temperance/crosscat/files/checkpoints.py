"""States kept on disk while they are fitted, and gone on with.

A folder has one file for each state, written whole or not at all, with all that it takes to go on:
a fit that is stopped and started again ends with the states of one that was never stopped. Each
file says what it belongs to, the table, the settings and the seed, and any other fit refuses it.
"""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from temperance.crosscat.encoding.table import Table
from temperance.crosscat.files.archive import read_model, write_model
from temperance.errors import CheckpointError

# Seconds between two writings of a state.
APART = 20.0


class Checkpoint:
    """The folder of one fit."""

    def __init__(self, folder: str | os.PathLike[str], table: Table, settings: Any):
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise CheckpointError(f"checkpoint: {folder} is a file; wanted a folder")
        if not self.folder.parent.is_dir():
            raise CheckpointError(f"checkpoint: there is no folder {self.folder.parent}")
        self.folder.mkdir(exist_ok=True)
        self.belongs = {"table": digest_of(table), "settings": str(settings)}

    def path(self, number: int) -> Path:
        return self.folder / f"state-{number}.zip"

    def restore(self, number: int, seed: np.random.SeedSequence) -> dict[str, np.ndarray] | None:
        """What was kept of a state, or None where nothing was."""
        path = self.path(number)
        if not path.exists():
            return None
        told, arrays = read_model(path)
        for name, mine in self._told(seed).items():
            if told.get(name) != mine:
                raise CheckpointError(
                    f"checkpoint: {path} was kept by a fit with another {name}; give the same "
                    "table and settings, random_state among them, or another folder"
                )
        return arrays

    def keep(self, number: int, seed: np.random.SeedSequence, made: Any) -> None:
        """Writes a state as it is."""
        write_model(self.path(number), self._told(seed), made.arrays())

    def make_callback(
        self,
        number: int,
        seed: np.random.SeedSequence,
        made: Any,
        tell: Callable[[Any], Any] | None,
    ) -> Callable[[Any], bool]:
        """A callback that keeps the state now and then, at its end, and before it is hurried."""
        last, stopped = time.monotonic(), False

        def heard(progress: Any) -> bool:
            nonlocal last, stopped
            stop = tell is not None and bool(tell(progress))
            due = made.finished or stop or time.monotonic() - last > APART
            if due and not stopped:
                self.keep(number, seed, made)
                last = time.monotonic()
            stopped = stopped or stop
            return stop

        return heard

    def _told(self, seed: np.random.SeedSequence) -> dict[str, str]:
        return {**self.belongs, "seed": f"{seed.entropy} {seed.spawn_key}"}


def digest_of(table: Table) -> str:
    """A short name of a table: of its columns and of all its cells."""
    made = hashlib.blake2b(table.schema.to_json().encode(), digest_size=16)
    for matrix in table.cells:
        made.update(str(matrix.shape).encode())
        made.update(np.ascontiguousarray(matrix).view(np.uint8).data)
    return made.hexdigest()
