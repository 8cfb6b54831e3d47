"""Tables and cells on the command line: frames read and written by suffix, `name=value` pairs."""

from pathlib import Path
from typing import Any

from temperance.errors import ArgumentError

WRITTEN = (".csv", ".parquet")


def parse_pairs(option: str, pairs: list[str]) -> dict[str, str]:
    """`name=text` pairs; a name may hold anything but an equals sign."""
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (equals and name and text):
            raise ArgumentError(f"{option}: wanted name=value, got {pair!r}")
        if name in found:
            raise ArgumentError(f"{option}: {name!r} is given twice, as {found[name]} and {text}")
        found[name] = text
    return found


def parse_cells(option: str, pairs: list[str], schema: Any) -> dict[str, Any]:
    """Cells of a table: text becomes a value of its column's own type."""
    return {
        name: _cell(option, schema.columns[schema.index(name)], text)
        for name, text in parse_pairs(option, pairs).items()
    }


def _cell(option: str, column: Any, text: str) -> Any:
    if column.kind in ("categorical", "boolean"):
        named = {str(value).lower(): value for value in column.values}
        return named.get(text.lower(), text)
    try:
        number = float(text)
    except ValueError:
        raise ArgumentError(
            f"{option}: column {column.name!r} is {column.kind}, wanted a number, got {text!r}"
        ) from None
    return int(number) if column.kind == "count" and number.is_integer() else number


def parse_names(option: str, text: str | None, schema: Any) -> list[str] | None:
    """Column names between commas; None where none are given."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ArgumentError(f"{option}: wanted names of columns between commas, got {text!r}")
    for name in names:
        schema.index(name)
    return names


def check_table(path: Path) -> None:
    """The table is said to be missing before anything is compiled."""
    if not path.is_file():
        raise ArgumentError(f"{path}: there is no such file; wanted a table as .csv or .parquet")


def check_written(path: Path | None, option: str = "--out") -> None:
    """Said before the work, not after it."""
    if path is None:
        return
    if path.suffix not in WRITTEN:
        raise ArgumentError(f"{option} {path}: wanted a name that ends in .csv or .parquet")
    if not path.parent.is_dir():
        raise ArgumentError(f"{option} {path}: there is no folder {path.parent}")


def read_frame(path: Path, schema: Any) -> Any:
    """A file as a pandas frame; columns that are text in `schema` stay text."""
    from temperance.crosscat.frames.table_files import is_parquet, read_csv

    if is_parquet(path):
        import pandas as pd

        return pd.read_parquet(path)
    text = [
        column.name for column in schema.columns
        if column.values and all(isinstance(value, str) for value in column.values)
    ]  # fmt: skip
    return read_csv(path, text)


def write_frame(frame: Any, path: Path | None, index: bool = False) -> None:
    """A frame as CSV or Parquet by its suffix, or as CSV to standard output."""
    import typer

    if path is None:
        typer.echo(frame.to_csv(index=index), nl=False)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=index)
    else:
        frame.to_parquet(path, index=index)
    if path is not None:
        typer.echo(f"Wrote {path}", err=True)
