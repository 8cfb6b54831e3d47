"""What the tables and figures of all parts have in common."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

Rows = list[dict[str, Any]]
STYLE = {
    "axes.grid": True, "axes.spines.right": False, "axes.spines.top": False, "font.size": 9.5,
    "grid.alpha": 0.3, "legend.frameon": False,
}  # fmt: skip


def save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


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
