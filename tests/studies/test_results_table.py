"""Finished runs are read back bit for bit, whoever else writes and whenever one is stopped."""

import dataclasses
import functools
import json
import math
import subprocess
import sys
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from tests.studies.study_parts import STUDIES, part_of

part = part_of(STUDIES / "ensembles")
LONG = [0.1 * i for i in range(100)]
CURVE = [[i, 0.1 * i, 1e-300, math.nan] for i in range(50)]
AWKWARD = {
    "floats": {"tiny": 5e-324, "sum": 0.1 + 0.2, "whole": 1.0, "minus": -0.0, "inf": math.inf},
    "whole": 1, "large": 2**70, "nan": math.nan, "yes": True, "nothing": None,
    "texts": {"words": "a, \"b\"; c", "number": "1.0", "nan": "NaN", "empty": "",
              "lines": "a\nb\r\nc", "array": "npz:0", "list": "[1]", "spaces": " 1",
              "accent": "Ångström"},
    "empty": {"list": [], "dictionary": {}},
    "short": [1, 2.0, None, "x", [], {"a": 1}],
    "rows": [{"method": "ais", "seconds": 0.5}] * 40,
    "long": LONG, "integers": list(range(200)), "truths": [True, False] * 50,
    "words": ["a", "bcd"] * 50,
    "curve": CURVE, "cube": np.arange(120.0).reshape(2, 3, 20).tolist(),
    # No array has these.
    "ragged": [LONG, LONG[:-1]], "holes": [*LONG, None], "mixed": [*LONG, 1],
    "deep": {"more": {"large": [2**70] * 70}},
}  # fmt: skip


def text(record):
    """What tells two records apart: types, signs and the last bit, but no order of names."""
    return json.dumps(record, sort_keys=True)


def test_a_record_is_read_back_bit_for_bit(part, tmp_path):
    results, path = part("results_table"), tmp_path / "kind.csv"
    results.add_run(path, "one", AWKWARD)
    assert text(results.read_runs(path)["one"]) == text(AWKWARD)
    results.add_run(path, "another", {"whole": 2})
    found = results.read_runs(path)
    assert list(found) == ["another", "one"]
    assert found["another"] == {"whole": 2}
    assert text(found["one"]) == text(AWKWARD)
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
        assert len(arrays.files) == 6
    cells = path.read_text()
    assert "0.30000000000000004" in cells
    assert str(LONG[50]) in cells  # the ragged list, which no array holds
    assert sorted(one.name for one in tmp_path.iterdir()) == ["kind.csv", "kind.npz"]


def test_numbers_of_numpy_are_kept_as_those_of_python(part, tmp_path):
    results, path = part("results_table"), tmp_path / "kind.csv"
    results.add_run(path, "one", {"x": np.float64(0.1), "n": np.int64(3), "pair": (1.0, 2)})
    assert text(results.read_runs(path)["one"]) == text({"x": 0.1, "n": 3.0, "pair": [1.0, 2]})


def test_a_run_takes_the_place_of_its_last(part, tmp_path):
    results, path = part("results_table"), tmp_path / "kind.csv"
    results.add_run(path, "one", {"long": LONG, "old": 1})
    results.add_run(path, "one", {"long": LONG[::-1]})
    assert results.read_runs(path) == {"one": {"long": LONG[::-1]}}
    with np.load(path.with_suffix(".npz")) as arrays:
        assert len(arrays.files) == 1
    results.add_run(path, "one", {"short": 1})
    assert [one.name for one in tmp_path.iterdir()] == ["kind.csv"]


def test_columns_come_in_the_order_of_records(part, tmp_path):
    results, path = part("results_table"), tmp_path / "kind.csv"
    results.add_run(path, "one", {"a": 1, "d": {"x": 1, "y": 2}})
    results.add_run(path, "two", {"a": 1, "b": 2, "d": {"y": 3, "z": 4}})
    assert path.read_text().splitlines()[0] == "name,a,b,d.x,d.y,d.z"


@pytest.mark.parametrize("record", [{"a.b": 1}, {"": 1}, {"name": "two"}, {"a": {"b.c": 1}}])
def test_names_that_a_table_has_for_itself_are_refused(part, tmp_path, record):
    results, path = part("results_table"), tmp_path / "kind.csv"
    with pytest.raises(ValueError, match="is named"):
        results.add_run(path, "one", record)
    assert results.read_runs(path) == {}


@pytest.mark.parametrize("step", range(4))
def test_a_stopped_process_leaves_the_old_table_or_the_new(part, tmp_path, monkeypatch, step):
    results, path = part("results_table"), tmp_path / "kind.csv"
    old = {"one": {"long": LONG, "at": 1}, "two": {"long": CURVE}}
    for name, record in old.items():
        results.add_run(path, name, record)
    new = {"long": LONG[::-1], "at": 2}
    replace, files = type(path).replace, []

    def stopped(self, target):
        if len(files) == step:
            raise KeyboardInterrupt
        files.append(target.name)
        return replace(self, target)

    with monkeypatch.context() as context:
        context.setattr(type(path), "replace", stopped)
        try:
            results.add_run(path, "one", new)
        except KeyboardInterrupt:
            pass
        else:
            assert step == 3
    wanted = old if step < 2 else old | {"one": new}
    assert text(results.read_runs(path)) == text(wanted)
    results.add_run(path, "three", {"at": 3})
    assert text(results.read_runs(path)) == text(wanted | {"three": {"at": 3}})
    with np.load(path.with_suffix(".npz")) as arrays:
        assert len(arrays.files) == 2


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from results_table import add_run
sys.stdin.read()
for i in range(15):
    add_run(Path(sys.argv[2]), f"{sys.argv[3]}-{i}", {"i": i, "long": [float(i)] * 100})
"""


def test_processes_that_finish_together_lose_nothing(part, tmp_path):
    results, path = part("results_table"), tmp_path / "kind.csv"
    command = [sys.executable, "-c", WRITER, str(STUDIES), str(path)]
    writers = [subprocess.Popen([*command, str(j)], stdin=subprocess.PIPE) for j in range(4)]
    for writer in writers:
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0] * 4
    found = results.read_runs(path)
    assert len(found) == 60
    assert all(one["long"] == [float(one["i"])] * 100 for one in found.values())


def test_a_study_goes_on_where_it_was_stopped(part, tmp_path):
    experiment = part("experiment")
    make = functools.partial(experiment.Experiment, "kind", "problem", 10, 2, "hmc", "plain")
    out = StringIO()

    def run(seconds, machine="here"):
        out.truncate(out.seek(0))
        console = Console(file=out, width=200)
        rows = [make(seconds, seed=seed) for seed in range(2)]
        # `vars` of a row is a result like any other, and a process finds it by its name.
        experiment.run_all(rows, tmp_path, {"kind": vars}, console, machine, 1, {"kind": 0.0})
        kept = experiment.read_all(tmp_path, machine)
        assert [row["seed"] for row in kept] == [0, 1]
        (took,) = {row["seconds"] for row in kept}
        return took, "2 of 2 experiments are already there" in out.getvalue()

    assert run(2.0) == (2.0, False)
    assert run(1.0) == (2.0, True)
    assert run(3.0) == (3.0, False)
    assert run(1.0, "elsewhere") == (1.0, False)
    assert experiment.read_all(tmp_path, "here") == []


def test_seconds_that_a_run_measures_do_not_make_it_wanting(part, tmp_path):
    experiment = part("experiment")
    row = experiment.Experiment("kind", "problem", 10, 2, "hmc", "plain", 2.0)
    experiment._run(row, lambda row: {"seconds": 0.1 * row.seconds}, tmp_path, "here")
    (kept,) = experiment.read_all(tmp_path, None)
    assert kept["seconds"] == 0.2
    assert not experiment._wanting(kept, row, "here")
    assert experiment._wanting(kept, row, "elsewhere")
    assert experiment._wanting(kept, dataclasses.replace(row, seconds=3.0), "here")


KEPT = sorted(STUDIES.glob("*/results/runs"))


@pytest.mark.parametrize("folder", KEPT, ids=[path.parts[-3] for path in KEPT])
def test_kept_runs_have_the_names_that_a_study_looks_for(part, folder):
    experiment, results = part("experiment"), part("results_table")
    fields = experiment.Experiment.__dataclass_fields__
    for path in folder.glob("*.csv"):
        runs = results.read_runs(path)
        for name, run in runs.items():
            row = experiment.Experiment(**{field: run[field] for field in fields})
            assert (row.name, row.kind) == (name, path.stem)
        assert list(runs) == sorted(runs)
    assert len(list(folder.glob("*"))) <= 20
