"""One process at a time holds a checkpoint."""

import contextlib
import os
import sys
from pathlib import Path

from temperance.errors import CheckpointError

LOCK = ".lock"


def try_lock(descriptor: int) -> None:
    """Take the lock of an open file, or raise at once."""
    if sys.platform == "win32":
        import msvcrt

        # Far behind the text, which others must be able to read.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def acquire(path: Path) -> int:
    """Hold the lock file and write our process id into it.

    The system holds the lock and lets go of it when the process ends, however it ends: a file
    left behind by a dead process locks nothing, even if its id now belongs to another.
    """
    lock = path / LOCK
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try_lock(descriptor)
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


def release(path: Path, lock: int) -> None:
    """Let others in."""
    # Removed while still held: a newcomer sees that its file is no longer there, and tries again.
    with contextlib.suppress(OSError):
        (path / LOCK).unlink()
    os.close(lock)
