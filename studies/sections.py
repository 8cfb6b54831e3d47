"""Sections of the pages that studies write."""

from collections.abc import Iterable, Sequence
from typing import Any


def table(title: str, text: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """A section with a table in it; nothing without rows."""
    lines = [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    if not lines:
        return []
    return [
        f"## {title}", "", *([text, ""] if text else []),
        "| " + " | ".join(head) + " |", "|" + "---|" * len(head),
        *("| " + " | ".join(line) + " |" for line in lines), "",
    ]  # fmt: skip
