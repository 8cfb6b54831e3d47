"""The layout: tests mirror the source, folders are small, names say something, twins are in use.

Each rule is a function of the checkout that returns what breaks it, and a house with slips shows
that the rule can fail.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = Path("src/temperance"), Path("tests")
MOST_ENTRIES, MOST_FILES = 24, 16
# One file a method, however many there are.
ONE_FILE_EACH = SOURCE / "methods"
# Folders of tests that no folder of the source has.
OF_THEIR_OWN = {"benchmarks", "docs", "golden", "shared", "studies"}
# A name that fits every file says nothing about any of them.
EMPTY_NAMES = {"util", "helper", "misc", "common", "manager", "base"}


def python_files(folder: Path) -> Iterator[Path]:
    """Those that are ours: benchmarks keep what they install in a hidden folder."""
    for path in sorted(folder.rglob("*.py")):
        if not any(
            part[0] == "." or part == "__pycache__" for part in path.relative_to(folder).parts
        ):
            yield path


def without_a_mirror(root: Path) -> list[str]:
    """Folders with tests that mirror none of the source."""
    tests = root / TESTS
    folders = {path.parent.relative_to(tests) for path in python_files(tests)} - {Path()}
    mirrors = (folder for folder in folders if folder.parts[0] not in OF_THEIR_OWN)
    return sorted(str(folder) for folder in mirrors if not (root / SOURCE / folder).is_dir())


def crowded(root: Path) -> list[str]:
    """The top of the source, and folders of source and tests, with too much in them."""
    top = [path for path in (root / SOURCE).iterdir() if path.name != "__pycache__"]
    found = [f"{SOURCE}: {len(top)} entries"] if len(top) > MOST_ENTRIES else []
    for half in (SOURCE, TESTS):
        files = list(python_files(root / half))
        for folder in sorted({path.parent for path in files}):
            number = sum(path.parent == folder for path in files)
            if number > MOST_FILES and folder != root / ONE_FILE_EACH:
                found.append(f"{folder.relative_to(root)}: {number} files")
    return found


def named_for_nothing(root: Path) -> list[str]:
    """Files with an empty name, in the singular or the plural."""
    parts = ("src", "tests", "studies", "benchmarks", "examples")
    names = [path.relative_to(root) for part in parts for path in python_files(root / part)]
    return [str(path) for path in names if path.stem.strip("_").removesuffix("s") in EMPTY_NAMES]


def words_of(tree: ast.AST) -> set[str]:
    """Every name that code imports, looks up in a module, or reads."""
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            words |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.Name):
            words.add(node.id)
    return words


def names_defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def imported_by(tree: ast.AST) -> set[str]:
    """The modules that code imports, and what it imports of them, by their dotted names."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def idle_twins(root: Path) -> list[str]:
    """Twins that nothing uses, directly or by a table of twins, and those far from their tests."""
    trees = {path: ast.parse(path.read_text()) for path in python_files(root / TESTS)}
    imports = {path: imported_by(tree) for path, tree in trees.items()}
    found = []
    for path, tree in trees.items():
        if not path.stem.startswith("broken"):
            continue
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        users = [user for user, modules in imports.items() if module in modules]
        if not any(user.parent == path.parent for user in users):
            found.append(f"{module} is not beside the tests that use it")
        used = set().union(*(words_of(trees[user]) for user in users))
        defined = {name: node for node in tree.body for name in names_defined(node)}
        reached = {name for name in defined if name in used}
        while (
            more := {
                name for user in reached for name in words_of(defined[user]) if name in defined
            }
            - reached
        ):
            reached |= more
        found += [f"{module}.{name}" for name in defined if name not in reached]
    return sorted(found)


RULES = [without_a_mirror, crowded, named_for_nothing, idle_twins]


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps_the_rules(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


@pytest.fixture
def sloppy(tmp_path: Path) -> Path:
    """A small house with slips."""
    contents = {
        "src/temperance/moves/hmc.py": "",
        "src/temperance/moves/_utils.py": "",
        "tests/moves/test_hmc.py": "from tests.moves import broken\nbroken.Used, broken.ALL\n",
        "tests/moves/broken.py": (
            "class Used: ...\nclass Listed: ...\nclass Idle: ...\nALL = (Listed,)\n"
            "def alone(): ...\n"
        ),
        "tests/ladders/broken_ladder.py": "class Far: ...\n",
        "tests/moves/test_mala.py": "from tests.ladders.broken_ladder import Far\n",
        "tests/docs/test_pages.py": "",
        "benchmarks/.envs/lib/utils.py": "",
    }
    contents |= {f"src/temperance/rows/file{i}.py": "" for i in range(MOST_FILES + 1)}
    contents |= {f"src/temperance/top{i}.py": "" for i in range(MOST_ENTRIES - 1)}
    for name, text in contents.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (without_a_mirror, ["ladders"]),
        (
            crowded,
            [
                "src/temperance: 25 entries",
                "src/temperance: 23 files",
                "src/temperance/rows: 17 files",
            ],
        ),
        (named_for_nothing, ["src/temperance/moves/_utils.py"]),
        (
            idle_twins,
            [
                "tests.ladders.broken_ladder is not beside the tests that use it",
                "tests.moves.broken.Idle",
                "tests.moves.broken.alone",
            ],
        ),
    ],
)
def test_slips_are_found(rule: Callable[[Path], list[str]], found: list[str], sloppy: Path) -> None:
    assert rule(sloppy) == found
