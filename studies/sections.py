"""Sections of the pages that studies write."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


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


def mean_and_error(values: Sequence[float]) -> str:
    """A mean with its standard error, where there are two values at least."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return f"{mean:.4g}"
    return f"{mean:.4g} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2g}"
