"""Files that pages, docstrings and comments name exist, and hold what a page says is in them."""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Where a path in a page may begin; a page about tables leaves out `crosscat/`.
ROOTS = ("", "src/temperance", "tests", "studies", "benchmarks")
PARTS = ("src", "tests", "studies", "benchmarks", "examples")
# A reader's own file, what a test shows, and a file that every folder of one kind has.
NOBODYS = {"model.py", "file.py", "run.py", "broken.py"}
IN_BACKTICKS = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINKED = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"[\w./*<>-]*[\w>]\.py\b")
# `name` and `other` in `path.py`
PLACED = re.compile(r"((?:`[^`\n]+`(?:, | and )?)+) in (`[\w/]+\.py`(?:(?:, | and )`[\w/]+\.py`)*)")
NAME = re.compile(r"`(?:\w+\.)*(\w+)`")
DOTTED = re.compile(r"\btemperance(?:\.[A-Za-z_]\w*)+\b(?!\.\w)")


def pages() -> list[Path]:
    folders = ("docs", "studies", "benchmarks")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.md")]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(found)]


@functools.cache
def python_files() -> list[str]:
    found = (path for part in PARTS for path in (ROOT / part).rglob("*.py"))
    return [str(path.relative_to(ROOT)) for path in found]


def names_of_files(text: str) -> Iterator[str]:
    """The Python files that a text names in backticks or links to."""
    for pattern in (IN_BACKTICKS, LINKED):
        for match in pattern.finditer(text):
            yield from FILE.findall(match[1])


def meant(name: str, folder: Path) -> list[Path]:
    """The files that a name may stand for: a path from a root, or the only file of that name."""
    found = [ROOT / root / name for root in ROOTS] + [folder / name]
    there = {path.resolve() for path in found if path.is_file()}
    return list(there) or [ROOT / path for path in python_files() if path.endswith(f"/{name}")]


def missing(text: str, folder: Path) -> list[str]:
    """What a text names that is not there, or could be one of several."""
    found = dict.fromkeys(names_of_files(text))
    names = (name for name in found if name not in NOBODYS and "<" not in name)
    return [name for name in names if len(meant(name, folder)) != 1]


def missing_in_words(text: str, folder: Path) -> list[str]:
    """Files that the strings and comments of a source file name and that are not one file."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    words = (one.string for one in tokens if one.type in (tokenize.STRING, tokenize.COMMENT))
    found = dict.fromkeys(name for word in words for name in FILE.findall(word))
    names = (name for name in found if name not in NOBODYS and "<" not in name)
    return [name for name in names if len(meant(name, folder)) != 1]


def misplaced(text: str, folder: Path) -> list[str]:
    """Names that a text says are in a file which does not have them."""
    found = []
    for match in PLACED.finditer(text):
        files = FILE.findall(match[2])
        if any(len(meant(file, folder)) != 1 for file in files):
            continue  # told by `missing`
        there = set().union(*(names_in(meant(file, folder)[0]) for file in files))
        names = NAME.findall(match[1])
        found += [f"{name} in {', '.join(files)}" for name in names if name not in there]
    return found


def names_in(path: Path, *, imported: bool = False) -> set[str]:
    """Everything that a file defines: classes, functions, variables, arguments; or offers."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif imported and isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def unknown_modules(text: str) -> list[str]:
    """Dotted names of the package that are neither a module, nor something in one."""
    return [name for name in dict.fromkeys(DOTTED.findall(text)) if not known(name)]


def known(dotted: str) -> bool:
    """Whether a dotted name is a folder, a file, or a name that one of these has or offers."""
    *parts, last = dotted.split(".")
    path = ROOT / "src" / Path(*parts)
    if (path / last).is_dir() or (path / f"{last}.py").is_file():
        return True
    homes = [path.with_suffix(".py"), path / "__init__.py", path / "__init__.pyi"]
    return any(home.is_file() and last in names_in(home, imported=True) for home in homes)


def broken_links(text: str, folder: Path) -> list[str]:
    """Links to files of the checkout that are not there."""
    links = (link.split("#")[0] for link in LINKED.findall(text) if "://" not in link)
    return [link for link in links if link and not (folder / link).exists()]


per_page = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))


@per_page
def test_files_that_a_page_names_exist(page: Path) -> None:
    assert missing(page.read_text(), page.parent) == []


def test_files_that_the_source_names_exist() -> None:
    found = {}
    for path in (ROOT / "src").rglob("*.py"):
        if missed := missing_in_words(path.read_text(), path.parent):
            found[str(path.relative_to(ROOT))] = missed
    assert found == {}


@pytest.mark.parametrize("text", ["# as in moves/mhc.py\n", '"""See mhc.py."""\n'])
def test_a_file_that_a_docstring_or_comment_invents_is_found(text: str) -> None:
    assert missing_in_words(text, ROOT) == [FILE.findall(text)[0]]


@per_page
def test_what_a_page_places_in_a_file_is_there(page: Path) -> None:
    assert misplaced(page.read_text(), page.parent) == []


@per_page
def test_modules_that_a_page_names_exist(page: Path) -> None:
    assert unknown_modules(page.read_text()) == []


def test_a_module_that_is_not_there_is_found() -> None:
    right = "`temperance.moves`, `temperance.moves.hmc`, temperance.moves.hmc.hmc. `temperance.hmc`"
    assert unknown_modules(right) == []
    wrong = [
        "temperance.mooves",
        "temperance.moves.hcm",
        "temperance.moves.hmc.mala_",
        "temperance.x",
    ]
    assert unknown_modules(" ".join(wrong)) == wrong


@per_page
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert broken_links(page.read_text(), page.parent) == []


def test_a_link_to_nowhere_is_found() -> None:
    text = "[a](papers.md) [b](papers.md#here) [c](paper.md) [d](https://example.org/x) [e](#up)"
    assert broken_links(text, ROOT / "docs") == ["paper.md"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see `moves/hmc.py` and `model.py`", []),
        ("see `moves/mhc.py`", ["moves/mhc.py"]),
        ("[a link](../src/temperance/moves/mhc.py)", ["../src/temperance/moves/mhc.py"]),
        ("`auxiliary_pool.py` is one file", []),
        ("`tables.py` is one of many", ["tables.py"]),
    ],
)
def test_a_file_that_is_not_there_is_found(text: str, found: list[str]) -> None:
    assert missing(text, ROOT / "docs") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`hmc` in `moves/hmc.py`", []),
        ("`decide` and `Decision` in `moves/accept.py`", []),
        ("`decide`, `mala` in `moves/accept.py`", ["mala in moves/accept.py"]),
        ("`decide` in `moves/accept.py`, `hmc` in `moves/mala.py`", ["hmc in moves/mala.py"]),
        ("`PrefixLadder.mala` in `ladders/prefix.py`", ["mala in ladders/prefix.py"]),
    ],
)
def test_a_name_in_the_wrong_file_is_found(text: str, found: list[str]) -> None:
    assert misplaced(text, ROOT / "docs") == found
