"""A run as one page that explains itself: pictures, numbers, warnings in words, whom to cite.

The page is self-contained: its pictures are inside it and it asks nothing of the network, so it
can be mailed, archived and opened in ten years. Drawing goes through Matplotlib's `Figure` alone,
never pyplot, so that a caller's backend and open figures are left as they are.
"""

from pathlib import Path
from typing import Any

from temperance.errors import ArgumentError


def report(tree: Any, path: str | Path = "run.html") -> Path:
    """Write the page of a run to `path`, and return where it is."""
    if not hasattr(tree, "children") or "posterior" not in tree.children:
        raise ArgumentError(
            f"tree: wanted what `sample` or `load` returns, got {type(tree).__name__}"
        )
    from temperance.reports.run_page import run_page

    path = Path(path)
    path.write_text(run_page(tree), encoding="utf-8")
    return path
