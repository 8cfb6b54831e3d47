"""Modules of a study as its own run finds them: by short names, from its folder or above."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

STUDIES = Path(__file__).parents[2] / "studies"


def part_of(study: Path) -> Any:
    """A fixture that imports modules of `study` by name, for the time of one test."""

    @pytest.fixture
    def part(monkeypatch):
        before = set(sys.modules)
        monkeypatch.syspath_prepend(study.parent)
        monkeypatch.syspath_prepend(study)
        yield importlib.import_module
        # Their names are short, and another study may have the same.
        for name in set(sys.modules) - before:
            if str(study.parent) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]

    return part
