"""`temperance crosscat`: the model and answers of Python, plain errors, a fit that stops well."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from temperance.cli import INTERRUPTED, MISTAKE, app
from temperance.cli.cells import parse_cells, parse_names, parse_pairs
from temperance.cli.fit_progress import FitProgress, fit_progress, words_of
from temperance.crosscat.estimator import CrossCat
from temperance.crosscat.frames.schema import Column, Schema
from temperance.errors import ArgumentError, UnknownNameError

COMMAND = [sys.executable, "-c", "from temperance.cli import app; app(prog_name='temperance')"]
QUICK = ["--states", "2", "--passes", "2", "--seed", "3", "--no-progress"]
SCHEMA = Schema(
    (
        Column("town", "categorical", values=("York", "Leeds")),
        Column("member", "boolean", values=(False, True)),
        Column("age", "real"),
        Column("eggs", "count"),
    )
)
EVENT = SimpleNamespace(
    state=1, done=0.5, rows=1200, num_rows=5000, clusters=7, views=2, score=-3900.0, seconds=1.0
)
runner = CliRunner()


def call(*words: object):
    return runner.invoke(app, ["crosscat", *(str(word) for word in words)])


def made(num_rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, num_rows)
    frame = pd.DataFrame(
        {
            "name": [f"number {i}" for i in range(num_rows)],
            "town": np.where(rng.random(num_rows) < 0.1 + 0.8 * group, "York", "Leeds"),
            "age": np.round(rng.normal(30 + 20 * group, 3), 1),
            "eggs": rng.poisson(1 + 8 * group),
        }
    )
    holes = rng.random((num_rows, 3)) < 0.1
    frame[["town", "age", "eggs"]] = frame[["town", "age", "eggs"]].mask(holes)
    return frame


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("fitted")
    table, model = folder / "table.csv", folder / "model.zip"
    frame = made(80)
    frame.to_csv(table, index=False)
    said = call("fit", table, "--out", model, "--drop", "name", "--kind", "eggs=count", *QUICK)
    return SimpleNamespace(table=table, model=model, frame=frame, said=said, folder=folder)


def test_fit_shows_the_kinds_and_what_was_learned(fitted):
    assert fitted.said.exit_code == 0, fitted.said.output
    for words in ("town", "categorical", "left out: name", "as asked"):
        assert words in fitted.said.stderr
    assert "state 2: views" in fitted.said.stdout
    assert f"Saved to {fitted.model}" in fitted.said.stdout


def test_a_fit_by_options_is_the_fit_by_python(fitted):
    ours = CrossCat(passes=2, num_states=2, random_state=3)
    ours.fit(fitted.table, schema={"name": None, "eggs": "count"})
    theirs = CrossCat.load(fitted.model)
    np.testing.assert_array_equal(
        ours.score_samples(fitted.table), theirs.score_samples(fitted.table)
    )


def test_scores_are_the_models(fitted):
    said = call("score", fitted.model, fitted.table)
    assert said.exit_code == 0, said.output
    found = pd.read_csv(io.StringIO(said.stdout))["log_density"]
    known = CrossCat.load(fitted.model).score_samples(fitted.table)
    np.testing.assert_allclose(found, known, rtol=1e-12)
    assert f"mean of 80 rows: {known.mean():.4f}" in said.stderr


def test_missing_cells_are_filled_and_others_stay(fitted):
    out, sure = fitted.folder / "filled.csv", fitted.folder / "sure.parquet"
    said = call("impute", fitted.model, fitted.table, "--out", out, "--uncertainty", sure)
    assert said.exit_code == 0, said.output
    filled, known = pd.read_csv(out), fitted.frame.notna()
    assert list(filled) == list(fitted.frame)
    assert filled.notna().all(axis=None)
    for name in filled:
        here = known[name]
        assert filled[name][here].tolist() == fitted.frame[name][here].tolist()
    assert len(pd.read_parquet(sure)) == int((~known).sum().sum())


def test_rows_are_drawn_with_what_is_given(fitted):
    words = ["--num", 6, "--given", "town=york", "--columns", "eggs,town", "--seed", 1]
    said = call("sample", fitted.model, *words)
    assert said.exit_code == 0, said.output
    drawn = pd.read_csv(io.StringIO(said.stdout))
    assert list(drawn) == ["eggs", "town"]
    assert drawn["town"].tolist() == ["York"] * 6
    assert call("sample", fitted.model, *words).stdout == said.stdout


def test_dependence_is_written_and_drawn(fitted):
    picture = fitted.folder / "dependence.png"
    said = call("dependence", fitted.model, "--picture", picture)
    assert said.exit_code == 0, said.output
    found = pd.read_csv(io.StringIO(said.stdout), index_col=0)
    pd.testing.assert_frame_equal(found, CrossCat.load(fitted.model).dependence())
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["fit", "TABLE", "--kind", "age"], "--kind: wanted name=value, got 'age'"),
        (["fit", "TABLE", "--kind", "age=rael"], "did you mean 'real'?"),
        (["fit", "TABLE", "--kind", "agge=real"], "did you mean 'age'?"),
        (["fit", "TABLE", "--drop", "nam"], "did you mean 'name'?"),
        (["fit", "TABLE", "--model", "croscat"], "did you mean 'crosscat'?"),
        (["fit", "TABLE", "--strategy", "aneal", "--no-progress"], "anneal"),
        (["fit", "TABLE", "--states", "0"], "num_states"),
        (["fit", "TABLE", "--passes", "-1"], "passes"),
        (["fit", "TABLE", "--out", "no/such/folder/model.zip"], "there is no folder"),
        (["score", "nowhere.tmp", "TABLE"], "nowhere.tmp: there is no such file"),
        (["score", "TABLE", "TABLE"], "table.csv"),
        (["score", "MODEL", "TABLE", "--out", "scores.txt"], "ends in .csv or .parquet"),
        (["sample", "MODEL", "--given", "twon=York"], "did you mean 'town'?"),
        (["sample", "MODEL", "--given", "town=Hull"], "Hull"),
        (["sample", "MODEL", "--given", "age=old"], "wanted a number, got 'old'"),
        (["sample", "MODEL", "--columns", "agge"], "did you mean 'age'?"),
        (["sample", "MODEL", "--num", "-1"], "wanted a whole number of rows"),
        (["dependence", "MODEL", "--picture", "no/such/folder/d.png"], "there is no folder"),
    ],
)
def test_mistakes_are_said_in_one_line(words, said, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"TABLE": str(fitted.table), "MODEL": str(fitted.model)}
    got = call(*(places.get(word, word) for word in words))
    assert got.exit_code == MISTAKE, got.output
    last = got.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert said in last
    assert "Traceback" not in got.output


def test_pairs_and_cells_become_values():
    assert parse_pairs("--kind", ["a=real", "b c=x=y"]) == {"a": "real", "b c": "x=y"}
    with pytest.raises(ArgumentError, match="twice"):
        parse_pairs("--kind", ["a=real", "a=count"])
    given = ["town=york", "member=TRUE", "age=40", "eggs=3"]
    found = parse_cells("--given", given, SCHEMA)
    assert found == {"town": "York", "member": True, "age": 40.0, "eggs": 3}
    assert [type(value) for value in found.values()] == [str, bool, float, int]
    assert parse_names("--columns", " eggs, age", SCHEMA) == ["eggs", "age"]
    with pytest.raises(UnknownNameError):
        parse_names("--columns", "x", SCHEMA)


def test_progress_says_what_a_state_is_like():
    assert words_of(EVENT) == "1,200 of 5,000 rows, 7 clusters, 2 views, score -3.250 a row"
    seen = []

    class Bars:
        def add_task(self, label, **rest):
            return label

        def update(self, task, **rest):
            seen.append((task, rest))

    assert FitProgress(Bars())(EVENT) is False
    assert seen == [("state 2", {"completed": 0.5, "words": words_of(EVENT)})]


def test_the_first_control_c_asks_and_the_second_ends():
    before = signal.getsignal(signal.SIGINT)
    with fit_progress(False) as heard:
        assert heard(EVENT) is False
        signal.raise_signal(signal.SIGINT)
        assert heard(EVENT) is True
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_control_c_saves_the_model_as_it_is(tmp_path: Path):
    table, model = tmp_path / "table.csv", tmp_path / "model.zip"
    made(5000).to_csv(table, index=False)
    words = ["crosscat", "fit", table, "--out", model, "--drop", "name", "--states", "1"]
    process = subprocess.Popen(
        [*COMMAND, *map(str, words), "--passes", "1000000"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=os.environ, text=True,
    )  # fmt: skip
    time.sleep(60)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED, (said, complaints)
    assert "Saved to" in said
    assert np.isfinite(CrossCat.load(model).score_samples(table)).all()
