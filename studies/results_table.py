"""What runs found, as one table for each experiment: a line for each run, a column for each figure.

    KIND.csv    text and numbers as Python prints them, so that a float is read back bit for bit
    KIND.npz    lists of many numbers (curves, histograms, traces), if there are any

A record is what JSON can hold: a dictionary of numbers, texts, lists and dictionaries. Figures of a dictionary within
it have names with dots. A cell is

    empty           where a record has no such figure
    JSON            numbers, and lists of few numbers; a text only where it would read as one of these
    npz:KEY         the list that KIND.npz has under KEY
    anything else   a text

Several processes may add runs to one table: each holds the folder's lock, and files are replaced in one step.
Keys of arrays are digests of what they hold, and new arrays are there before the lines that name them: whenever a
process is stopped, every line still has its own.
"""

import contextlib
import csv
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, Any]
# Lists of more numbers than this are arrays. If one of a column is, all are.
LONG = 64
ARRAY = "npz:"
NAME = "name"
csv.field_size_limit(2**31 - 1)


def read_runs(path: Path) -> dict[str, Record]:
    """The runs of a table by name, in order of names; none if there is no table."""
    return {record.pop(NAME): record for record in read_table(path)}


def add_run(path: Path, name: str, record: Record) -> None:
    """Put a run into a table, in place of one of the same name."""
    if NAME in record:
        raise ValueError(f"a figure is named {NAME!r}, which is the run's own")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.parent, fcntl.LOCK_EX):
        found = {one[NAME]: one for one in _read(path)}
        found[name] = {NAME: name} | record
        _write(path, [found[one] for one in sorted(found)])


def read_table(path: Path) -> list[Record]:
    """The lines of a table; none if there is no table."""
    if not path.exists():
        return []
    with _locked(path.parent, fcntl.LOCK_SH):
        return _read(path)


def write_table(path: Path, records: Sequence[Record]) -> None:
    """A table of these lines alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.parent, fcntl.LOCK_EX):
        _write(path, records)


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    """The lock is the folder's own, which leaves no file behind and ends with the process."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


def _read(path: Path) -> list[Record]:
    if not path.exists():
        return []
    arrays = _arrays(path)
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    return [
        _nested({column: _value(cell, arrays) for column, cell in line.items() if cell})
        for line in lines
    ]


def _write(path: Path, records: Sequence[Record]) -> None:
    # What JSON makes of a record is what will be read: names are texts, tuples are lists.
    flat = [_flat(json.loads(json.dumps(record, default=float))) for record in records]
    columns = _columns(flat)
    long = {name for line in flat for name, value in line.items() if _size(value) > LONG}
    arrays: dict[str, np.ndarray] = {}
    lines = [
        {name: _cell(value, arrays if name in long else None) for name, value in line.items()}
        for line in flat
    ]
    # A line that is in the file now may name an array that none will name afterwards.
    before = _arrays(path)
    _write_arrays(path, before | arrays)
    with _replaced(path) as partial, partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    if before.keys() - arrays.keys():
        _write_arrays(path, arrays)


def _columns(flat: Sequence[Record]) -> list[str]:
    """All names: a new one comes after the one before it in its own record."""
    columns: list[str] = []
    for line in flat:
        place = 0
        for name in line:
            if name in columns:
                place = columns.index(name) + 1
            else:
                columns.insert(place, name)
                place += 1
    return columns


# --- Cells ---------------------------------------------------------------------------------------


def _flat(record: Record, above: str = "") -> Record:
    flat = {}
    for name, value in record.items():
        if "." in name or not name:
            raise ValueError(f"a figure is named {name!r}; names are texts without dots")
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{above}{name}.")
        else:
            flat[above + name] = value
    return flat


def _nested(flat: Record) -> Record:
    record: Record = {}
    for column, value in flat.items():
        *above, name = column.split(".")
        place = record
        for one in above:
            place = place.setdefault(one, {})
        place[name] = value
    return record


def _cell(value: Any, arrays: dict[str, np.ndarray] | None) -> str:
    array = _exact(value) if arrays is not None and isinstance(value, list) else None
    if array is not None and arrays is not None:
        content = repr((array.dtype.descr, array.shape)).encode() + array.tobytes()
        key = hashlib.blake2b(content, digest_size=6).hexdigest()
        arrays[key] = array
        return ARRAY + key
    return value if isinstance(value, str) and _is_plain(value) else json.dumps(value)


def _is_plain(text: str) -> bool:
    """Whether a text is read back from a cell that has nothing but it."""
    if not text or not text.isprintable() or text.startswith(ARRAY):
        return False
    return _value(text, {}) == text


def _value(cell: str, arrays: dict[str, np.ndarray]) -> Any:
    if cell.startswith(ARRAY):
        return _list(arrays[cell.removeprefix(ARRAY)])
    try:
        return json.loads(cell)
    except ValueError:
        return cell


# --- Arrays --------------------------------------------------------------------------------------


def _arrays(path: Path) -> dict[str, np.ndarray]:
    path = path.with_suffix(".npz")
    if not path.exists():
        return {}
    with np.load(path) as stored:
        return dict(stored)


def _write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    path = path.with_suffix(".npz")
    if not arrays:
        path.unlink(missing_ok=True)
        return
    with _replaced(path) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file, allow_pickle=False, **{key: arrays[key] for key in sorted(arrays)}
        )


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """Another name to write to, which becomes the file's own in one step."""
    partial = path.with_name(f"{path.name}.part")
    yield partial
    partial.replace(path)


def _size(value: Any) -> int:
    return sum(map(_size, value)) if isinstance(value, list) else 1


def _exact(value: list[Any]) -> np.ndarray | None:
    """An array that is read back as the same list, whole numbers as whole numbers, if there is one."""
    for make in (np.array, _of_rows):
        with contextlib.suppress(ValueError, TypeError, OverflowError, IndexError):
            array = make(value)
            if not array.dtype.hasobject and json.dumps(_list(array)) == json.dumps(value):
                return array
    return None


def _of_rows(value: list[Any]) -> np.ndarray:
    """Rows whose columns have types of their own."""
    types = [(f"f{j}", type(one)) for j, one in enumerate(value[0])]
    return np.array([tuple(row) for row in value], types)


def _list(array: np.ndarray) -> list[Any]:
    return [list(row) for row in array.tolist()] if array.dtype.names else array.tolist()
