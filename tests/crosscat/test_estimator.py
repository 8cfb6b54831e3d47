"""The models' scikit-learn face: what goes in, what comes out, and what a wrong call is told."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator
from tests.crosscat import made_states

from temperance.crosscat import estimator
from temperance.crosscat.annealing.executors import fit_many
from temperance.crosscat.cross_validation import cross_validate, deal
from temperance.crosscat.estimator import CrossCat, DirichletProcessMixture, PitmanYorMixture
from temperance.crosscat.frames.schema import Schema
from temperance.errors import ArgumentError, DataError, UnknownNameError

MODELS = [CrossCat, PitmanYorMixture, DirichletProcessMixture]
KINDS = {
    "colour": "categorical",
    "flag": "boolean",
    "height": "real",
    "visits": "count",
    "income": "spike",
}


@pytest.fixture(autouse=True)
def made_kernels(monkeypatch):
    monkeypatch.setattr(estimator, "kernels", lambda: made_states.KERNELS)


def made_frame(seed=0, num=60) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], num),
            "flag": rng.random(num) < 0.4,
            "height": np.round(rng.normal(170.0, 8.0, num), 1),
            "visits": rng.poisson(3.0, num),
            "income": np.where(rng.random(num) < 0.6, 0.0, np.round(rng.gamma(3.0, 9.0, num), 2)),
        },
        index=np.arange(num) + 100,
    )
    return frame.astype({"flag": object, "visits": float})


def with_holes(seed=1, num=20) -> pd.DataFrame:
    frame = made_frame(seed, num)
    holes = np.random.default_rng(seed).random(frame.shape) < 0.3
    return frame.mask(holes)


def fitted(model=CrossCat, frame=None, **options):
    options = {"num_states": 3, "random_state": 0} | options
    return model(**options).fit(made_frame() if frame is None else frame, schema=KINDS)


# --- Fitting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_fitted_attributes(model):
    found = fitted(model)
    assert isinstance(found.schema_, Schema)
    assert found.n_features_in_ == 5
    assert found.feature_names_in_.tolist() == list(KINDS)
    assert len(found.states_) == len(found.column_partition_) == len(found.row_assignments_) == 3
    for partition, labels in zip(found.column_partition_, found.row_assignments_, strict=True):
        assert sorted(name for view in partition for name in view) == sorted(KINDS)
        assert [len(one) for one in labels] == [60] * len(partition)
        assert model is CrossCat or len(partition) == 1
    assert found.trace_["state"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert clone(found).get_params() == found.get_params()


def test_the_same_seed_gives_the_same_states_whatever_does_the_work():
    one = fitted().score_samples(made_frame(2))
    for options in ({"num_workers": 2}, {"executor": "threads"}, {"executor": Gathering()}):
        assert_array_equal(fitted(**options).score_samples(made_frame(2)), one)
    assert (fitted(random_state=1).score_samples(made_frame(2)) != one).any()


class Gathering:
    """An executor that hands out futures, as Dask's client does."""

    def map(self, function, items):
        return [partial(function, item) for item in items]

    def gather(self, futures):
        return [future() for future in futures]


def doubled(table, settings, seed):
    return int(seed.generate_state(1)[0]) % 1000 + table * settings


@pytest.mark.slow
def test_states_in_processes():
    seeds = np.random.SeedSequence(3).spawn(3)
    wanted = fit_many(doubled, 2, 5, seeds)
    assert fit_many(doubled, 2, 5, seeds, "processes", 2) == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor": "thread"}, "did you mean 'threads'"),
        ({"executor": 3}, "int, which has no map"),
        ({"num_workers": 0}, "num_workers: wanted at least 1"),
        ({"num_states": 0}, "num_states: wanted at least 1"),
        ({"num_states": 2.5}, "num_states: wanted a whole number"),
        ({"passes": 0}, "passes: wanted a number of at least 1"),
        ({"random_state": -1}, "random_state: got -1"),
    ],
)
def test_settings_that_cannot_work(options, message):
    with pytest.raises(ArgumentError, match=message):
        fitted(**options)


def test_appended_rows_are_learned():
    model = fitted()
    before = model.score_samples(made_frame(2))
    model.append_rows(made_frame(3, 40))
    assert [len(labels) for labels in model.row_assignments_[0]] == [100] * 2
    assert (model.score_samples(made_frame(2)) != before).any()
    with pytest.raises(UnknownNameError, match="'size'"):
        model.append_rows(made_frame(3).rename(columns={"height": "size"}))


def test_questions_need_a_fit():
    for ask in (
        lambda m: m.score_samples(made_frame()),
        lambda m: m.sample(2),
        lambda m: m.dependence(),
        lambda m: m.append_rows(made_frame()),
        lambda m: m.save("never"),
    ):
        with pytest.raises(NotFittedError):
            ask(CrossCat())


# --- Asking --------------------------------------------------------------------------------------


def test_scores_by_frame_and_by_name_agree():
    model, frame = fitted(), made_frame(2, 5)
    scores = model.score_samples(frame)
    assert_allclose(model.score(frame), scores.mean())
    rows = frame.to_dict("records")
    assert_allclose([model.logp(row) for row in rows], scores)
    assert_allclose(model.logp(frame), scores)
    given = {"visits": rows[0]["visits"], "flag": rows[0]["flag"]}
    rest = {name: value for name, value in rows[0].items() if name not in given}
    assert_allclose(model.logp(rest, given), scores[0] - model.logp(given))
    both = model.logp(frame[["height", "income"]], given)
    for row, found in zip(rows, both, strict=True):
        asked = {name: row[name] for name in ("height", "income")}
        assert_allclose(found, model.logp(asked | given) - model.logp(given))


@pytest.mark.parametrize("backend", [pl.from_pandas, lambda frame: frame.to_dict("list")])
def test_other_frames_score_the_same(backend):
    frame = with_holes()
    frame["flag"] = frame["flag"].astype("boolean")
    frame["colour"] = frame["colour"].astype("string")
    model = fitted()
    assert_allclose(model.score_samples(backend(frame)), model.score_samples(frame))


def test_predictions():
    model, frame = fitted(), made_frame(2, 6)
    probabilities = model.predict_proba(frame, "colour")
    assert probabilities.shape == (6, 3)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    values = np.array(model.schema_["colour"].values)
    assert_array_equal(
        model.predict(frame.drop(columns="colour"), "colour"), values[probabilities.argmax(axis=1)]
    )
    heights = model.predict(frame, "height")
    assert_allclose(10 * heights, np.round(10 * heights), atol=1e-9)
    means = model.predict(frame, "visits", statistic="mean")
    assert means.dtype == float
    assert model.predict(frame, "visits").dtype.kind == "i"
    assert set(model.predict(frame, "flag")) <= {False, True}
    with pytest.raises(ArgumentError, match="target"):
        model.predict(frame)
    with pytest.raises(UnknownNameError, match="did you mean 'height'"):
        model.predict(frame, "heights")
    with pytest.raises(UnknownNameError, match="statistic"):
        model.predict(frame, "height", statistic="mode")


def test_y_is_one_more_column():
    frame = made_frame()
    rest, y = frame.drop(columns="colour"), frame["colour"]
    model = CrossCat(num_states=2, random_state=0).fit(rest, y)
    assert model.n_features_in_ == 4
    assert model.schema_.names[-1] == "colour"
    assert_array_equal(model.predict(rest), model.predict(rest, "colour"))
    assert_allclose(model.score(rest, y.to_numpy()), model.score_samples(frame).mean())
    assert model.score(rest) > model.score(rest, y)
    with pytest.raises(DataError, match="'colour' already"):
        CrossCat(num_states=2).fit(frame, y)
    with pytest.raises(DataError, match="3 cells for 60 rows"):
        CrossCat(num_states=2).fit(rest, y[:3])


def test_missing_cells_are_filled_and_others_kept():
    model, frame = fitted(), with_holes()
    filled, table = model.impute(frame, uncertainty=True)
    assert_array_equal(filled.index, frame.index)
    assert not filled.isna().any().any()
    kept = frame.notna()
    assert filled[kept].equals(frame[kept])
    assert len(table) == int(frame.isna().sum().sum())
    for line in table.to_dict("records"):
        kind = KINDS[line["column"]]
        assert filled[line["column"]].iloc[line["row"]] == line["value"]
        if kind in ("categorical", "boolean"):
            assert 0.0 < line["probability"] <= 1.0
            assert line["entropy"] >= 0.0
        else:
            assert line["low"] <= line["value"] <= line["high"]
    assert model.transform(frame).equals(filled)
    one = model.impute(frame, columns=["height"])
    assert one["height"].equals(filled["height"])
    assert one["colour"].isna().sum() == frame["colour"].isna().sum()


def test_frames_come_back_as_they_came():
    frame = with_holes()
    frame["flag"] = frame["flag"].astype("boolean")
    frame["colour"] = frame["colour"].astype("category")
    model = fitted()
    filled = model.impute(frame)
    assert filled.dtypes.equals(frame.dtypes)
    in_polars = model.impute(pl.from_pandas(frame))
    assert isinstance(in_polars, pl.DataFrame)
    assert in_polars["height"].to_list() == filled["height"].tolist()
    assert isinstance(model.surprisal(pl.from_pandas(frame)), pl.DataFrame)
    table = pl.from_pandas(frame).to_arrow()
    assert model.impute(table).column("height").to_pylist() == filled["height"].tolist()
    numbers = frame[["height", "visits"]].to_numpy(float)
    arrays = CrossCat(num_states=2, random_state=0).fit(numbers)
    found = arrays.impute(numbers)
    assert isinstance(found, np.ndarray)
    assert not np.isnan(found).any()
    from_dict = model.impute({"height": [171.0, None], "colour": ["red", None]})
    assert from_dict.shape == (2, 2)
    assert fitted(frame=pl.from_pandas(made_frame())).sample(2).__class__ is pl.DataFrame


def test_draws():
    model = fitted()
    first, second = model.sample(50), model.sample(50)
    assert list(first.columns) == list(KINDS)
    assert not first.equals(second)
    assert model.sample(50, random_state=3).equals(model.sample(50, random_state=3))
    given = {"colour": "red", "visits": 4}
    rows = model.sample(30, ["height", "colour"], given)
    assert list(rows.columns) == ["height", "colour"]
    assert (rows["colour"] == "red").all()
    assert set(model.sample(200)["colour"]) == {"red", "green", "blue"}
    assert model.sample(0).shape == (0, 5)
    assert model.sample(1).shape == (1, 5)
    assert_allclose(10 * first["height"], np.round(10 * first["height"]), atol=1e-6)


def test_two_fits_of_one_seed_draw_the_same():
    assert fitted().sample(9).equals(fitted().sample(9))


def test_surprise_is_by_cell():
    model, frame = fitted(), with_holes()
    found = model.surprisal(frame)
    assert_array_equal(found.isna(), frame.isna())
    assert_array_equal(found.index, frame.index)
    assert model.anomaly(frame).equals(found)
    row = made_frame(2, 1).to_dict("records")[0]
    others = {name: value for name, value in row.items() if name != "height"}
    one = model.surprisal(pd.DataFrame([row]), ["height"])
    assert_allclose(one.to_numpy(), -model.logp({"height": row["height"]}, others))


def test_likeness():
    model = fitted()
    table = model.dependence()
    assert list(table.index) == list(table.columns) == list(KINDS)
    assert (np.diag(table) == 1.0).all()
    assert model.similarity(3).shape == (1, 60)
    assert model.similarity([1, 2], among=[4, 5, 6], columns="height").shape == (2, 3)
    assert_allclose(model.similarity(3)[0, 3], 1.0)
    new = made_frame(2, 4)
    assert model.similarity(new, among=new).shape == (4, 4)
    assert model.similarity({"colour": "red"}, among=range(5)).shape == (1, 5)


def test_information():
    model = fitted()
    found = model.mutual_information("colour", "flag")
    assert found.standard_error == 0.0
    drawn = model.mutual_information("colour", "height", given={"visits": 2}, num_samples=500)
    assert drawn.value == 0.0 or drawn.standard_error > 0.0


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda m: m.sample(3, given={"color": "red"}), UnknownNameError, "mean 'colour'"),
        (
            lambda m: m.sample(3, given={"colour": "rad"}),
            UnknownNameError,
            "'colour' has no.*'red'",
        ),
        (lambda m: m.sample(3, given={"flag": 7}), UnknownNameError, "'flag' has no value 7"),
        (lambda m: m.sample(3, given={"height": "tall"}), DataError, "'height'.*'tall'"),
        (lambda m: m.sample(3, given={"visits": 2.5}), DataError, "'visits'"),
        (lambda m: m.sample(3, given={"visits": None}), ArgumentError, "'visits'.*missing"),
        (lambda m: m.sample(3, given={"height": np.nan}), ArgumentError, "'height'.*missing"),
        (lambda m: m.sample(3, given={"height": np.inf}), DataError, "'height'.*inf"),
        (lambda m: m.sample(3, given={"height": [1.0, 2.0]}), ArgumentError, "'height'.*list"),
        (lambda m: m.sample(3, given=[1]), ArgumentError, "given: wanted a dictionary"),
        (lambda m: m.sample(-1), ArgumentError, "n: wanted"),
        (lambda m: m.sample(2, ["age"]), UnknownNameError, "'age'"),
        (lambda m: m.sample(2, ["flag", "flag"]), ArgumentError, "'flag' is named twice"),
        (lambda m: m.logp({"flag": True}, {"flag": True}), ArgumentError, "'flag' is in both"),
        (lambda m: m.logp({"colour": "mauve"}), UnknownNameError, "values: column 'colour'"),
        (
            lambda m: m.logp(made_frame(1, 3)[["flag"]], made_frame(1, 2)[["colour"]]),
            ArgumentError,
            "values has 3 rows and given has 2",
        ),
        (lambda m: m.mutual_information("flag", "flag"), ArgumentError, "itself"),
        (lambda m: m.mutual_information("flag", "x"), UnknownNameError, "'x'"),
        (
            lambda m: m.mutual_information("flag", "colour", given={"flag": True}),
            ArgumentError,
            "'flag' is both",
        ),
        (lambda m: m.similarity(60), ArgumentError, "0 to 59, and 60"),
        (lambda m: m.impute(made_frame(), level=1.0), ArgumentError, "level"),
        (lambda m: m.score_samples(np.zeros((2, 3))), DataError, "3 features, but CrossCat"),
        (lambda m: m.predict_proba(made_frame(), "height"), ArgumentError, "'height' is real"),
    ],
)
def test_wrong_questions_are_told_why(ask, error, message):
    with pytest.raises(error, match=message):
        ask(fitted())


def test_a_column_with_no_cell_at_all():
    frame = made_frame().assign(empty=None)
    model = CrossCat(num_states=2, random_state=0).fit(frame)
    assert np.isfinite(model.score_samples(frame)).all()
    assert model.sample(4)["empty"].isna().all()
    filled, table = model.impute(with_holes().assign(empty=None), uncertainty=True)
    assert filled["empty"].isna().all()
    assert set(table["column"]) >= {"empty", "colour"}


# --- Cross-validation ----------------------------------------------------------------------------


def test_cross_validation_scores_each_row_once():
    frame = made_frame(0, 50)
    model = CrossCat(num_states=2, random_state=0)
    found = cross_validate(model, frame, folds=4, schema=KINDS, random_state=5)
    assert found.scores.shape == found.fit_seconds.shape == (4,)
    assert np.bincount(found.fold).tolist() in ([13, 13, 12, 12],)
    assert_array_equal(found.fold, deal(50, 4, 5))
    again = cross_validate(model, frame, folds=4, schema=KINDS, random_state=5)
    assert_array_equal(found.row_scores, again.row_scores)
    here = found.fold == 2
    by_hand = clone(model).fit(frame[~here], schema=fitted(frame=frame).schema_)
    assert_allclose(found.row_scores[here], by_hand.score_samples(frame[here]))
    assert_allclose(found.scores[2], found.row_scores[here].mean())
    with pytest.raises(ArgumentError, match="folds: wanted 2 to 50"):
        cross_validate(model, frame, folds=51)


# --- scikit-learn's own checks -------------------------------------------------------------------

DO_NOT_APPLY = {
    "check_array_api_input": "tables are mixed, and are not arrays of one type on a device",
}


CHECKS: Any = estimator_checks_generator(CrossCat(num_states=2, random_state=0), mark=None)


@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(model, check, id=f"{number}-{check.func.__name__}")
        for number, (model, check) in enumerate(CHECKS)
        if check.func.__name__ not in DO_NOT_APPLY
    ],
)
def test_conventions_of_scikit_learn(model, check):
    check(model)


def test_in_a_pipeline():
    frame = with_holes(num=60)
    found = make_pipeline(CrossCat(num_states=2, random_state=0)).fit_transform(frame)
    assert not found.isna().any().any()
