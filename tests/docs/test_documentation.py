"""Every example that a reader can see is run: docstrings, README and the pages under docs/.

Docstrings are read from the source, not from the imported objects: a decorator such as `jit` hides
a function from `doctest`, and an example that nobody runs looks just like one that passes. A page
is one program: its fenced `python` blocks run in order and share their names, in an empty folder.
A line `<!-- slow -->` anywhere in a page moves it to the slow tests.
"""

import ast
import doctest
import re
from pathlib import Path

import pytest

from temperance.methods import METHODS

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```", re.M | re.S)
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(path):
    """The docstrings in a source file, each with its owner's name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "module"), text


def fenced_blocks(text):
    """Python blocks as (line of the text, code)."""
    for match in FENCE.finditer(text):
        indent = match["indent"]
        code = "".join(line.removeprefix(indent) for line in match["code"].splitlines(True))
        yield text[: match.start("code")].count("\n") + 1, code


def run(text, name, namespace):
    """Run one docstring's or page's examples: `>>>` lines compared, other blocks executed."""
    for line, code in fenced_blocks(text):
        if ">>>" not in code:
            padded = "\n" * (line - 1) + code  # so that a traceback names the page's own line
            exec(compile(padded, name, "exec"), namespace)
    parsed = doctest.DocTestParser().get_doctest(text.replace("```", ""), namespace, name, name, 0)
    runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    try:
        runner.run(parsed, clear_globs=False)
    except doctest.DocTestFailure as failure:
        example = failure.example
        raise AssertionError(
            f"{name}: {example.source.strip()}\nexpected {example.want!r}\ngot {failure.got!r}"
        ) from None
    except doctest.UnexpectedException as unexpected:
        raise unexpected.exc_info[1] from None


def has_examples(text):
    return ">>>" in text or FENCE.search(text) is not None


def source_examples():
    for path in sorted((ROOT / "src").rglob("*.py")):
        for owner, text in docstrings(path):
            if has_examples(text):
                yield pytest.param(text, id=f"{path.relative_to(ROOT / 'src')}:{owner}")


def page_examples():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text() if path.exists() else ""
        if has_examples(text):
            marks = [pytest.mark.slow] if "<!-- slow -->" in text else []
            yield pytest.param(text, id=str(path.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("text", [*source_examples(), *page_examples()])
def test_example(text, request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = dict(METHODS)
    try:
        run(text, request.node.callspec.id, {"__name__": "__main__"})
    finally:  # a page may register methods of its own
        METHODS.clear()
        METHODS.update(before)


@pytest.mark.parametrize(
    "text",
    [
        ">>> 1 + 1\n3",
        ">>> 1 / 0",
        "```python\nassert 1 + 1 == 3\n```",
        "    ```python\n    undefined\n    ```",
        "```python\n>>> 1 + 1\n3\n```",
    ],
)
def test_wrong_example_is_rejected(text):
    with pytest.raises((AssertionError, ZeroDivisionError, NameError)):
        run(text, "wrong", {})


def test_names_last_from_block_to_block():
    run("```python\nx = 1\n```\nand then\n```python\nassert x == 1\n```", "page", {})
