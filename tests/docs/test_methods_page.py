"""The reference page of methods says what their declarations say."""

import re
from pathlib import Path

import pytest

from temperance.cli.method_tables import main, page_with_options
from temperance.methods import METHODS

PAGE = Path(__file__).parents[2] / "docs/reference/methods.md"


def test_the_page_is_what_the_declarations_give() -> None:
    text = PAGE.read_text()
    assert text == page_with_options(text), (
        "the options of a method have changed: write them into the page with `make reference`"
    )


@pytest.mark.parametrize(("old", "new"), [("`8`", "`9`"), ("### `tt`", "### `ttt`")])
def test_a_page_that_differs_is_noticed_and_mended(old: str, new: str, tmp_path: Path) -> None:
    text, copy = PAGE.read_text(), tmp_path / "methods.md"
    copy.write_text(text.replace(old, new))
    assert copy.read_text() not in (text, page_with_options(copy.read_text()))
    main(str(copy))
    assert copy.read_text() == text


def test_every_method_has_its_row() -> None:
    first = PAGE.read_text().split("## Options of a method")[0]
    assert set(re.findall(r"^\| `([\w-]+)`", first, re.M)) == set(METHODS)
