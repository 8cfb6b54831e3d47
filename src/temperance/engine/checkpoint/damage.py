"""Which blocks are good: those before the first damaged one."""

import re
import tempfile
import warnings
from pathlib import Path

from temperance.engine.checkpoint import blocks, files
from temperance.engine.checkpoint.blocks import Block, DamageError
from temperance.errors import CheckpointError

_BLOCK = re.compile(r"block-(\d{6,})")


class CheckpointWarning(UserWarning):
    """Damaged blocks were found and set aside; the run goes on from the last good one."""


def good_blocks(path: Path) -> list[Block]:
    """The blocks before the first damaged one, which is set aside with all that follow."""
    found = {int(m[1]) for entry in path.iterdir() if (m := _BLOCK.fullmatch(entry.name))}
    good: list[Block] = []
    for index in range(max(found, default=-1) + 1):
        try:
            good.append(blocks.read_block(path / f"block-{index:06d}", index))
        except (FileNotFoundError, NotADirectoryError) as error:
            missing = Path(error.filename or "").relative_to(path)
            return _set_aside(path, good, found, f"{missing} is missing")
        except DamageError as error:
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
    files.write_file(aside / "zarr.json", files.group({}))
    dropped = sorted(index for index in found if index >= first)
    for index in dropped:
        name = f"block-{index:06d}"
        (path / name).rename(aside / name)
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
