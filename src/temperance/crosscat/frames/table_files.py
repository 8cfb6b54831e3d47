"""CSV and Parquet files.

The delimiter of a CSV file is the one that splits its first lines into equally many cells. The
first line is a header

    if a cell of it is no number and stands above nothing but numbers,
    or else if none of its cells is a number or empty, all differ, and none recurs below.

Without a header, columns are called column_0, column_1, ... A column with codes such as 00123 is
text. Cells that hold nothing but a mark of `MISSING` are missing. Nothing in a file is executed.
"""

import csv
import gzip
import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temperance.crosscat.frames.schema import check_names
from temperance.errors import DataError, FileFormatError

MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "<NA>", "?")
DELIMITERS = ",;\t|"
# Characters that the dialect, the header and the columns with leading zeros are told from.
SAMPLE = 1 << 18
CODE = re.compile(r"0\d+")


class ParquetTable:
    """A parquet file, of which one column at a time is read."""

    def __init__(self, path: Path):
        _check_file(path)
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise DataError(
                f"{path}: reading parquet needs pyarrow: pip install 'temperance[parquet]'"
            ) from error
        try:
            self.file = parquet.ParquetFile(path)
        except (ValueError, OSError) as error:
            raise FileFormatError(f"{path}: cannot be read as parquet ({error})") from error
        self.names = tuple(self.file.schema_arrow.names)
        check_names(self.names, str(path))
        self.num_rows: int = self.file.metadata.num_rows

    def read(self, name: str) -> Any:
        return self.file.read(columns=[name], use_threads=False).column(name)


def is_parquet(path: Path) -> bool:
    """Whether a path is one of a parquet file, by its ending."""
    return path.suffix in (".parquet", ".pq")


def read_csv(path: Path, text: Sequence[str] = ()) -> Any:
    """A CSV file, plain or gzipped, as a pandas frame; columns named in `text` stay text."""
    import pandas as pd

    _check_file(path)
    zipped = path.suffix == ".gz"
    delimiter, rows = _first_rows(path, zipped)
    header = _is_header(rows)
    names = _names(rows, header)
    check_names(names, str(path))
    codes = [name for p, name in enumerate(names) if _has_codes(_below(rows, p, header))]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=delimiter,
                header=0 if header else None,
                names=names,
                index_col=False,
                na_values=list(MISSING),
                keep_default_na=False,
                skipinitialspace=True,
                # In a file of one column, a blank line is a missing cell.
                skip_blank_lines=len(names) > 1,
                dtype=dict.fromkeys([*codes, *(name for name in text if name in names)], str),
                compression="gzip" if zipped else None,
                encoding="utf-8-sig",
                low_memory=False,
            )
    except (ValueError, OSError, pd.errors.ParserWarning) as error:
        raise FileFormatError(f"{path}: cannot be read as CSV ({str(error).strip()})") from error


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise FileFormatError(f"{path}: there is no such file")


def _first_rows(path: Path, zipped: bool) -> tuple[str, list[list[str]]]:
    """The delimiter, and the rows at the top of the file."""
    opener = gzip.open if zipped else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            text = file.read(SAMPLE)
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise FileFormatError(
            f"{path}: cannot be read as text in UTF-8 ({error}); wanted a .csv, .csv.gz or "
            ".parquet file"
        ) from error
    best, found = ",", []
    for delimiter in DELIMITERS:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
        if len(text) == SAMPLE:
            rows = rows[:-1]  # cut off in the middle
        widths = {len(row) for row in rows}
        if not found or (len(widths) == 1 and widths.pop() > len(found[0])):
            best, found = delimiter, rows
    if not found:
        raise DataError(f"{path}: the file is empty, with 0 row(s)")
    for number, row in enumerate(found):
        if len(row) != len(found[0]):
            raise FileFormatError(
                f"{path}: row {number} has {len(row)} cells and the first row has {len(found[0])}, "
                f"with the delimiter {best!r}"
            )
    return best, found


def _has_codes(cells: list[str]) -> bool:
    return any(CODE.fullmatch(cell) for cell in cells)


def _below(rows: list[list[str]], place: int, header: bool) -> list[str]:
    cells = (row[place].strip() for row in rows[int(header) :] if place < len(row))
    return [cell for cell in cells if cell not in MISSING]


def _is_header(rows: list[list[str]]) -> bool:
    first = [cell.strip() for cell in rows[0]]
    below = [_below(rows, place, True) for place in range(len(first))]
    named = [cell not in MISSING and not _is_number(cell) for cell in first]
    for name, cells in zip(named, below, strict=True):
        if name and cells and all(map(_is_number, cells)):
            return True
    different = len(set(first)) == len(first)
    recurs = any(cell in cells for cell, cells in zip(first, below, strict=True))
    return all(named) and different and not recurs


def _names(rows: list[list[str]], header: bool) -> list[str]:
    if not header:
        return [f"column_{place}" for place in range(len(rows[0]))]
    return [cell.strip() or f"column_{place}" for place, cell in enumerate(rows[0])]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
