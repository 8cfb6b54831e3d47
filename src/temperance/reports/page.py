"""HTML that stands alone: one style sheet, pictures as data, tables, everything escaped."""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape

from matplotlib.figure import Figure

STYLE = """
:root { --ink: #1f2630; --soft: #5b6675; --line: #dfe3e8; --back: #f6f7f9; --card: #ffffff;
        --accent: #2b6a99; --warn: #9a3b1f; --warn-back: #fbeee9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #a3adb9; --line: #363d47; --back: #15191e; --card: #1e242b;
          --accent: #7db8e0; --warn: #f0a88e; --warn-back: #38231c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 2.2rem 1.2rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 0 0 .6rem; }
p { margin: 0 0 .8rem; max-width: 76ch; }
.lead, .note, footer { color: var(--soft); }
.note { font-size: .9rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
          padding: 1.1rem 1.3rem; margin: 1.1rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .35rem 1rem .35rem 0; border-bottom: 1px solid var(--line);
         vertical-align: top; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.words, th.words { text-align: left; white-space: normal; min-width: 16rem; }
th { color: var(--soft); font-weight: 600; }
figure { margin: .4rem 0 .8rem; }
img { display: block; width: 100%; height: auto; background: #fff; border-radius: 6px; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .4rem; max-width: 86ch; }
ul.warnings { list-style: none; margin: 0; padding: 0; }
ul.warnings li { background: var(--warn-back); color: var(--warn); border-radius: 6px;
                 padding: .5rem .8rem; margin: .4rem 0; }
pre { overflow-x: auto; font-size: .8rem; line-height: 1.45; margin: 0; }
footer { font-size: .85rem; margin-top: 1.5rem; }
"""


def page(title: str, lead: str, sections: Iterable[str], footer: str) -> str:
    """The whole page; `sections` are already HTML, the rest is text."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n'
        + "\n".join(sections)
        + f"\n<footer>{escape(footer)}</footer>\n</main>\n</body>\n</html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """A card with a heading; `parts` are already HTML."""
    return f"<section>\n<h2>{escape(heading)}</h2>\n" + "\n".join(parts) + "\n</section>"


def paragraph(text: str, kind: str = "") -> str:
    """Plain text; `kind` is a class of the style sheet."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: str = "") -> str:
    """A table of strings; the column called `words` holds sentences and may wrap."""

    def cell(tag: str, column: str, text: str) -> str:
        kind = ' class="words"' if column == words else ""
        return f"<{tag}{kind}>{escape(text)}</{tag}>"

    head = "".join(cell("th", column, column) for column in columns)
    body = "\n".join(
        "<tr>" + "".join(cell("td", c, t) for c, t in zip(columns, row, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def warnings(sentences: Sequence[str]) -> str:
    """Warnings, or the news that there are none."""
    if not sentences:
        return paragraph("No warnings: chains agree and the ladder works.")
    items = "".join(f"<li>{escape(words[:1].upper() + words[1:])}.</li>" for words in sentences)
    return f'<ul class="warnings">{items}</ul>'


def notes(sentences: Sequence[str]) -> str:
    """Notes, under a word that says so; nothing if there are none."""
    if not sentences:
        return ""
    items = "".join(f"<li>{escape(words[:1].upper() + words[1:])}.</li>" for words in sentences)
    lead = paragraph("Notes, which are no reason for distrust:", "note")
    return f'{lead}<ul class="note">{items}</ul>'


def code(text: str) -> str:
    """Text as it stands."""
    return f"<pre>{escape(text)}</pre>"


def picture(figure: Figure, caption: str, dpi: int = 130) -> str:
    """The figure as PNG inside the page; the caption is also what a screen reader says."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return (
        f'<figure><img alt="{escape(caption, quote=True)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
