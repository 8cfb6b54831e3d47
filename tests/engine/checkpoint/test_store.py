"""Blocks survive whatever happens to the process and to the files; nothing damaged is used."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zarr

import temperance
from temperance.engine.checkpoint import CheckpointWarning, Store, blocks, files, lock
from temperance.engine.fingerprint import host_array
from temperance.errors import ArgumentError, CheckpointError

MARK = {"seed": "0", "option:num_chains": "4"}
ROWS = 3


def fill(store: Store, until: int) -> None:
    """Append blocks whose whole content follows from their number."""
    begin = 0 if store.last is None else store.last.index + 1
    for i in range(begin, until):
        x = np.full((ROWS, 2), i, np.float32)
        store.append("sample", ROWS * i, {"x": x}, {"at": np.int64(i)}, {"i": i})


def faults(path: Path, at_least: int) -> list[str]:
    """What an honest store never shows when it is opened after a crash."""
    found = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        store = Store.open(path, MARK)
    with store:
        kept = store.blocks("sample")
        for i, block in enumerate(kept):
            if (block.draws["x"] != i).any() or block.leaves[0] != i or block.notes != {"i": i}:
                found.append(f"block {i} has another content")
        if len(kept) < at_least:
            found.append(f"{len(kept)} blocks of {at_least}")
        if list(path.glob(".tmp-*")):
            found.append("a temporary name is left over")
    return found + [str(warning.message) for warning in seen]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A checkpoint with four blocks."""
    with Store.open(tmp_path / "run.zarr", MARK) as store:
        fill(store, 4)
    return tmp_path / "run.zarr"


def snapshot(path: Path) -> dict[str, bytes | None]:
    entries = sorted([path, *path.rglob("*")])
    return {str(p): p.read_bytes() if p.is_file() else None for p in entries}


# -- what goes in comes out ----------------------------------------------------------------------


class State(NamedTuple):
    position: dict[str, Any]
    key: Any
    raw_key: Any
    flags: Any
    step: Any
    size: float


def make_state() -> State:
    odd = np.array([[-0.0, np.nan, np.inf], [5e-324, 1 / 3, -1e308]])
    position = {"wide": jnp.asarray(odd), "narrow": jnp.asarray(odd, jnp.float32), "none": None}
    keys = jax.random.split(jax.random.key(3), 4)
    flags = np.array([True, False])
    return State(position, keys, jax.random.PRNGKey(5), flags, jnp.int32(7), 0.1)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_state_comes_back_bit_for_bit(tmp_path: Path) -> None:
    with jax.enable_x64(True):
        state = make_state()
        with Store.open(tmp_path / "run.zarr", MARK) as store:
            store.append("warm", 0, {}, state, {"step": [0.1, 1 / 3]}, count=50)
        with Store.open(tmp_path / "run.zarr", MARK) as store:
            assert store.last is not None
            assert (store.last.phase, store.last.position) == ("warm", 50)
            assert store.last.notes == {"step": [0.1, 1 / 3]}
            for template in (state, jax.eval_shape(lambda: make_state())):
                check_same(state, store.restore(template))


def check_same(old: State, new: State) -> None:
    assert jax.tree.structure(old) == jax.tree.structure(new)
    assert new.key.dtype == old.key.dtype
    for one, two in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
        first, second = host_array(one), host_array(two)
        assert (first.dtype, first.shape) == (second.dtype, second.shape)
        assert first.tobytes() == second.tobytes()


def test_draws_of_every_dtype_and_any_name(tmp_path: Path) -> None:
    names = ["bool", "int8", "int64", "uint32", "uint64", "float16", "float32", "float64"]
    rng = np.random.default_rng(0)
    given = {name: rng.uniform(0, 99, size=(4, 2)).astype(name) for name in names}
    given |= {name: np.full((4, 1), 1j, name) for name in ("complex64", "complex128")}
    given |= {"a/b": np.zeros(4), "..": np.ones((4, 0)), "β['x']": np.arange(4)[::-1]}
    with Store.open(tmp_path / "run.zarr", MARK) as store:
        store.append("sample", 0, {k: v[:1] for k, v in given.items()}, ())
        store.append("sample", 1, {k: v[1:] for k, v in given.items()}, ())
        read = store.draws("sample")
        assert store.draws("other") == {}
    assert read.keys() == given.keys()
    for name, array in given.items():
        assert read[name].dtype == array.dtype
        assert read[name].tobytes() == array.tobytes()


def test_zarr_reads_it_without_complaint(path: Path) -> None:
    root: Any = zarr.open_group(path, mode="r")
    assert root.attrs["format"] == "temperance checkpoint"
    assert sorted(root.group_keys()) == [f"block-00000{i}" for i in range(4)]
    assert (root["block-000002/draws-x"][...] == 2).all()
    assert root["block-000002/state-00000"][...] == 2
    assert root["block-000002"].attrs["phase"] == "sample"


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (("sample", 11, {"x": np.zeros((1, 2), "f4")}, ()), ArgumentError, "give start=12"),
        (("sample", 12, {"x": np.zeros((1, 2))}, ()), ArgumentError, "must stay"),
        (("sample", 12, {"y": np.zeros((1, 2), "f4")}, ()), ArgumentError, "must stay"),
        (("new", 0, {"x": np.zeros(1), "y": np.zeros(2)}, ()), ArgumentError, "one row"),
        (("new", 0, {"x": np.float32(1)}, ()), ArgumentError, "one row"),
        (("new", 0, {"x": np.array(["a"])}, ()), ArgumentError, "only numbers"),
        (("new", 0, {}, {"s": object()}), ArgumentError, r"\['s'\]"),
        (("new", 0, {}, (), {"n": object()}), ArgumentError, "notes"),
    ],
)
def test_wrong_appends_change_nothing(path: Path, arguments: Any, error: Any, match: str) -> None:
    before = snapshot(path)
    with Store.open(path, MARK) as store, pytest.raises(error, match=match):
        store.append(*arguments)
    assert snapshot(path) == before
    with pytest.raises(CheckpointError, match="closed"):
        store.append("sample", 12, {}, ())


@pytest.mark.parametrize(
    ("template", "match"),
    [
        ({"at": np.int32(0)}, "int64.*where.*int32"),
        ({"at": np.zeros(2, np.int64)}, "does not fit"),
        ({"by": np.int64(0)}, "'at'.*'by'"),
        ({"at": np.int64(0), "b": np.int64(0)}, "1 leaves where 2"),
    ],
)
def test_a_template_that_does_not_fit(path: Path, template: Any, match: str) -> None:
    with Store.open(path, MARK) as store, pytest.raises(CheckpointError, match=match):
        store.restore(template)


def test_no_silent_loss_of_precision(path: Path) -> None:
    template = {"at": jax.ShapeDtypeStruct((), np.int64)}
    with Store.open(path, MARK) as store:
        with jax.enable_x64(False), pytest.raises(CheckpointError, match="enable_x64"):
            store.restore(template)
        with jax.enable_x64(True):
            assert store.restore(template)["at"].dtype == np.int64


# -- other people's things -----------------------------------------------------------------------


def test_another_run_is_told_what_differs(path: Path) -> None:
    before = snapshot(path)
    with pytest.raises(CheckpointError) as caught:
        Store.open(path, {"seed": "1", "option:num_chains": "8"})
    message = str(caught.value)
    assert "the option 'num_chains': 4 in the checkpoint, 8 now" in message
    assert "the seed: 0 in the checkpoint, 1 now" in message
    for advice in ("same arguments", "another path", "delete"):
        assert advice in message
    assert snapshot(path) == before


def make_zarr(path: Path) -> None:
    zarr.create_group(path).create_array("x", data=np.ones(3))


def make_newer(path: Path) -> None:
    Store.open(path, MARK).close()
    root = json.loads((path / "zarr.json").read_text())
    root["attributes"]["version"] = 99
    (path / "zarr.json").write_text(json.dumps(root))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (make_zarr, "not a temperance checkpoint"),
        (lambda p: p.write_text("mine"), "it is a file"),
        (lambda p: (p.mkdir(), (p / "thesis.tex").write_text("mine")), "other things"),
        (lambda p: (p.mkdir(), (p / "zarr.json").write_text("{")), "not a temperance checkpoint"),
        (make_newer, "format version 99"),
    ],
)
def test_foreign_things_are_not_touched(
    tmp_path: Path, make: Callable[[Path], Any], match: str
) -> None:
    make(tmp_path / "run.zarr")
    before = snapshot(tmp_path)
    with pytest.raises(CheckpointError, match=match):
        Store.open(tmp_path / "run.zarr", MARK)
    assert snapshot(tmp_path) == before


def test_an_empty_directory_will_do(tmp_path: Path) -> None:
    assert faults(tmp_path, 0) == []


# -- damage --------------------------------------------------------------------------------------


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def swap_blocks(block: Path) -> None:
    shutil.rmtree(block)
    shutil.copytree(block.with_name("block-000003"), block)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "has 23 bytes instead of 24": lambda b: cut(b / "draws-x/c.0.0"),
    "has 0 bytes": lambda b: (b / "draws-x/c.0.0").write_bytes(b""),
    "checksum does not match": lambda b: flip(b / "draws-x/c.0.0", 11),
    "checksum does": lambda b: flip(b / "state-00000/c", 0),
    "draws-x/zarr.json is missing": lambda b: (b / "draws-x/zarr.json").unlink(),
    "c.0.0 is missing": lambda b: (b / "draws-x/c.0.0").unlink(),
    "block-000002/zarr.json is missing": lambda b: (b / "zarr.json").unlink(),
    "cannot be read": lambda b: cut(b / "zarr.json"),
    "is missing": shutil.rmtree,
    "written as block 3": swap_blocks,
}


@pytest.mark.parametrize("why", DAMAGES)
def test_damage_is_named_and_the_last_good_block_is_used(path: Path, why: str) -> None:
    DAMAGES[why](path / "block-000002")
    with pytest.warns(CheckpointWarning, match=f"block 2 is damaged: .*{why}.* block 1 is the"):
        store = Store.open(path, MARK)
    with store:
        assert store.last is not None
        assert (store.last.index, store.last.position) == (1, 2 * ROWS)
        assert store.restore({"at": np.int64(0)}) == {"at": 1}
        fill(store, 4)
    assert faults(path, 4) == []
    (aside,) = path.glob(".dropped-*")
    assert (aside / "block-000003").is_dir()


def undetected_flips(path: Path) -> list[str]:
    block, missed = path / "block-000002", []
    for file in sorted(p for p in block.rglob("*") if p.is_file()):
        for at in range(0, file.stat().st_size, 5):
            flip(file, at)
            try:
                blocks.read_block(block, 2)
                missed.append(f"{file.name}:{at}")
            except (blocks.DamageError, ValueError, KeyError, TypeError, OSError):
                pass
            flip(file, at)
    blocks.read_block(block, 2)
    return missed


def test_a_flipped_bit_anywhere_is_detected(path: Path) -> None:
    assert undetected_flips(path) == []


def test_twin_without_checksum_misses_flips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "checksum", lambda _head, _arrays: "none")
    with Store.open(tmp_path / "run.zarr", MARK) as store:
        fill(store, 3)
    assert undetected_flips(tmp_path / "run.zarr")


def test_everything_damaged_starts_anew(path: Path) -> None:
    cut(path / "block-000000/zarr.json")
    with pytest.warns(CheckpointWarning, match="the run starts anew"):
        store = Store.open(path, MARK)
    with store:
        assert store.last is None
        with pytest.raises(CheckpointError, match="no finished block"):
            store.restore(())


def test_a_disk_that_does_not_answer_costs_no_block(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(np, "fromfile", fail)
        with pytest.raises(CheckpointError, match="Input/output"):
            Store.open(path, MARK)
    assert faults(path, 4) == []


def test_a_full_disk_leaves_the_store_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    with Store.open(path, MARK) as store:
        with monkeypatch.context() as patch:
            patch.setattr(files, "sync", fail)
            with pytest.raises(CheckpointError, match="No space"):
                fill(store, 5)
        assert not list(path.glob(".tmp-*"))
        fill(store, 5)
    assert faults(path, 5) == []


# -- crashes -------------------------------------------------------------------------------------


class CrashError(BaseException):
    """Stands for the end of the process: nothing catches it to clean up."""


def crash_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """End at the given step; a write ends half way."""
    left = iter(range(step, -1, -1))

    def count() -> bool:
        return next(left, -1) == 0

    def write(path: Path, content: bytes) -> None:
        crash = count()
        path.write_bytes(content[: len(content) // 2] if crash else content)
        if crash:
            raise CrashError

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if count():
                raise CrashError
            return function(*arguments)

        return call

    patch.setattr(files, "write_file", write)
    patch.setattr(files, "sync", counted(files.sync))
    patch.setattr(os, "rename", counted(os.rename))


def faults_of_crashes(tmp_path: Path, blocks: int) -> list[str]:
    """Crash at every step of beginning a store and of one more append, and look at what is left."""
    found: list[str] = []
    for step in range(1000):
        path = tmp_path / f"{step}.zarr"
        if blocks:
            with Store.open(path, MARK) as store:
                fill(store, blocks)
        try:
            with pytest.MonkeyPatch.context() as patch:
                crash_at(step, patch)
                with Store.open(path, MARK) as store:
                    fill(store, blocks + 1)
        except CrashError:
            found += faults(path, blocks)
        else:
            assert step > 10
            return found + faults(path, blocks + 1)
    raise AssertionError


@pytest.mark.parametrize("blocks", [0, 2])
def test_a_crash_at_any_step_leaves_whole_blocks(tmp_path: Path, blocks: int) -> None:
    assert faults_of_crashes(tmp_path, blocks) == []


def test_twin_that_writes_in_place_leaves_half_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "temporary", lambda path: path)
    assert any("is damaged" in fault for fault in faults_of_crashes(tmp_path, 2))


def test_what_a_dead_process_left_over_is_removed(path: Path) -> None:
    shutil.copytree(path / "block-000001", path / ".tmp-block-000004-99999")
    (path / ".tmp-zarr.json-99999").write_text("{")
    assert faults(path, 4) == []


WRITER = f"""
import sys, time
import numpy as np
from temperance.engine.checkpoint import Store
path, until = sys.argv[1], int(sys.argv[2])
store = Store.open(path, {MARK!r})
i = 0 if store.last is None else store.last.index + 1
print("open", flush=True)
while i < until:
    x = np.full(({ROWS}, 2), i, np.float32)
    store.append("sample", {ROWS} * i, {{"x": x}}, {{"at": np.int64(i)}}, {{"i": i}})
    print(i, flush=True)
    i += 1
print("held", flush=True)
time.sleep(60)
"""


def start_writer(path: Path, until: int) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": str(Path(temperance.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WRITER, str(path), str(until)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


@pytest.mark.slow
def test_kill_at_random_moments(tmp_path: Path) -> None:
    rng = random.Random(os.environ.get("TEMPERANCE_SEED", "0"))
    path, done = tmp_path / "run.zarr", 0
    for _ in range(4):
        process = start_writer(path, 10**6)
        time.sleep(rng.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        told = [int(line) for line in process.communicate()[0].split("\n") if line]
        done = max([done, *(i + 1 for i in told)])
        assert process.returncode == -signal.SIGKILL
        assert faults(path, done) == []
    assert done > 4


# -- one process at a time -----------------------------------------------------------------------


def test_a_living_process_keeps_others_out_and_a_killed_one_does_not(path: Path) -> None:
    process = start_writer(path, 5)
    try:
        with pytest.raises(CheckpointError, match=rf"in use by another process \(id {process.pid}"):
            Store.open(path, MARK)
    finally:
        process.kill()
        process.communicate()
    assert (path / ".lock").read_text() == str(process.pid)
    with Store.open(path, MARK):
        assert (path / ".lock").read_text() == str(os.getpid())
    assert not (path / ".lock").exists()


def test_a_left_over_lock_whose_id_now_belongs_to_another_is_taken_over(path: Path) -> None:
    (path / ".lock").write_text(str(os.getppid()))
    assert faults(path, 4) == []


def test_the_same_process_must_close_first(path: Path) -> None:
    with Store.open(path, MARK) as store:
        with pytest.raises(CheckpointError, match="this very process: close"):
            Store.open(path, MARK)
        store.close()
        Store.open(path, MARK).close()


def test_a_lock_file_removed_under_our_feet_is_not_trusted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, calls = lock.try_lock, []

    def lock_late(descriptor: int) -> None:
        if not calls:
            (path / ".lock").unlink()
        calls.append(descriptor)
        honest(descriptor)

    monkeypatch.setattr(lock, "try_lock", lock_late)
    with Store.open(path, MARK):
        assert len(calls) == 2
        assert (path / ".lock").read_text() == str(os.getpid())


def test_errors_on_opening_release_the_lock(path: Path) -> None:
    with pytest.raises(CheckpointError, match="another run"):
        Store.open(path, {"seed": "9"})
    cut(path / "block-000003/zarr.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CheckpointWarning):
            Store.open(path, MARK)
    assert faults(path, 3) == []
