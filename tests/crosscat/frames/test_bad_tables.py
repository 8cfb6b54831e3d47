"""Tables that make no sense get a message that names the column and says what to do."""

import decimal
import gzip
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from temperance.crosscat.encoding.encoder import encode
from temperance.crosscat.encoding.schema_inference import guess_schema
from temperance.crosscat.encoding.table import make_table
from temperance.crosscat.frames.frame import open_frame
from temperance.crosscat.frames.schema import Column, Schema
from temperance.errors import DataError, FileFormatError, TemperanceError, UnknownNameError

MAKERS = pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])


# --- Shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": []}),
        pl.DataFrame({"a": []}),
        pl.LazyFrame({"a": []}),
        pa.table({"a": pa.array([], pa.int64())}),
        {"a": []},
        np.zeros((0, 3)),
    ],
)
def test_no_rows(frame):
    with pytest.raises(DataError, match=r"0 sample\(s\)"):
        guess_schema(frame)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(index=range(3)), pl.DataFrame(), pa.table({}), {}, np.zeros((3, 0)), []]
)
def test_no_columns(frame):
    with pytest.raises(DataError, match=r"0 feature\(s\) \(shape=\(\d*, 0\)\)"):
        guess_schema(frame)


def test_one_row():
    table = make_table({"x": [1.5], "colour": ["red"], "n": [3], "none": [None]})
    assert table.num_rows == 1


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=[1, "1"]),
        pa.table([[1], [2]], names=["a", "a"]),
        {1: [1], "1": [2]},
    ],
)
def test_two_columns_of_one_name(frame):
    with pytest.raises(DataError, match=r"two columns named '(a|1)': rename"):
        guess_schema(frame)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (np.zeros(3), "Reshape your data"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        ([1, 2, 3], "Reshape your data"),
        ([[1, 2], [3]], "rows of 1 cells and rows of 2"),
        ({"a": [1, 2], "b": [1]}, "column 'b' has 1 rows and column 'a' has 2"),
        ({"a": 3}, "column 'a': wanted an array or a list of cells, got 3"),
        ({"a": "text"}, "column 'a': wanted an array or a list"),
        (7, "wanted a pandas or polars frame.*got a builtins.int"),
        (scipy.sparse.eye(3), "wanted a pandas or polars frame.*scipy.sparse"),
        (pd.Series([1, 2]), "wanted a pandas or polars frame"),
    ],
)
def test_no_table_at_all(frame, words):
    with pytest.raises(DataError, match=words):
        guess_schema(frame)


# --- Cells ---------------------------------------------------------------------------------------


@MAKERS
def test_infinities(make):
    with pytest.raises(DataError, match=r"column 'x': row 2 \(from 0\) is -?inf, one of 2"):
        guess_schema(make({"x": [1.0, None, float("inf"), -float("inf")]}))
    schema = guess_schema({"x": [1.5, 2.5, 3.25]})
    with pytest.raises(DataError, match=r"column 'x': row 0"):
        encode(make({"x": [float("inf")]}), schema)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["a", 1, None], r"'a' \(str\) and 1 \(int\)"),
        ([True, 2], r"True \(bool\) and 2 \(int\)"),
        ([1.5, None, "x"], r"1.5 \(float\) and 'x' \(str\)"),
        ([1, pd.Timestamp("2020-01-01")], r"1 \(int\) and Timestamp"),
        ([[1], [2, 3]], r"cells are of type list, such as \[1\]"),
        ([{"a": 1}, None], "cells are of type dict"),
        ([1j, 2j], "cells are of type complex"),
    ],
)
def test_cells_of_several_types(cells, words):
    for frame in (pd.DataFrame({"x": cells}, dtype=object), {"x": cells}):
        with pytest.raises(DataError, match=f"column 'x': .*{words}"):
            guess_schema(frame)


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"x": [[1, 2], None, [3]]}),
        pl.DataFrame({"x": [{"a": 1}, {"a": 2}]}),
        pa.table({"x": [[1, 2], None, [3]]}),
        pa.table({"x": [{"a": 1}, {"a": 2}]}),
    ],
)
def test_nested_cells(frame):
    with pytest.raises(DataError, match=r"column 'x': cells are nested .* and .*; unpack"):
        guess_schema(frame)


def test_mixed_text_deep_in_a_column():
    cells = [f"w{i % 7}" for i in range(3000)] + [5]
    with pytest.raises(DataError, match=r"column 'x': .*'w0' \(str\) and 5 \(int\)"):
        guess_schema(pd.DataFrame({"x": cells}, dtype=object))


def test_arrays_that_hold_no_numbers():
    with pytest.raises(DataError, match="column 'x': cells of dtype complex128"):
        guess_schema({"x": np.array([1j])})
    with pytest.raises(DataError, match=r"column 'x': .*arrays of shape \(3,\)"):
        guess_schema({"x": np.zeros((2, 3))})
    with pytest.raises(DataError, match=r"column 'x': timedelta64.M. has no fixed length"):
        guess_schema({"x": np.array([1, 2], "m8[M]")})
    with pytest.raises(DataError, match=r"column 'x': .*not text in UTF-8"):
        guess_schema({"x": [b"\xff\xfe", b"a"]})


def test_unusual_numbers_work():
    assert guess_schema({"x": [decimal.Decimal("1.50"), decimal.Decimal("2.25")]})["x"].grid
    large = guess_schema({"x": [10**30, 3 * 10**30, 7]})["x"]
    assert large.kind == "real"
    assert guess_schema({"x": np.array([2**64 - 1, 5, 9], np.uint64)})["x"].kind == "real"
    assert guess_schema({"x": np.array([1.5, 2.5, 9], np.float16)})["x"].resolution == 0.5
    huge = make_table({"x": [-1.7e307, 1.7e307, 1e307]})
    assert np.isfinite(huge.cells.real).all()
    with pytest.raises(DataError, match=r"column 'x': row 0 .* too large"):
        make_table({"x": [-1.7e308, 1.7e308, 1e308]})


def test_dates_cannot_be_categories():
    frame = {"when": np.array(["2020-01-01", "2020-01-02"], "M8[D]")}
    with pytest.raises(DataError, match=r"column 'when': dates .* convert the column to text"):
        guess_schema(frame, {"when": "categorical"})
    schema = guess_schema(frame)
    with pytest.raises(DataError, match=r"column 'when': wanted days since.*got plain numbers"):
        encode({"when": [1, 2]}, schema)
    with pytest.raises(DataError, match="column 'when': wanted plain numbers, got days since"):
        encode(frame, Schema((Column("when", "categorical", values=(18262,)),)))


# --- New tables and an old schema ----------------------------------------------------------------


def test_columns_that_do_not_fit():
    schema = guess_schema({"age": [31, 40, 52], "colour": ["red", "blue", "red"]})
    with pytest.raises(UnknownNameError, match="unknown column 'aeg': did you mean 'age'"):
        encode({"aeg": [1], "colour": ["red"]}, schema)
    with pytest.raises(UnknownNameError, match="unknown column 'size'"):
        encode({"age": [1], "size": [3]}, schema, partial=True)
    with pytest.raises(DataError, match=r"column\(s\) 'colour' of the schema are not in it"):
        encode({"age": [1]}, schema)


@pytest.mark.parametrize(
    ("kind", "train", "new", "words"),
    [
        ("real", [1.5, 2.5, 7.1], ["many"], "row 0 .* 'many', which is not a number"),
        ("count", [1, 2, 3], [2, -1], "row 1 .* -1, and a count"),
        ("count", [1, 2, 3], [None, 1.5], "row 1 .* 1.5, and a count"),
        ("categorical", [1, 2, 3], ["one"], "the text 'one', and the known values are numbers"),
        ("real", [1.5, 2.5, 1e-300], [1.7e308], None),
    ],
)
def test_cells_that_do_not_fit(kind, train, new, words):
    schema = guess_schema({"x": train}, {"x": kind})
    if words is None:
        assert np.isfinite(encode({"x": new}, schema).real).all()
        return
    with pytest.raises(DataError, match=f"column 'x': .*{words}"):
        encode({"x": new}, schema)


def test_a_number_too_large_for_its_column():
    schema = Schema((Column("x", "real", scale=1e-10),))
    with pytest.raises(DataError, match=r"column 'x': row 1 .* too large"):
        encode({"x": [1.0, 1e300]}, schema)


# --- Files ---------------------------------------------------------------------------------------


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        open_frame(tmp_path / "none.csv")
    with pytest.raises(FileFormatError, match="no such file"):
        open_frame(str(tmp_path / "none.parquet"))
    for name, data, words in (
        ("empty.csv", b"", "empty"),
        ("header.csv", b"a,b\n", "0 sample"),
        ("ragged.csv", b"a,b\n1,2\n3\n", "row 2 has 1 cells and the first row has 2"),
        ("double.csv", b"a,a\n1,2\n3,4\n", "two columns named 'a'"),
        ("binary.csv", b"\xff\xfe\x00\x01", "UTF-8"),
        ("not.csv.gz", b"a,b\n1,2\n", "cannot be read as text"),
        ("cut.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20], "cannot be read"),
        ("text.parquet", b"a,b\n1,2\n", "cannot be read as parquet"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(TemperanceError, match=words):
            open_frame(path)


def test_a_long_line_deep_in_a_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1,2\n" * 100_000 + "1,2,3\n")
    with pytest.raises(FileFormatError, match="cannot be read as CSV"):
        open_frame(path)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'temperance\[parquet\]'"):
        open_frame(path)
