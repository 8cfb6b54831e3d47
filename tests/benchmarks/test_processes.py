"""benchmarks/processes.py: rows of other processes, and what is said of those that fail."""

import math
import sys

import pytest
from benchmarks.processes import json_rows, read_rows, write_rows


def rows_of(code, max_seconds=0):
    return list(json_rows([sys.executable, "-c", code], max_seconds))


def test_lines_of_json_are_rows_and_others_are_not():
    assert rows_of("print('noise'); print('{\"a\": 1}'); print('{\"a\": 2}')") == [
        {"a": 1},
        {"a": 2},
    ]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise ValueError('no such thing')", "ValueError: no such thing"),
        ("import os; os._exit(3)", "exit status 3"),
        ("import os; os.kill(os.getpid(), 11)", "exit status -11"),
    ],
)
def test_a_process_that_fails_is_an_error_in_words(code, words):
    with pytest.raises(RuntimeError, match=words):
        rows_of(code)


def test_a_process_that_takes_too_long_is_stopped():
    with pytest.raises(RuntimeError, match=r"stopped after 0\.5 s"):
        rows_of("import time; print('{}', flush=True); time.sleep(60)", 0.5)


def test_rows_come_back_from_a_csv_with_empty_cells_as_nan(tmp_path):
    path = tmp_path / "folder" / "rows.csv"
    assert read_rows(path, ["x"]) == []
    write_rows(path, ["name", "x"], [{"name": "one", "x": 0.25}, {"name": "two", "x": math.nan}])
    one, two = read_rows(path, ["x"])
    assert one == {"name": "one", "x": 0.25}
    assert math.isnan(two["x"])
