"""Saved models: what comes back is what was saved, and what is not a model is refused."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from tests.crosscat import made_states
from tests.crosscat.test_estimator import fitted, made_frame, with_holes

from temperance.crosscat import estimator
from temperance.crosscat.estimator import CrossCat, PitmanYorMixture, TableModel
from temperance.crosscat.files.archive import read_model, write_model
from temperance.crosscat.files.predictive_arrays import state_arrays, state_from_arrays
from temperance.errors import FileFormatError


@pytest.fixture(autouse=True)
def made_kernels(monkeypatch):
    monkeypatch.setattr(estimator, "kernels", lambda: made_states.KERNELS)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.zip"
    model = fitted()
    model.sample(3)  # the generator has moved on since the fit
    model.save(path)
    return model, path


def answers(model):
    frame = with_holes()
    filled, table = model.impute(frame, uncertainty=True)
    return {
        "score": model.score_samples(frame),
        "logp": model.logp({"height": 171.0}, {"colour": "red"}),
        "proba": model.predict_proba(frame, "colour"),
        "median": model.predict(frame, "height"),
        "filled": filled,
        "table": table,
        "sample": model.sample(20, given={"flag": True}),
        "again": model.sample(20),
        "surprisal": model.surprisal(frame),
        "similarity": model.similarity(frame),
        "dependence": model.dependence(),
        "information": model.mutual_information("colour", "height", num_samples=100),
        "trace": model.trace_,
        "assignments": model.row_assignments_[1][0],
        "names": model.feature_names_in_,
    }


def same(a, b):
    if isinstance(a, pd.DataFrame):
        return a.equals(b)
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")


def test_a_loaded_model_answers_bit_by_bit(saved):
    model, path = saved
    loaded = CrossCat.load(path)
    assert loaded.get_params() == model.get_params()
    assert loaded.schema_ == model.schema_
    assert loaded.column_partition_ == model.column_partition_
    wanted, found = answers(model), answers(loaded)
    for name in wanted:
        assert same(wanted[name], found[name]), name


def test_a_loaded_model_goes_on(saved):
    model, path = saved
    loaded = TableModel.load(path)
    for one in (model, loaded):
        one.append_rows(made_frame(4, 9))
    assert_array_equal(model.score_samples(made_frame(5)), loaded.score_samples(made_frame(5)))


def test_nothing_is_pickled(saved):
    _, path = saved
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            head = file.read(name)[:6]
            assert head[:1] == b"{" if name == "model.json" else head == b"\x93NUMPY"


def test_objects_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="pickle"):
        write_model(tmp_path / "model", {}, {"odd": np.array([{}], object)})
    assert list(tmp_path.iterdir()) == []


def test_a_state_comes_back_from_its_arrays():
    state = fitted().states_[0]
    told, arrays = state_arrays(state, "s")
    again = state_from_arrays(json.loads(json.dumps(told)), arrays, "s")
    assert again.log_joint == state.log_joint
    assert [view.columns for view in again.views] == [view.columns for view in state.views]
    for old, new in zip(state.views, again.views, strict=True):
        assert [type(law) for law in old.predictives] == [type(law) for law in new.predictives]


def rewritten(path, change):
    """The same file with one member changed, and its checksum put right."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)


def header_with(**changes):
    def change(members):
        header = json.loads(members["model.json"]) | changes
        members["model.json"] = json.dumps(header).encode()

    return change


def without_an_array(members):
    del members["arrays/state-0/view-0/log_mass.npy"]


def with_a_shorter_array(members):
    name = "arrays/state-0/view-0/log_mass.npy"
    members[name] = members["arrays/cells/wide.npy"]


def with_another_class(members):
    header = json.loads(members["model.json"])
    header["told"]["class"] = "Elsewhere"
    members["model.json"] = json.dumps(header).encode()


def with_labels_out_of_range(members):
    header = json.loads(members["model.json"])
    header["told"]["fitted"]["states"][0]["views"][0]["columns"] = [0]
    members["model.json"] = json.dumps(header).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (header_with(format="something else"), "not a CrossCat model"),
        (header_with(format_version=99), "has format 99"),
        (header_with(told=None), "incomplete"),
        (lambda members: members.update({"model.json": b"{"}), "model.json cannot be read"),
        (lambda members: members.pop("model.json"), "not a CrossCat model"),
        (without_an_array, "'state-0/view-0/log_mass' is not in it"),
        (with_a_shorter_array, "'state-0/view-0/log_mass' is"),
        (with_another_class, "holds a Elsewhere"),
        (with_labels_out_of_range, "another table|fit together"),
    ],
)
def test_files_that_are_not_models_are_refused(saved, change, message):
    _, path = saved
    rewritten(path, change)
    with pytest.raises(FileFormatError, match=message):
        CrossCat.load(path)


def test_damage_is_seen(saved, tmp_path):
    _, path = saved
    content = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        place = file.getinfo("arrays/cells/real.npy")
    cut, changed, text = tmp_path / "cut", tmp_path / "changed", tmp_path / "text"
    cut.write_bytes(content[: len(content) // 2])
    middle = place.header_offset + 60 + place.compress_size // 2
    changed.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    text.write_text("a,b\n1,2\n")
    for damaged in (cut, changed, text):
        with pytest.raises(FileFormatError, match="damaged"):
            CrossCat.load(damaged)
    with pytest.raises(FileFormatError, match="no such file"):
        CrossCat.load(tmp_path / "nowhere")
    with pytest.raises(FileFormatError, match="folder"):
        CrossCat.load(tmp_path)


def test_another_model_is_refused(saved):
    _, path = saved
    with pytest.raises(FileFormatError, match="holds a CrossCat, not a PitmanYorMixture"):
        PitmanYorMixture.load(path)


def test_what_was_there_stays_if_writing_fails(saved):
    _, path = saved
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_model(path, {"odd": object()}, {})
    assert path.read_bytes() == before
    assert read_model(path)[0]["class"] == "CrossCat"
