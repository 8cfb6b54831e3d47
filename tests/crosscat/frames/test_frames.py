"""The same table in any frame or file gives the same cells, and comes back from them."""

import datetime as dt
import gzip
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow.parquet import write_table

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.decoder import decode, decode_codes, decode_reals
from temperance.crosscat.encoding.encoder import encode
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.encoding.schema_inference import guess_schema
from temperance.crosscat.encoding.table import make_table
from temperance.crosscat.frames.frame import build_frame, open_frame
from temperance.crosscat.frames.schema import Column, Schema

FRAMES = {
    "pandas": pd.DataFrame,
    "pandas objects": lambda d: pd.DataFrame(d, dtype=object),
    "pandas nullable": lambda d: pd.DataFrame(d).convert_dtypes(),
    "pandas arrow": lambda d: pa.table(d).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "arrow": pa.table,
    "dict": lambda d: d,
    "dict of series": lambda d: {name: pd.Series(cells) for name, cells in d.items()},
    "dict of polars": lambda d: {name: pl.Series(cells) for name, cells in d.items()},
    "dict of arrow": lambda d: {name: pa.array(cells) for name, cells in d.items()},
    "rows": lambda d: [dict(zip(d, row, strict=True)) for row in zip(*d.values(), strict=True)],
}
TABLE = {
    "truth": [True, False, None, True, True, False],
    "text": ["b", "a", None, "", "  ", "b"],
    "whole": [3, None, 3, 70_000, 12, -4],
    "real": [0.5, 1.25, None, float("nan"), 7.0, -1.5],
    "none": [None] * 6,
}
KINDS = {"whole": "real"}


def columns_equal(one, other) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    return bool(np.all((one == other) | (pd.isna(one) & pd.isna(other))))


def same_cells(one: Cells, other: Cells) -> bool:
    return all(
        a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
        for a, b in zip(map(np.nan_to_num, one), map(np.nan_to_num, other), strict=True)
    )


# --- The same table in any frame -----------------------------------------------------------------


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_frame_gives_the_same(make):
    frame = make(TABLE)
    schema = guess_schema(frame, KINDS)
    assert schema.names == tuple(TABLE)
    kinds = [column.kind for column in schema.columns]
    assert kinds == ["boolean", "categorical", "real", "real", "categorical"]
    assert [column.num_missing for column in schema.columns] == [1, 3, 1, 2, 6]
    assert schema["text"].values == ("a", "b")
    cells = encode(frame, schema)
    assert all(matrix.flags.c_contiguous for matrix in cells)
    assert [matrix.dtype for matrix in cells] == [np.uint8, np.int32, np.float64, np.int64]
    assert cells.narrow[:, 0].tolist() == [1, 0, 3, 1, 1, 0]
    assert cells.narrow[:, 1].tolist() == [1, 0, 3, 3, 3, 1]
    assert cells.narrow[:, 2].tolist() == [1] * 6
    assert cells.real.shape == (6, 2)
    assert np.nanmean(cells.real, axis=0) == pytest.approx([0, 0], abs=1e-12)
    assert np.nanstd(cells.real, axis=0) == pytest.approx([1, 1])
    back = decode(cells, schema)
    assert columns_equal(back["truth"], TABLE["truth"])
    assert back["text"].tolist() == ["b", "a", None, None, None, "b"]
    assert columns_equal(back["whole"], np.array(TABLE["whole"], float))
    assert columns_equal(back["real"], np.array(TABLE["real"], float))
    assert back["none"].tolist() == [None] * 6


def test_numpy_arrays(seed):
    array = np.random.default_rng(seed).integers(0, 9, (200, 5))
    schema = guess_schema(array)
    assert schema.names == tuple(f"column_{place}" for place in range(5))
    for same in (array.astype(np.uint8), np.asfortranarray(array), array.tolist(), array * 1.0):
        assert guess_schema(same) == schema
        assert np.array_equal(encode(same, schema).narrow, array)
    fields = np.zeros(3, dtype=[("a", float), ("b", "U5"), ("c", "S5"), ("d", bool)])
    fields["b"], fields["c"] = ["x", "y", ""], [b"u", b"", b"v"]
    cells = encode(fields, guess_schema(fields))
    assert guess_schema(fields)["c"].values == ("u", "v")
    assert cells.narrow[:, 1].tolist() == [0, 1, 3]
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    assert guess_schema(masked)["column_1"].num_missing == 1


def test_names_that_are_not_text():
    schema = guess_schema(pd.DataFrame(np.arange(20).reshape(10, 2)))
    assert schema.names == ("0", "1")


def test_categorical_dtypes():
    words = ["low", "high", None, "low"]
    frames = [
        pd.DataFrame({"x": pd.Categorical(words, ["low", "middle", "high"])}),
        pl.DataFrame({"x": words}, schema={"x": pl.Categorical}),
        pl.DataFrame({"x": words}, schema={"x": pl.Enum(["low", "middle", "high"])}),
        pa.table({"x": pa.array(words).dictionary_encode()}),
    ]
    for frame in frames:
        schema = guess_schema(frame)
        assert schema["x"].values == ("high", "low")
        assert encode(frame, schema).narrow[:, 0].tolist() == [1, 0, 3, 1]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_dates_are_numbers_with_a_unit(make):
    times = {
        "day": [dt.date(2020, 1, 1), None, dt.date(2020, 3, 1), dt.date(1960, 5, 5)],
        "moment": [
            dt.datetime(2020, 1, 1, 12, 30, 0, 250_000),
            None,
            *[dt.datetime(1969, 1, 1)] * 2,
        ],
        "lasting": [dt.timedelta(days=1), None, dt.timedelta(seconds=0.5), dt.timedelta(0)],
        "clock": [dt.time(1, 2, 3), None, dt.time(23, 59, 59), dt.time(0, 0, 0, 7)],
    }
    schema = guess_schema(make(times))
    assert {column.kind for column in schema.columns} == {"real"}
    assert schema["day"].unit == "days since 1970-01-01"
    assert schema["moment"].unit == "seconds since 1970-01-01"
    assert schema["lasting"].unit == "seconds"
    assert schema["clock"].unit == "seconds since midnight"
    assert schema["day"].centre == pytest.approx(np.mean([18262, 18322, -3528]))
    cells = encode(make(times), schema, np.random.default_rng(0))
    back = decode(cells, schema)
    for name in ("day", "moment", "lasting"):
        assert back[name].tolist() == times[name], name
    assert back["clock"][0] == np.timedelta64(3723, "s")


def test_time_zones_are_brought_to_one():
    zone = dt.timezone(dt.timedelta(hours=2))
    moments = [dt.datetime(2020, 1, 1, 2, tzinfo=zone), dt.datetime(2020, 1, 1, 5, tzinfo=dt.UTC)]
    for frame in (pd.DataFrame({"x": pd.to_datetime(moments, utc=True)}), {"x": moments}):
        schema = guess_schema(frame)
        back = decode(encode(frame, schema), schema)["x"]
        assert back[0] == np.datetime64("2020-01-01T00:00")
        assert back[1] == np.datetime64("2020-01-01T05:00")


# --- Files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_csv_is_read_whatever_its_dialect(tmp_path, delimiter, ending):
    path = tmp_path / f"table.{ending}"
    text = 'name,age,weight\nann,31,\n"b, o; b|\tb",?,70.5\n,44,81.25\n'.replace(",", delimiter)
    text = text.replace(f'"b{delimiter} o', '"b, o')
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    opened = open_frame(path)
    assert opened.names == ("name", "age", "weight")
    assert opened.num_rows == 3
    assert opened.read("name").labels[0] == "ann"
    assert opened.read("name").num_missing == 1
    assert opened.read("age").present.tolist() == [31, 44]
    assert opened.read("weight").present.tolist() == [70.5, 81.25]
    assert guess_schema(str(path)) == guess_schema(path)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,x\n2,y\n", ["a", "b"]),
        ("0,tcp,1.5\n1,udp,2.5\n0,tcp,3.5\n", ["column_0", "column_1", "column_2"]),
        ("place,2019,2020\nhere,1,2\nthere,3,4\n", ["column_0", "column_1", "column_2"]),
        ("year,2019\n1,5\n2,6\n", ["year", "2019"]),
        ("colour,size\nred,big\nblue,small\n", ["colour", "size"]),
        ("red,big\nblue,small\nred,small\n", ["column_0", "column_1"]),
        (",a,b\n0,1,2\n1,3,4\n", ["column_0", "a", "b"]),
        ("x\n1\n\n3\n", ["x"]),
        ("\ufeffa,b\n1,2\n", ["a", "b"]),
        ("a,b\r\n1,2\r\n", ["a", "b"]),
        ('"a\nb",c\n1,2\n', ["a\nb", "c"]),
    ],
)
def test_csv_headers(tmp_path, text, names):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert open_frame(path).names == tuple(names)


def test_csv_blank_lines_are_missing_cells_of_one_column(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x\n1\n\n3\n")
    assert open_frame(path).read("x").missing.tolist() == [False, True, False]


def test_csv_keeps_codes_with_leading_zeros(tmp_path):
    path, other = tmp_path / "table.csv", tmp_path / "new.csv"
    path.write_text("zip,n\n01234,1\n56789,2\n01234,3\n")
    schema = guess_schema(path)
    assert schema["zip"].values == ("01234", "56789")
    other.write_text("zip,n\n56789,1\n11111,2\n")
    assert encode(other, schema).narrow[:, 0].tolist() == [1, 2]


def test_csv_text_that_only_looks_like_a_missing_mark_is_kept(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,y\nNone,1\nnone,2\nNA,3\n")
    assert guess_schema(path)["x"].values == ("None", "none")


def test_parquet(tmp_path, seed):
    rng = np.random.default_rng(seed)
    table = pa.table({"a": rng.normal(size=50), "a.b": rng.choice(["u", "v", None], 50)})
    write_table(table, tmp_path / "table.parquet", row_group_size=7)
    schema = guess_schema(table)
    assert guess_schema(tmp_path / "table.parquet") == schema
    assert same_cells(encode(tmp_path / "table.parquet", schema), encode(table, schema))


# --- Encoding ------------------------------------------------------------------------------------


def test_values_never_seen_and_columns_not_given():
    frame = {"colour": ["red", "blue", "red"], "n": [1, 1, 2], "x": [0.5, 0.25, 1.0]}
    schema = guess_schema(frame, {"n": "categorical"})
    new = encode({"colour": ["green", None], "n": [3, 2.5]}, schema, partial=True)
    assert new.narrow.tolist() == [[2, 2], [3, 2]]
    assert np.isnan(new.real).all()
    assert decode(new, schema)["colour"].tolist() == [None, None]
    assert encode(frame | {"other": [1, 2, 3]}, schema, extra=True).num_rows == 3
    text = encode({"colour": [1, 2], "n": ["1", "5"]}, schema, partial=True)
    assert text.narrow.tolist() == [[2, 0], [2, 2]]


def test_left_out_columns_may_come_again():
    frame = {"id": [1, 2, 3], "x": [0.5, 0.25, 1.0]}
    schema = guess_schema(frame, {"id": None})
    assert encode(frame, schema).num_rows == encode({"x": frame["x"]}, schema).num_rows


def test_values_in_any_order_and_type():
    column = Column("x", "categorical", values=(5, -3, 70_000_000, 2))
    schema = Schema((column,))
    cells = [5, 2, -3, 4, 70_000_000, -4, 10**12]
    for same in (np.array(cells), np.array(cells, float), [*map(str, cells)], [None, *cells][1:]):
        assert encode({"x": same}, schema).narrow[:, 0].tolist() == [0, 3, 1, 4, 2, 4, 4]
    small = Schema((Column("x", "categorical", values=(200, 0, 7)),))
    assert encode(np.array([[0], [7], [255]], np.uint8).T.T, Schema(
        (Column("column_0", "categorical", values=(200, 0, 7)),))
    ).narrow[:, 0].tolist() == [1, 2, 3]  # fmt: skip
    assert encode({"x": np.array([2**63 - 1, -(2**63)])}, small).narrow[:, 0].tolist() == [3, 3]


def test_a_hundred_thousand_categories(seed):
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i:06d}" for i in range(100_000)], object)
    order = rng.permutation(np.concatenate([np.arange(100_000), rng.integers(0, 100_000, 20_000)]))
    frame = pl.DataFrame({"x": words[order]})
    table = make_table(frame)
    assert table.features.widths == (0, 1, 0, 0)
    assert table.features.num_values.tolist() == [100_000]
    assert np.array_equal(table.cells.wide[:, 0], order)
    assert np.array_equal(decode(table.cells, table.schema)["x"], words[order])
    assert Schema.from_json(table.schema.to_json()) == table.schema


@pytest.mark.parametrize(("size", "family"), [(254, "narrow"), (255, "wide")])
def test_the_last_narrow_column(size, family):
    frame = {"x": [*map(str, range(size)), None]}
    table = make_table(frame)
    codes = getattr(table.cells, family)[:, 0]
    assert sorted(codes.tolist()) == [*range(size), size + 1]
    new = encode({"x": ["never", None]}, table.schema)
    assert getattr(new, family)[:, 0].tolist() == [size, size + 1]


def test_dither(seed):
    n = 4000
    rng = np.random.default_rng(seed)
    frame = {
        "x": np.round(rng.normal(3, 1, n), 1),
        "y": np.where(rng.random(n) < 0.6, 0, rng.normal(size=n)),
    }
    schema = guess_schema(frame)
    column = schema["x"]
    bare = encode(frame, schema)
    noisy = encode(frame, schema, np.random.default_rng(1))
    assert same_cells(noisy, encode(frame, schema, np.random.default_rng(1)))
    off = (noisy.real[:, 0] - bare.real[:, 0]) * column.scale / column.resolution
    assert np.abs(off).max() <= 0.5
    assert off.std() == pytest.approx(12**-0.5, rel=0.05)
    assert np.array_equal(decode(noisy, schema)["x"], frame["x"])
    assert np.array_equal(np.isnan(noisy.real), np.isnan(bare.real))


def test_spikes():
    cells = np.array([0, 0, 5, np.nan, 0, 7, 0, 0, 0, 9, -2, 0, 0])
    schema = guess_schema({"x": cells}, {"x": "spike"})
    found = encode({"x": cells}, schema, np.random.default_rng(0))
    assert found.narrow[:, 0].tolist() == [1, 1, 0, 3, 1, 0, 1, 1, 1, 0, 0, 1, 1]
    assert np.isnan(found.real[:, 0]).tolist() == [*(found.narrow[:, 0] != 0)]
    assert schema["x"].centre == np.mean([5, 7, 9, -2])
    assert columns_equal(decode(found, schema)["x"], cells)


def test_whole_numbers_come_back_whole():
    frame = {"a": np.arange(100) * 37 + 5, "b": np.arange(100) % 7, "n": np.arange(100)}
    schema = guess_schema(frame, {"a": "real", "b": "spike", "n": "count"})
    back = decode(encode(frame, schema, np.random.default_rng(0)), schema)
    for name, cells in frame.items():
        assert back[name].dtype == np.int64
        assert np.array_equal(back[name], cells)
    missing = encode({"a": [None], "b": [None], "n": [None]}, schema)
    assert missing.count.tolist() == [[-1]]
    assert all(np.isnan(cells).all() for cells in decode(missing, schema).values())


def test_constant_and_empty_columns_of_every_kind():
    for kind in ("categorical", "boolean", "real", "count", "spike"):
        for cells in ([0, 0, 0], [1, 1, 1], [None, None, None]):
            schema = guess_schema({"x": cells}, {"x": kind})
            table = make_table({"x": cells}, {"x": kind})
            assert table.schema == schema
            assert columns_equal(decode(table.cells, schema)["x"], cells), (kind, cells)


# --- Random round trips --------------------------------------------------------------------------


def random_column(rng: np.random.Generator, n: int):
    """Cells with some missing, and whether they come back exactly."""
    make = [
        lambda: rng.choice(["x", "y", "ü", "1.5", "0"], n).astype(object),
        lambda: (rng.random(n) < rng.random()).astype(object),
        lambda: rng.integers(-(10 ** rng.integers(1, 9)), 10 ** rng.integers(1, 9), n),
        lambda: rng.poisson(rng.gamma(2, 20), n),
        lambda: np.round(rng.normal(10.0 ** rng.integers(-2, 5), 5, n), rng.integers(0, 5)),
        lambda: np.where(rng.random(n) < 0.7, rng.integers(-3, 4), rng.integers(0, 999, n)),
        lambda: rng.integers(0, rng.integers(1, 30), n),
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-200, 200),
    ]
    kind = rng.integers(len(make))
    cells = make[kind]().astype(object)
    cells[rng.random(n) < rng.choice([0, 0.1, 0.9])] = None
    return cells.tolist(), kind != len(make) - 1


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_random_tables_come_back(seed, make):
    for trial in range(12):
        rng = np.random.default_rng([seed, trial])
        n = int(rng.integers(1, 200))
        columns = {f"c{place}": random_column(rng, n) for place in range(6)}
        frame = make({name: cells for name, (cells, _) in columns.items()})
        table = make_table(frame, seed=trial)
        schema = Schema.from_json(table.schema.to_json())
        assert schema == table.schema
        back = decode(table.cells, schema)
        for name, (cells, exact) in columns.items():
            if exact:
                assert columns_equal(back[name], np.array(cells, object)), (name, schema[name])
            else:
                here = ~pd.isna(np.array(cells, object))
                off = np.asarray(back[name], float)[here] - np.array(cells, object)[here].astype(
                    float
                )
                assert np.all(np.abs(off) <= 0.500001 * schema[name].resolution)
        bare = encode(frame, schema)
        again = encode(build_frame(decode(bare, schema), "polars"), schema)
        for one, other in zip(again, bare, strict=True):
            assert np.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_are_built_again(backend):
    back = decode(make_table(TABLE, KINDS).cells, guess_schema(TABLE, KINDS))
    frame = build_frame(back, backend)
    assert open_frame(frame).backend == backend
    assert same_cells(
        encode(frame, guess_schema(TABLE, KINDS)), encode(TABLE, guess_schema(TABLE, KINDS))
    )


def test_parts_of_decoding():
    column = Column("x", "categorical", values=("a", "b"))
    assert decode_codes(column, np.array([1, 0, 2, 3])).tolist() == ["b", "a", None, None]
    real = Column("x", "real", centre=10.0, scale=2.0, resolution=1.0, grid=True)
    assert decode_reals(real, np.array([0.1, 1.0])).tolist() == [10, 12]


# --- Size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [np.asarray, pd.DataFrame, pl.from_numpy], ids=["numpy", "pandas", "polars"]
)
def test_memory_is_the_cells_and_a_column_or_two(seed, make):
    n, width = 100_000, 40
    values = np.random.default_rng(seed).integers(0, 12, (n, width)).astype(np.uint8)
    frame = make(values)
    schema = guess_schema(frame)
    tracemalloc.start()
    try:
        cells = encode(frame, schema)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert cells.num_bytes == n * width
    assert peak <= cells.num_bytes + 2.5 * 8 * n


# --- The real files ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("TEMPERANCE_DATA"), reason="TEMPERANCE_DATA is not set")
def test_hospital_and_kdd():
    folder = Path(os.environ["TEMPERANCE_DATA"]) / "tables"
    hospital = make_table(folder / "hospital.csv", {"NAME": None})
    assert hospital.num_rows == 307
    assert {column.kind for column in hospital.schema.columns} == {"real"}
    assert Features.of(hospital.schema).widths == (0, 0, 63, 0)
    frame = pd.read_csv(folder / "hospital.csv")
    back = decode(hospital.cells, hospital.schema)
    assert all(np.array_equal(back[name], frame[name]) for name in hospital.schema.names)
    kdd = make_table(folder / "kddcup.data_10_percent.gz")
    assert kdd.num_rows == 494_021
    assert len(kdd.schema) == 42
    assert kdd.schema["column_19"].values == (0,)
    assert len(kdd.schema["column_41"].values) == 23
    frame = pd.read_csv(folder / "kddcup.data_10_percent.gz", header=None)
    back = decode(kdd.cells, kdd.schema)
    for place in range(42):
        assert columns_equal(back[f"column_{place}"], frame[place]), place
