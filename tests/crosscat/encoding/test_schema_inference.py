"""Kinds are guessed as one would, shown, overridden, and kept as plain JSON."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from temperance.crosscat.encoding.features import COUNT, NARROW, REAL, WIDE, Features
from temperance.crosscat.encoding.resolution import decimals_of, measure, round_to
from temperance.crosscat.encoding.schema_inference import guess_schema
from temperance.crosscat.frames.schema import Column, Schema
from temperance.errors import ArgumentError, DataError, FileFormatError, UnknownNameError


def kind_of(cells, **overrides) -> str:
    return guess_schema({"x": cells}, overrides)["x"].kind


def measured(values, epsilon=2.3e-16):
    return measure(*np.unique(np.asarray(values), return_counts=True), epsilon)


# --- Guesses -------------------------------------------------------------------------------------


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda rng: rng.random(100) < 0.5, "boolean"),
        (lambda _: np.ones(9, bool), "boolean"),
        (lambda rng: rng.integers(0, 2, 100), "boolean"),
        (lambda rng: rng.integers(0, 2, 100).astype(float), "boolean"),
        (lambda _: ["yes", "no", None], "boolean"),
        (lambda _: np.arange(1000) == 3, "boolean"),
        (lambda _: (np.arange(1000) == 3).astype(int), "categorical"),  # a 2 may come
        (lambda rng: rng.choice([0, 54540], 100), "categorical"),
        (lambda rng: rng.choice(["red", "blue"], 100), "categorical"),
        (lambda _: [f"name {i}" for i in range(500)], "categorical"),
        (lambda rng: rng.integers(0, 17, 1000), "categorical"),
        (lambda rng: rng.integers(-8, 9, 1000), "categorical"),
        (lambda _: np.zeros(50, int), "categorical"),
        (lambda _: np.full(50, 3.7), "categorical"),
        (lambda _: [None] * 5, "categorical"),
        (lambda _: np.full(5, np.nan), "categorical"),
        (lambda rng: rng.poisson(20, 1000), "count"),
        (lambda rng: rng.negative_binomial(10, 0.3, 1000), "count"),
        (lambda rng: rng.poisson(20.0, 1000).astype(float), "count"),
        (lambda rng: rng.integers(1900, 2000, 1000), "real"),  # less variance than any count
        (lambda rng: rng.integers(0, 100, 1000), "real"),
        (lambda rng: rng.integers(-50, 50, 1000), "real"),
        (lambda rng: np.exp(rng.normal(6, 3, 1000)).astype(int) + 1, "real"),
        (lambda rng: rng.normal(size=1000), "real"),
        (lambda rng: np.round(rng.normal(size=1000), 2), "real"),
        (lambda _: [1, 2, 3, 4], "count"),
        (lambda rng: rng.choice([0.25, 0.5, 0.75, 1.25], 100), "real"),
        (lambda rng: np.where(rng.random(1000) < 0.8, 0, rng.integers(0, 5000, 1000)), "spike"),
        (lambda rng: np.where(rng.random(1000) < 0.8, 1.0, rng.random(1000)), "spike"),
        (lambda _: np.datetime64("2020-01-01") + np.arange(50), "real"),
    ],
)
def test_guesses(rng, make, kind):
    assert kind_of(make(rng)) == kind


def test_whole_numbers_with_missing_cells_are_guessed_as_whole(rng):
    """pandas makes floats of such a column, polars and Arrow do not."""
    cells = rng.integers(0, 9, 500).astype(float)
    cells[::7] = np.nan
    column = guess_schema({"x": cells})["x"]
    assert column.kind == "categorical"
    assert column.values == tuple(range(9))
    assert all(type(value) is int for value in column.values)
    assert column.num_missing == 72


def test_a_declared_categorical_is_one(rng):
    cells = pd.Categorical(rng.integers(0, 500, 1000))
    assert guess_schema(pd.DataFrame({"x": cells}))["x"].kind == "categorical"


def test_text_that_looks_like_numbers_is_remarked_on():
    cells = [*map(str, range(50)), "unknown", *map(str, range(50))]
    assert "'unknown'" in guess_schema({"x": cells})["x"].why


def test_kdd_shape(rng):
    """The columns of a table of connections: bytes, mostly zeros, a constant, rates, labels."""
    n = 2000
    schema = guess_schema(
        {
            "duration": np.where(rng.random(n) < 0.97, 0, rng.integers(1, 58_000, n)),
            "protocol": rng.choice(["tcp", "udp", "icmp"], n),
            "src_bytes": np.exp(rng.normal(6, 2, n)).astype(np.int64),
            "logged_in": rng.integers(0, 2, n),
            "urgent": np.where(np.arange(n) == 7, 1, 0),
            "num_outbound_cmds": np.zeros(n, int),
            "count": rng.integers(0, 512, n),
            "serror_rate": np.where(rng.random(n) < 0.8, 0, np.round(rng.random(n), 2)),
        }
    )
    kinds = [column.kind for column in schema.columns]
    wanted = "spike categorical real boolean categorical categorical real spike"
    assert " ".join(kinds) == wanted
    assert schema["duration"].spike == 0
    assert schema["duration"].resolution == 1
    assert schema["serror_rate"].resolution == 0.01
    assert schema["num_outbound_cmds"].values == (0,)
    features = Features.of(schema)
    assert features.widths == (6, 0, 4, 0)
    assert features.of_column(0) == (0, 1)
    assert features.family.tolist() == [0, 2, 0, 2, 0, 0, 0, 2, 0, 2]
    assert features.place.tolist() == [0, 0, 1, 1, 2, 3, 4, 2, 5, 3]
    assert features.num_values.tolist() == [2, 0, 3, 0, 2, 2, 1, 0, 2, 0]


def test_hospital_shape(rng):
    """A name for each row and real columns with one decimal, two, or none."""
    n = 307
    table = {"NAME": [f"place {i}" for i in range(n)]}
    for place in range(21):
        table[f"spending_{place}"] = rng.normal(40_000, 9_000, n).astype(int)
        table[f"days_{place}"] = np.round(rng.normal(20, 4, n), 1)
        table[f"ratio_{place}"] = np.round(rng.normal(1, 0.2, n), 2)
    schema = guess_schema(table, {"NAME": None})
    assert schema.left_out == ("NAME",)
    assert {column.kind for column in schema.columns} == {"real"}
    assert {column.resolution for column in schema.columns} == {1.0, 0.1, 0.01}
    assert "leave it out" in guess_schema(table)["NAME"].why


# --- Shown ---------------------------------------------------------------------------------------


def test_a_schema_shows_every_column():
    frame = {"age": [31.5, None, 40.2], "colour": ["red", "blue", "red"], "id": [1, 2, 3]}
    schema = guess_schema(frame, {"id": None})
    lines = str(schema).splitlines()
    assert lines[0].split() == ["column", "kind", "distinct", "missing", "why"]
    assert lines[1].split() == ["age", "real", "2", "1", "numbers"]
    assert lines[2].split()[:4] == ["colour", "categorical", "2", "0"]
    assert "'blue', 'red'" in lines[2]
    assert lines[3] == "left out: id"
    console = Console(width=100, file=io.StringIO())
    console.print(schema)
    text = console.file.getvalue()
    assert all(word in text for word in ("age", "colour", "'blue'", "left out"))


# --- Overrides -----------------------------------------------------------------------------------


def test_overrides():
    frame = {"zip": np.arange(10_000, 10_400), "age": np.arange(400) % 7, "n": np.arange(400)}
    schema = guess_schema(frame, overrides={"zip": "categorical", "age": "real", "n": "count"})
    assert [column.kind for column in schema.columns] == ["categorical", "real", "count"]
    assert len(schema["zip"].values) == 400
    assert {column.why for column in schema.columns} == {"as asked"}
    assert Features.of(schema).family.tolist() == [WIDE, REAL, COUNT]
    mine = Column("age", "categorical", values=(0, 1, 2, 3, 4, 5, 6, 7))
    assert guess_schema(frame, {"age": mine})["age"] is mine
    assert guess_schema(frame, [mine])["age"] is mine
    assert guess_schema(frame, schema) == schema
    assert Features.of(guess_schema(frame, [mine])).family[1] == NARROW
    assert schema.changed(mine)["age"] is mine


def test_text_of_numbers_can_be_made_numbers():
    schema = guess_schema({"x": ["1.5", "2.25", None, "7"]}, {"x": "real"})
    assert schema["x"].resolution == 0.25
    with pytest.raises(DataError, match=r"column 'x': row 1 .* 'many'"):
        guess_schema({"x": ["1", "many"]}, {"x": "real"})
    with pytest.raises(DataError, match=r"column 'x': row 0 .* -1"):
        guess_schema({"x": [-1, 2]}, {"x": "count"})
    with pytest.raises(DataError, match=r"column 'x': row 1 .* 2.5"):
        guess_schema({"x": [1, 2.5]}, {"x": "count"})


@pytest.mark.parametrize("kind", ["categorical", "boolean", "real", "count", "spike"])
@pytest.mark.parametrize("cells", [[None, None], [0, 0], [1, 0], [True, None]])
def test_any_kind_can_be_asked_of_next_to_nothing(kind, cells):
    assert kind_of(cells, x=kind) == kind


def test_wrong_overrides():
    frame = {"age": [1, 2, 3], "colour": ["red", "blue", "green"]}
    with pytest.raises(UnknownNameError, match="did you mean 'age'"):
        guess_schema(frame, {"aeg": "real"})
    with pytest.raises(UnknownNameError, match=r"kind of column 'age'.*did you mean 'real'"):
        guess_schema(frame, {"age": "reel"})
    with pytest.raises(ArgumentError, match="overrides"):
        guess_schema(frame, {"age": Column("colour", "real")})
    with pytest.raises(ArgumentError, match="overrides: wanted a dictionary"):
        guess_schema(frame, "real")
    with pytest.raises(DataError, match=r"column 'colour': a boolean column has two values, got 3"):
        guess_schema(frame, {"colour": "boolean"})
    with pytest.raises(DataError, match="at least one column"):
        guess_schema(frame, {"age": None, "colour": None})


def test_wrong_columns():
    with pytest.raises(UnknownNameError, match="kind of column 'x'"):
        Column("x", "nominal")
    with pytest.raises(ArgumentError, match="two values"):
        Column("x", "boolean", values=(1, 2, 3))
    with pytest.raises(ArgumentError, match="scale"):
        Column("x", "real", scale=0.0)
    with pytest.raises(ArgumentError, match="not all different"):
        Column("x", "categorical", values=("a", "a"))
    with pytest.raises(DataError, match="two columns named 'x'"):
        Schema((Column("x", "real"), Column("x", "count")))
    with pytest.raises(UnknownNameError, match="did you mean 'age'"):
        Schema((Column("age", "real"),)).index("aeg")


# --- Resolution ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "resolution", "grid"),
    [
        ([3, 4, 9], 1.0, True),
        ([1990, 2000, 2010], 10.0, True),
        ([1, 3, 5], 1.0, True),
        ([0.11, 0.05, 0.3], 0.01, True),
        ([0.05, 0.15, 10.0], 0.05, True),
        ([1e-6, 3.0], 1e-6, True),
        ([7], 1.0, True),
        ([0], 1.0, True),
        ([-2.5], 0.1, True),
        ([0, 54540], 1.0, True),
        ([0, 200, 300, 500], 100.0, True),
        ([np.pi, np.e, 2**0.5], 1e-3 * np.std([np.pi, np.e, 2**0.5]), False),
        ([np.pi, np.pi + 1e-5, 9.0], 1e-5, False),
        ([2.0**80, 2.0**81], 1e-3 * 2.0**79, False),
    ],
)
def test_resolution(values, resolution, grid):
    found = measured(values)
    assert found.resolution == pytest.approx(resolution, rel=1e-6)
    assert found.grid is grid
    assert found.scale >= found.resolution * (1 - 1e-12)


def test_resolution_of_many_continuous_numbers_has_a_floor(rng):
    values = rng.normal(5, 2, 200_000)
    found = measured(values)
    assert found.resolution == pytest.approx(1e-9 * values.std(), rel=1e-3)
    assert found.centre == pytest.approx(values.mean())
    assert found.scale == pytest.approx(values.std())
    wide = measured(np.exp(rng.normal(0, 8, 10_000)))
    assert wide.resolution >= 1e-9 * wide.scale


def test_resolution_of_single_precision(rng):
    decimals = np.round(rng.random(200), 2).astype(np.float32)
    column = guess_schema({"x": decimals})["x"]
    assert column.grid
    assert column.resolution == 0.01
    far = (1e6 + rng.normal(size=200)).astype(np.float32)
    assert guess_schema({"x": far})["x"].resolution >= np.finfo(np.float32).eps * 1e6 / 2


def test_numbers_as_large_as_can_be():
    found = measured([-1e308, 1e308, 1.5e308])
    assert all(map(np.isfinite, found[:3]))


def test_rounding_gives_the_decimals_one_would_write(rng):
    for step in (0.01, 0.03, 0.05, 0.1, 0.000001, 1.0, 250.0):
        multiples = rng.integers(-1000, 1000, 100)
        wanted = np.round(multiples * step, decimals_of(step))
        noisy = wanted + step * rng.uniform(-0.49, 0.49, 100)
        assert np.array_equal(round_to(noisy, step), wanted)


# --- JSON ----------------------------------------------------------------------------------------


def test_json_keeps_everything():
    schema = Schema(
        (
            Column("text", "categorical", values=("a", "Ünicode", "1")),
            Column("whole", "categorical", values=(1, 2, 3)),
            Column("float", "categorical", values=(1.0, 2.5)),
            Column("truth", "boolean", values=(False, True)),
            Column("none", "categorical"),
            Column("x", "real", centre=1 / 3, scale=np.pi, resolution=0.01, grid=True, why="so"),
            Column("y", "spike", spike=-1.5, unit="seconds", num_missing=3),
            Column("n", "count", num_distinct=8),
        ),
        left_out=("id",),
    )
    told = schema.to_json()
    assert json.loads(told)["columns"][0] == {
        "name": "text", "kind": "categorical", "values": ["a", "Ünicode", "1"],
    }  # fmt: skip
    back = Schema.from_json(told)
    assert back == schema
    for one, other in zip(schema.columns, back.columns, strict=True):
        assert [type(value) for value in one.values] == [type(value) for value in other.values]
    for wrong in ("", "[]", '{"columns": [{"name": "x"}]}', '{"columns": [{"nom": "x"}]}'):
        with pytest.raises(FileFormatError, match="schema"):
            Schema.from_json(wrong)
