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

from temperance.engine.checkpoint.blocks import Block
from temperance.engine.checkpoint.damage import CheckpointWarning
from temperance.engine.checkpoint.store import Store

__all__ = ["Block", "CheckpointWarning", "Store"]
