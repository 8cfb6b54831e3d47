"""Rows of files: the draws are those of arrays in memory, and nothing else is read."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zarr
from tests.rows import broken_source as broken
from tests.rows.stored_rows import NUM_ROWS, SHORT, make_problem, make_rows, store
from tests.shared.small_runs import assert_identical

import temperance as tp
from temperance.engine.fingerprint import fingerprint
from temperance.engine.loop import traces
from temperance.errors import CheckpointError, DataError, FileFormatError
from temperance.ladders.row_sums import rows_alone
from temperance.problems import checks
from temperance.problems.problem import densities_of
from temperance.programs import compiled as program
from temperance.rows.in_programs import is_remote, remote, taken
from temperance.rows.source import ArrayRows, RowSource, ZarrRows

ROOT = Path(__file__).parents[2]
KINDS = ["memmap", "zarr", "parquet"]
ROWS = make_rows()


def run(data: Any, **changes: Any) -> Any:
    return tp.sample(make_problem(data), **(SHORT | changes))


@pytest.fixture(scope="module")
def in_memory():
    """Runs on arrays in memory, compiled as a program that calls back is: as many kernels."""
    kept: dict[str, Any] = {}

    def of(**changes: Any) -> Any:
        if repr(changes) not in kept:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(program, "MOST_WORK", -1)
                kept[repr(changes)] = run(ROWS, **changes)
        return kept[repr(changes)]

    return of


# -- the same rows -------------------------------------------------------------------------------


def make_source(kind: str, folder: Path) -> RowSource:
    found = store(folder, kind, ROWS)["x"]
    return ArrayRows(found) if kind == "memmap" else found


@pytest.mark.parametrize("shape", [(), (1,), (40,), (3, 50), (2, 3, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_places(kind, shape, tmp_path, seed):
    source = make_source(kind, tmp_path)
    places = np.random.default_rng(seed).integers(0, NUM_ROWS, shape)
    places = places // 40 if len(shape) == 3 else places  # many twice
    np.testing.assert_array_equal(source.take(places), ROWS["x"][places])
    np.testing.assert_array_equal(source.read(), ROWS["x"])
    assert (source.shape, source.dtype) == ((NUM_ROWS,), np.float64)


def test_rows_with_axes_of_their_own(tmp_path):
    values = np.arange(600.0).reshape(100, 3, 2)
    array = zarr.create_array(tmp_path / "a.zarr", data=values, chunks=(7, 2, 1))
    places = np.array([[99, 0], [99, 41]])
    for source in (ArrayRows(values), ZarrRows(array), tp.open_rows(tmp_path / "a.zarr")):
        np.testing.assert_array_equal(source.take(places), values[places])


@pytest.mark.parametrize(
    "kind", [broken.SourceThatLeavesRowsSorted, broken.SourceThatCountsFromZeroInEveryGroup]
)
def test_other_rows_are_noticed(kind, tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", data=ROWS["x"], chunks=(700,))
    source = kind(array) if issubclass(kind, ZarrRows) else kind(ROWS["x"])
    assert not np.array_equal(source.take(np.array([5, 3])), ROWS["x"][[5, 3]])


@pytest.mark.parametrize(("x64", "floats", "whole"), [(True, "f8", "i8"), (False, "f4", "i4")])
def test_floats_follow_the_precision_and_whole_numbers_stay(x64, floats, whole):
    rows = {"x": ROWS["x"].astype(np.float32), "label": ROWS["label"].astype(">i8")}
    rows |= {"truth": ROWS["x"] > 0, "byte": ROWS["label"].astype(np.int8)}
    with jax.enable_x64(x64):
        data = remote({name: ArrayRows(values) for name, values in rows.items()}, jnp.asarray)
        places = jnp.asarray([7, 7, 2])
        found = jax.jit(taken)(data, places)
        assert {name: a.dtype.str[1:] for name, a in found.items()} == {
            "x": floats, "label": whole, "truth": "b1", "byte": "i1",
        }  # fmt: skip
        for name, values in rows.items():
            np.testing.assert_array_equal(found[name], values[[7, 7, 2]].astype(found[name].dtype))


# -- the same draws ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_the_same_wherever_the_rows_are(kind, tmp_path, in_memory):
    assert_identical(run(store(tmp_path, kind, ROWS)), in_memory())


OWN_BATCH = {"noise": "pseudo-marginal", "move": "mala", "exchange": 2}


@pytest.mark.slow
def test_so_are_those_of_a_state_that_keeps_its_batch(tmp_path, in_memory):
    data = store(tmp_path, "memmap", ROWS) | {"label": ROWS["label"]}
    assert_identical(run(data, **OWN_BATCH), in_memory(**OWN_BATCH))


@pytest.mark.slow
def test_rows_in_another_order_give_other_draws(in_memory):
    data = {name: broken.SourceThatLeavesRowsSorted(values) for name, values in ROWS.items()}
    with pytest.raises(AssertionError, match="posterior"):
        assert_identical(run(data), in_memory())


def test_another_file_of_the_same_shape_compiles_nothing(tmp_path):
    run(store(tmp_path, "zarr", ROWS))
    before = traces["run"]
    first = run(store(tmp_path, "memmap", ROWS))
    second = run(store(tmp_path, "memmap", make_rows(1)))
    assert traces["run"] == before
    assert not np.array_equal(*(tree["posterior"]["x"].values for tree in (first, second)))


def test_a_run_goes_on_with_its_file(tmp_path, in_memory):
    path = tmp_path / "run.zarr"
    run(store(tmp_path, "memmap", ROWS), num_draws=11, checkpoint=path)
    again = run(store(tmp_path, "memmap", ROWS), checkpoint=path)
    assert_identical(again, in_memory())
    other = {"x": ROWS["x"] + 1.0, "label": ROWS["label"]}
    with pytest.raises(CheckpointError, match=r"data \['x'\]: other values"):
        run(store(tmp_path, "memmap", other), checkpoint=path)


def test_a_sampler_by_hand_is_known_by_its_rows(tmp_path):
    def identity(rows: dict[str, np.ndarray]) -> Any:
        ladder = tp.RowLadder.of(make_problem(store(tmp_path, "zarr", rows)))
        params = tp.Params(jnp.ones((1, 1)), jnp.ones((1, 2)))
        sampler = tp.Plain(ladder, tp.mint(batch_size=8), params)
        return fingerprint({}, None, {"method": sampler}, 0)

    assert identity(ROWS) == identity(ROWS)
    assert identity(ROWS) != identity(make_rows(1))


# -- nothing else is read ------------------------------------------------------------------------


class Counted(ArrayRows):
    """Counts the rows that are read."""

    def __init__(self, array):
        super().__init__(array)
        self.num_read = 0

    def at(self, rows):
        self.num_read += rows.size
        return super().at(rows)


class CountedAll(Counted):
    """Asks for all rows whatever is asked of it."""

    def at(self, rows):
        return super().at(np.arange(self.shape[0]))[rows]


def reads_its_batches_alone(kind: type[Counted], folder: Path) -> bool:
    data = {name: kind(values) for name, values in ROWS.items()}
    tree = run(data, num_warmup=0, checkpoint=folder / "run.zarr")
    # A step evaluates the rows of its batch at both ends, and a chain that is content with its own
    # waits for the others. A few more rows try the terms, and a few more name the checkpoint.
    batches = tree["sample_stats"]["batch_rows"].max("chain").sum() / 2
    few = checks.FEW_ROWS + 32
    return all(s.num_read <= SHORT["num_chains"] * batches + few for s in data.values())


def test_only_rows_of_batches_are_read(tmp_path):
    assert reads_its_batches_alone(Counted, tmp_path)


def test_reading_more_is_noticed(tmp_path):
    assert not reads_its_batches_alone(CountedAll, tmp_path)


@pytest.mark.parametrize("kind", ["zarr", "parquet"])
def test_groups_are_read_once_and_kept_up_to_a_size(kind, tmp_path, monkeypatch):
    source = store(tmp_path, kind, ROWS)["x"]
    groups: list[int] = []
    group = type(source).group
    monkeypatch.setattr(type(source), "group", lambda self, n: groups.append(n) or group(self, n))
    many = np.arange(0, NUM_ROWS, 7)
    source.take(many)
    source.take(many)
    assert groups == list(range(len(source.starts) - 1))
    source.let_go()
    source.cache_bytes = 1  # the group in use
    source.take(many)
    source.take(many[:2])
    assert groups[-1] == 0
    assert len(source._kept) == 1


LIMIT = 2 * 2**30
FILE = 4 * 2**30


@pytest.mark.slow
def test_a_file_larger_than_memory(tmp_path):
    path = tmp_path / "large.npy"
    header = np.lib.format.header_data_from_array_1_0(np.zeros(0))
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header | {"shape": (FILE // 8,)})
        # A hole takes no disk, and reads as zeros.
        file.truncate(file.tell() + FILE)
    paths = os.pathsep.join([str(ROOT), str(Path(tp.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-m", "tests.rows.stored_rows", str(path), str(LIMIT)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == [
        "sampled",
        "could not be loaded",
        "could not read everything: True",
    ], done.stderr


# -- what is refused -----------------------------------------------------------------------------


def test_a_mapped_file_is_loaded_where_all_rows_are_needed(tmp_path):
    problem = make_problem(store(tmp_path, "memmap", ROWS))
    for by_rows in (False, True):
        densities: Any = densities_of(problem, by_rows=by_rows)
        leaves = jax.tree.leaves(densities.cold.data, is_leaf=is_remote)
        assert [is_remote(leaf) for leaf in leaves] == [by_rows, by_rows]


@pytest.mark.parametrize("method", ["pt", "spt", "plain"])
def test_other_methods_need_the_rows_in_memory(method, tmp_path):
    problem = make_problem(store(tmp_path, "zarr", ROWS))
    with pytest.raises(DataError, match=rf"method '{method}' needs all rows in memory.*'mint'"):
        tp.sample(problem, method)
    straight = make_problem({name: source.array for name, source in problem.data.items()})
    with pytest.raises(DataError, match="needs all rows in memory"):
        tp.sample(straight, method)


def test_a_source_is_not_read_unasked():
    with pytest.raises(DataError, match=r"all 3000 rows in memory; read them with .read\(\)"):
        np.asarray(ArrayRows(ROWS["x"]))


def test_a_source_that_gives_too_few_rows():
    class Short(ArrayRows):
        def at(self, rows):
            return super().at(rows)[:-1]

    with pytest.raises(DataError, match=r"asked for 2 rows it gave shape \(1,\), wanted \(2,\)"):
        Short(ROWS["x"]).take(np.array([3, 4]))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        ([1.0, 2.0], "a shape, a dtype and rows by index, got a list"),
        (np.float64(1.0), "rows on the leading axis"),
        (np.array(["a", "b"]), "wanted real numbers"),
        (np.ones(3, complex), "wanted real numbers"),
    ],
)
def test_what_is_no_source(array, words):
    with pytest.raises(DataError, match=words):
        ArrayRows(array)


def test_too_many_rows_to_number():
    rows = np.lib.stride_tricks.as_strided(np.zeros(1), (2**31,), (0,), writeable=False)
    problem = make_problem({"label": ArrayRows(rows), "x": ArrayRows(rows)})
    with pytest.raises(DataError, match="2147483648 rows, and mini-batch moves number them in 32"):
        rows_alone(problem, densities_of(problem, by_rows=True))


def write(path: Path, text: str = "nothing") -> Path:
    path.write_text(text)
    return path


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileFormatError, match="there is no such file"):
        tp.open_rows(tmp_path / "rows.npy")
    with pytest.raises(FileFormatError, match=r"wanted a .npy, .zarr or .parquet file"):
        tp.open_rows(write(tmp_path / "rows.csv"))
    with pytest.raises(FileFormatError, match=r"cannot be mapped as a .npy file"):
        tp.open_rows(write(tmp_path / "bad.npy"))
    with pytest.raises(FileFormatError, match="cannot be read as zarr"):
        tp.open_rows(write(tmp_path / "bad.zarr"))
    with pytest.raises(FileFormatError, match="cannot be read as parquet"):
        tp.open_rows(write(tmp_path / "bad.parquet"))
    np.save(tmp_path / "text.npy", np.array(["a", "b"]))
    with pytest.raises(DataError, match="wanted real numbers"):
        tp.open_rows(tmp_path / "text.npy")
    zarr.open_group(tmp_path / "empty.zarr", mode="w")
    with pytest.raises(DataError, match="there are no arrays in it"):
        tp.open_rows(tmp_path / "empty.zarr")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_by_name(kind, tmp_path):
    store(tmp_path, kind, ROWS)
    path = tmp_path / ("x.npy" if kind == "memmap" else f"rows.{kind}")
    if kind == "memmap":
        with pytest.raises(tp.TemperanceError, match="one array without names"):
            tp.open_rows(path, ["x"])
        return
    assert list(tp.open_rows(path, ["x"])) == ["x"]
    with pytest.raises(DataError, match=r"has no \['y'\], only \['label', 'x'\]"):
        tp.open_rows(path, ["x", "y"])
    with pytest.raises(tp.TemperanceError, match="wanted a list of names"):
        tp.open_rows(path, "x")


def test_columns_that_are_no_numbers(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = {"some": [1.0, None], "text": ["a", "b"], "lists": [[1.0], [2.0]]}
    parquet.write_table(pa.table(table), tmp_path / "rows.parquet")
    for name in ("text", "lists"):
        with pytest.raises(DataError, match=f"{name}.*wanted real numbers"):
            tp.open_rows(tmp_path / "rows.parquet", [name])
    some = tp.open_rows(tmp_path / "rows.parquet", ["some"])["some"]
    with pytest.raises(DataError, match=r"column 'some' has 1 missing value\(s\) in row group 0"):
        some.take(np.array([0]))


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'temperance\[parquet\]'"):
        tp.open_rows(write(tmp_path / "rows.parquet"))
