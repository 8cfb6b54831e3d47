"""How figures are kept: a CSV of all rows, and a table of Markdown beside it.

A row is a dictionary with at least `value`, `unit` and `goal`; the table shows value and unit as one.
"""

import csv
import platform
from importlib.metadata import version

from rich.console import Console
from run_facts import machine

from temperance import __version__


def keep_figures(rows, out, title, text, packages):
    """Prints rows as they are found, and writes them to `out` with the table beside it as .md."""
    console, found = Console(), []
    for row in rows:
        console.print(*row.values())
        found.append(row)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, found[0])
        writer.writeheader()
        writer.writerows(found)
    out.with_suffix(".md").write_text(markdown(found, title, text, packages))


def markdown(rows, title, text, packages):
    names = ", ".join(f"{name} {version(name)}" for name in packages)
    facts = f"{machine()}. Python {platform.python_version()}, temperance {__version__}, {names}."
    shown = [row | {"value": f"{row['value']:.3g} {row['unit']}"} for row in rows]
    columns = [name for name in rows[0] if name != "unit"]
    lines = [[row[name] for name in columns] for row in shown]
    table = [line(columns), line(["---"] * len(columns)), *map(line, lines)]
    return "\n".join([f"# {title}", "", facts, "", text, "", *table, ""])


def line(cells):
    return "| " + " | ".join(map(str, cells)) + " |"
