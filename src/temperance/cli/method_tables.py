"""The methods' options as they are declared, as tables for the reference page.

    python -m temperance.cli.method_tables docs/reference/methods.md

writes them between the page's two marks, in place of what is there.
"""

import sys
from pathlib import Path

from temperance.engine.method import Method
from temperance.engine.options import Described, described
from temperance.methods import METHODS

BEGIN, END = "<!-- options: begin -->", "<!-- options: end -->"


def page_with_options(page: str) -> str:
    """The text of a page, with the options of all methods between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    parts = [BEGIN, *map(_section, METHODS.values()), END]
    return before + "\n\n".join(parts) + after


def _section(method: Method) -> str:
    heading = f"### `{method.name}`\n\n{method.summary[0].upper()}{method.summary[1:]}."
    known = described(method.options)
    if not known:
        return f"{heading} It has no options."
    rows = [_row(one) for one in known]
    return "\n".join(
        [heading, "", "| option | type | default | what it is |", "|---|---|---|---|", *rows]
    )


def _row(one: Described) -> str:
    kind, words = (text.replace("|", "\\|") for text in (one.kind, one.words))
    return f"| `{one.name}` | {kind} | `{one.default!r}` | {words} |"


def main(path: str) -> None:
    """Write the options into the page at `path`."""
    page = Path(path)
    page.write_text(page_with_options(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
