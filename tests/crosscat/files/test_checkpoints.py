"""A fit that is stopped goes on as if it had not been, and files of another fit are refused."""

import numpy as np
import pandas as pd
import pytest

from temperance.crosscat.estimator import CrossCat
from temperance.crosscat.files import checkpoints
from temperance.errors import ArgumentError, CheckpointError, FileFormatError


class StopError(Exception):
    """As if the power went."""


def made(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, 60)
    return pd.DataFrame({"a": rng.normal(group, 0.2), "b": np.array(list("xyz"))[group]})


def model(seed: int) -> CrossCat:
    return CrossCat(passes=3.0, num_states=2, random_state=seed)


@pytest.fixture
def every_block(monkeypatch):
    monkeypatch.setattr(checkpoints, "APART", 0.0)


def killed_after(num: int):
    told = []

    def tell(progress):
        told.append(progress)
        if len(told) == num:
            raise StopError

    return tell


def same(one: CrossCat, other: CrossCat) -> bool:
    for mine, theirs in zip(one._fitted.kept, other._fitted.kept, strict=True):
        for name in mine:
            # How long it took, and when, is not the same.
            if name not in ("counters", "trace/seconds"):
                np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
    return len(one.states_) == len(other.states_)


@pytest.mark.usefixtures("every_block")
def test_a_fit_that_was_killed_ends_as_if_it_had_not_been(tmp_path, seed):
    frame = made(seed)
    whole = model(seed).fit(frame)
    for num in (4, 25):
        with pytest.raises(StopError):
            model(seed).fit(frame, callback=killed_after(num), checkpoint=tmp_path / "kept")
    again = model(seed).fit(frame, checkpoint=tmp_path / "kept")
    assert same(whole, again)
    # Nothing is left to do.
    told = []
    assert same(whole, model(seed).fit(frame, callback=told.append, checkpoint=tmp_path / "kept"))
    assert not told


@pytest.mark.usefixtures("every_block")
def test_a_wish_to_stop_hurries_the_fit_and_keeps_what_was_before_it(tmp_path, seed):
    frame = made(seed)
    told = []

    def soon(progress):
        told.append(progress)
        return len(told) > 3

    short = model(seed).fit(frame, callback=soon, checkpoint=tmp_path / "kept")
    assert np.isfinite(short.score_samples(frame)).all()
    longer = []
    whole = model(seed).fit(frame, callback=longer.append)
    assert len(told) < len(longer)
    assert same(whole, model(seed).fit(frame, checkpoint=tmp_path / "kept"))


def test_what_belongs_to_another_fit_is_refused(tmp_path, seed):
    frame, kept = made(seed), tmp_path / "kept"
    model(seed).fit(frame, checkpoint=kept)
    with pytest.raises(CheckpointError, match="another table"):
        model(seed).fit(frame.assign(a=frame["a"] + 1e-3), checkpoint=kept)
    with pytest.raises(CheckpointError, match="another settings"):
        model(seed).set_params(passes=4.0).fit(frame, checkpoint=kept)
    (kept / "state-0.zip").write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        model(seed).fit(frame, checkpoint=kept)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="is a file"):
        model(seed).fit(frame, checkpoint=tmp_path / "file")
    with pytest.raises(CheckpointError, match="there is no folder"):
        model(seed).fit(frame, checkpoint=tmp_path / "no" / "such")


def test_processes_cannot_tell_of_progress():
    model = CrossCat(num_states=2, executor="processes")
    with pytest.raises(ArgumentError, match="with executor='threads' they can"):
        model.fit(pd.DataFrame({"a": [1.5, 2.5]}), callback=print)
