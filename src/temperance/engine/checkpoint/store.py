"""The finished blocks of one run, in order."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final
from urllib.parse import quote

import jax
import numpy as np
from jaxtyping import PyTree

from temperance.engine.checkpoint import files
from temperance.engine.checkpoint.blocks import Block, write_block
from temperance.engine.checkpoint.damage import good_blocks
from temperance.engine.checkpoint.forms import as_json, form, form_of_leaf, like, misfit
from temperance.engine.checkpoint.lock import acquire, release
from temperance.engine.checkpoint.root import begin_or_compare, check_ours
from temperance.errors import ArgumentError, CheckpointError
from temperance.engine.fingerprint import host_array


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
        check_ours(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = acquire(path)
        except OSError as error:
            raise CheckpointError(f"cannot write the checkpoint {path}: {error}") from error
        try:
            begin_or_compare(path, dict(fingerprint))
            for left_over in path.glob(f"{files.TEMPORARY}*"):
                files.remove(left_over)
            return cls(path, good_blocks(path), lock)
        except BaseException:
            release(path, lock)
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
            as_json(notes or {}),
            {
                "draws": [form(k, "draws-" + quote(k, safe="[]'"), a) for k, a in arrays.items()],
                "state": [form_of_leaf(i, *leaf) for i, leaf in enumerate(leaves)],
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
                f"start is {block.start}, but phase {block.phase!r} is at {wanted}: "
                f"give start={wanted}"
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
        temporary = files.temporary(block.path)
        try:
            files.remove(temporary)
            write_block(temporary, block, arrays)
            temporary.rename(block.path)
            self._blocks.append(block)
            files.sync(self.path)
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
        wanted = [form_of_leaf(i, *leaf) for i, leaf in enumerate(leaves)]
        if saved != wanted:
            raise CheckpointError(misfit(self.path, saved, wanted))
        values = [
            like(leaf, value, form["key"])
            for (_, leaf), value, form in zip(leaves, self.last.leaves, saved, strict=True)
        ]
        return jax.tree.unflatten(structure, values)

    def close(self) -> None:
        """Let other processes use the checkpoint. Closing twice is harmless."""
        if self._lock is not None:
            release(self.path, self._lock)
            self._lock = None

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
