"""What each column of a table is: its kind, and what it takes to encode and decode its cells.

    categorical   one of `values`, or a value never seen
    boolean       one of two `values`
    real          a number x, held as (x - centre) / scale
    count         0, 1, 2, ...
    spike         a number that is most often exactly `spike`, and otherwise real

A schema is plain data: it goes to JSON and comes back equal, with the types of its values.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from temperance.errors import ArgumentError, DataError, FileFormatError, unknown_name

KINDS = ("categorical", "boolean", "real", "count", "spike")
# Values that a line of the printed table shows.
FEW = 4


@dataclass(frozen=True)
class Column:
    """One column of the user's table.

    `values` are plain Python scalars in code order. `centre`, `scale`, `resolution` and `spike`
    belong to kinds real and spike. On a `grid`, cells are multiples of the resolution, and come
    back as such. `unit` says what the numbers count when the cells are dates or durations. `why`,
    `num_distinct` and `num_missing` say what the kind was guessed from.
    """

    name: str
    kind: str
    values: tuple[Any, ...] = ()
    centre: float = 0.0
    scale: float = 1.0
    resolution: float = 0.0
    spike: float = 0.0
    grid: bool = False
    unit: str = ""
    why: str = ""
    num_distinct: int = 0
    num_missing: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name(f"kind of column {self.name!r}", self.kind, KINDS)
        if self.kind == "boolean" and len(self.values) != 2:
            raise ArgumentError(
                f"column {self.name!r}: a boolean column has two values, got {self.values!r}; "
                "make it categorical"
            )
        if self.kind in ("real", "spike") and not self.scale > 0:
            raise ArgumentError(f"column {self.name!r}: wanted scale > 0, got {self.scale}")
        if self.kind == "categorical" and len(set(self.values)) != len(self.values):
            raise ArgumentError(f"column {self.name!r}: its values are not all different")


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order, and the names of columns that are left out."""

    columns: tuple[Column, ...]
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            raise DataError("schema: wanted at least one column, got none")
        check_names(self.names, "schema")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.index(name)]

    def index(self, name: str) -> int:
        """The place of a column."""
        try:
            return self.names.index(name)
        except ValueError:
            raise unknown_name("column", name, self.names) from None

    def changed(self, *columns: Column) -> "Schema":
        """This schema with other columns in place of those of the same names."""
        found = list(self.columns)
        for column in columns:
            found[self.index(column.name)] = column
        return replace(self, columns=tuple(found))

    def to_json(self) -> str:
        """Plain JSON, one line a column."""
        lines = [json.dumps(_told(column), ensure_ascii=False) for column in self.columns]
        left_out = json.dumps(list(self.left_out), ensure_ascii=False)
        return '{"columns": [\n' + ",\n".join(lines) + f'\n], "left_out": {left_out}}}'

    @classmethod
    def from_json(cls, text: str) -> "Schema":
        """The schema that `to_json` wrote."""
        try:
            told = json.loads(text)
            columns = tuple(
                Column(**(column | {"values": tuple(column.get("values", ()))}))
                for column in told["columns"]
            )
            return cls(columns, tuple(told.get("left_out", ())))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileFormatError(f"schema: not the JSON of a schema ({error})") from error

    def __str__(self) -> str:
        rows = [("column", "kind", "distinct", "missing", "why"), *map(_row, self.columns)]
        widths = [max(len(row[place]) for row in rows) for place in range(4)]
        lines = []
        for name, kind, distinct, missing, why in rows:
            cells = (
                name.ljust(widths[0]),
                kind.ljust(widths[1]),
                distinct.rjust(widths[2]),
                missing.rjust(widths[3]),
                why,
            )
            lines.append("  ".join(cells).rstrip())
        if self.left_out:
            lines.append(f"left out: {', '.join(self.left_out)}")
        return "\n".join(lines)

    def __rich__(self) -> Any:
        from rich.markup import escape
        from rich.table import Table

        table = Table("column", "kind", "distinct", "missing", "why", box=None)
        for column in self.columns:
            table.add_row(*map(escape, _row(column)))
        if self.left_out:
            table.caption = escape(f"left out: {', '.join(self.left_out)}")
        return table


def check_names(names: Iterable[str], whose: str) -> None:
    """Names must be all different."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{whose}: there are two columns named {name!r}: rename one of them")
        seen.add(name)


def _told(column: Column) -> dict[str, Any]:
    """What a column says of itself where it differs from the defaults."""
    defaults = {field.name: field.default for field in fields(column)}
    return {name: value for name, value in asdict(column).items() if value != defaults[name]}


def _row(column: Column) -> tuple[str, str, str, str, str]:
    why = column.why
    if column.values:
        shown = ", ".join(repr(value) for value in column.values[:FEW])
        more = ", ..." if len(column.values) > FEW else ""
        why = f"{why}: {shown}{more}" if why else f"{shown}{more}"
    return column.name, column.kind, str(column.num_distinct), str(column.num_missing), why
