"""Wrong calls: each gets its error, in words that help, before anything long is compiled."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
import xarray as xr
import zarr
from tests.shared import small_runs
from tests.shared.small_runs import ROWS, by_hand, make_problem, terms

import temperance as tp
from temperance.engine.loop import traces
from temperance.errors import (
    ArgumentError,
    CheckpointError,
    DataError,
    FileFormatError,
    MoveError,
    PositionError,
    ResultError,
    StartError,
    TemperanceError,
    TermsError,
    UnknownNameError,
)
from temperance.ladders import starting_points as starts_module
from temperance.ladders.ladder import SingleRung
from temperance.problems.problem import densities_of

NAN = float("nan")


@pytest.fixture(autouse=True)
def as_a_user() -> Iterator[None]:
    """Without the types that tests check, and that users do not."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def nothing_is_compiled() -> Iterator[None]:
    before = dict(traces)
    yield
    assert traces == before


class Wrong(NamedTuple):
    call: Callable[[], Any]
    error: type[TemperanceError]
    words: tuple[str, ...]


def sample(problem: Any = None, **options: Any) -> Callable[[], Any]:
    settings = {"move": "metropolis", "progress": False} | options
    return lambda: tp.sample(problem if problem is not None else make_problem(), **settings)


def sample_problem(**parts: Any) -> Callable[[], Any]:
    return lambda: tp.sample(make_problem(**parts), move="metropolis", progress=False)


def sample_target(*args: Any, method: str = "plain", **parts: Any) -> Callable[[], Any]:
    return lambda: tp.sample(tp.Target(*args, **parts), method=method, progress=False)


def wrong(call: Callable[[], Any], error: type[TemperanceError], *words: str) -> Wrong:
    return Wrong(call, error, words)


def normal(x: Any) -> Any:
    return -0.5 * jnp.sum(x**2)


def check_all(table: dict[str, Wrong]) -> Any:
    return pytest.mark.parametrize("case", table.values(), ids=table.keys())


def check(case: Wrong) -> str:
    with pytest.raises(case.error) as caught:
        case.call()
    message = str(caught.value)
    assert type(caught.value) is case.error
    for words in case.words:
        assert words in message, message
    return message


# -- problems and targets ------------------------------------------------------------------------


def looks_ahead(x: Any, rows: Any) -> Any:
    return terms(x, rows - jnp.mean(rows))


def looks_back(x: Any, rows: Any) -> Any:
    before = jnp.concatenate([jnp.zeros(1), rows[:-1]])
    return terms(x, rows - 0.5 * before)


def closes_over_rows(x: Any, rows: Any) -> Any:
    return terms(x, rows) + jnp.asarray(ROWS)


def column(x: Any, rows: Any) -> Any:
    return terms(x, rows)[:, None]


BAD_MODELS = {
    "log_prior is no function": wrong(
        lambda: make_problem(log_prior=3.0), ArgumentError, "log_prior", "wanted a function", "3.0"
    ),
    "draw_prior is no function": wrong(
        lambda: make_problem(draw_prior=None), ArgumentError, "draw_prior", "wanted a function"
    ),
    "no data": wrong(lambda: make_problem(data={}), DataError, "data", "no arrays", "Target"),
    "empty data": wrong(
        lambda: make_problem(data=np.zeros((0, 3))), DataError, "data", "0 row(s)", "at least two"
    ),
    "one row": wrong(lambda: make_problem(data=np.zeros((1, 3))), DataError, "1 row(s)", "Target"),
    "ragged data": wrong(
        lambda: make_problem(data={"x": np.zeros((5, 2)), "y": np.zeros(4)}),
        DataError, "data", "equally many", "(5, 2)", "(4,)",
    ),
    "data without rows": wrong(
        lambda: make_problem(data={"x": np.zeros(5), "n": 3.0}), DataError, "leading axis", "()"
    ),
    "summed terms": wrong(
        sample_problem(terms=lambda x, rows: jnp.sum(terms(x, rows))),
        TermsError, "terms", "6 rows", "(6,)", "got ()",
    ),
    "terms in a column": wrong(sample_problem(terms=column), TermsError, "(6,)", "got (6, 1)"),
    "terms that fail": wrong(
        sample_problem(terms=lambda x, rows: x["sigma"] * rows), TermsError, "terms", "sigma"
    ),
    "terms that look ahead": wrong(
        sample_problem(terms=looks_ahead), TermsError, "look ahead", "y_<i", "beforehand"
    ),
    "terms that look ahead though dependent": wrong(
        sample_problem(terms=looks_ahead, independent=False), TermsError, "look ahead"
    ),
    "terms that look at other rows": wrong(
        sample_problem(terms=looks_back), TermsError, "look at the others", "independent=False"
    ),
    "terms that close over the rows": wrong(
        sample_problem(terms=closes_over_rows), TermsError, "rows 0 to 3", "must come from `data`"
    ),
    "a log_prior for each coordinate": wrong(
        sample_problem(log_prior=lambda x: -0.5 * x["mean"] ** 2),
        ArgumentError, "log_prior", "wanted a scalar", "(2,)",
    ),
    "whole numbers from the prior": wrong(
        sample_problem(draw_prior=lambda key: {"mean": jax.random.randint(key, (2,), 0, 5)}),
        PositionError, "'mean'", "int64", "float",
    ),
    "an empty position": wrong(
        sample_problem(draw_prior=lambda _: {}), PositionError, "no arrays"
    ),
    "a position without values": wrong(
        sample_problem(draw_prior=lambda _: {"mean": jnp.zeros((0,))}), PositionError, "empty"
    ),
    "a prior that fails": wrong(
        sample_problem(draw_prior=lambda: 0.0), ArgumentError, "draw_prior", "fails", "key"
    ),
    "neither a problem nor a target": wrong(
        lambda: tp.sample(normal), ArgumentError, "problem", "Problem or a Target", "function"
    ),
    "a density that is no function": wrong(
        lambda: tp.Target(3.0, example=np.zeros(2)), ArgumentError, "log_density", "function"
    ),
    "a target without a shape": wrong(
        lambda: tp.Target(normal), ArgumentError, "example", "base"
    ),
    "whole numbers as an example": wrong(
        sample_target(normal, example={"n": np.arange(3)}), PositionError, "'n'", "int64"
    ),
    "a density for each coordinate": wrong(
        sample_target(lambda x: -0.5 * x**2, example=np.zeros(3)),
        ArgumentError, "log_density", "wanted a scalar", "(3,)",
    ),
    "an example of another shape": wrong(
        sample_target(lambda x: x["scale"] * 0.0, example={"mean": np.zeros(3)}),
        ArgumentError, "log_density", "scale", "example",
    ),
    "a base of another dimension": wrong(
        lambda: tp.Target(normal, tp.Gaussian(np.zeros(3), 1.0), np.zeros(2)),
        ArgumentError, "base", "(3,)", "2 values",
    ),
    "a base that cannot be drawn": wrong(
        lambda: tp.Target(normal, normal, np.zeros(2)), ArgumentError, "base", "draw(key)"
    ),
    "heat without a base": wrong(
        lambda: tp.sample(
            tp.Target(normal, example=np.zeros(2)), "pt", base="own", progress=False
        ),
        ArgumentError, "base=Gaussian", "base='modes'",
    ),
    "a covariance of another shape": wrong(
        lambda: tp.Gaussian(np.zeros(3), np.eye(2)), ArgumentError, "covariance", "(2, 2)"
    ),
    "a negative variance": wrong(
        lambda: tp.Gaussian(np.zeros(2), [1.0, -1.0]), ArgumentError, "covariance", "positive"
    ),
    "a covariance that is not symmetric": wrong(
        lambda: tp.Gaussian(np.zeros(2), [[1.0, 0.5], [0.0, 1.0]]), ArgumentError, "symmetric"
    ),
    "a covariance that is none": wrong(
        lambda: tp.Gaussian(np.zeros(2), [[1.0, 2.0], [2.0, 1.0]]),
        ArgumentError, "covariance", "positive definite",
    ),
    "a mean that is not finite": wrong(
        lambda: tp.Gaussian([0.0, NAN], 1.0), ArgumentError, "mean", "finite"
    ),
}  # fmt: skip


@check_all(BAD_MODELS)
def test_problems_and_targets(case: Wrong) -> None:
    check(case)


def test_terms_that_look_back_are_fine_if_they_say_so() -> None:
    with pytest.raises(tp.TemperanceError, match="out of time"):
        tp.sample(make_problem(terms=looks_back, independent=False), max_seconds=1e-9)


# -- options -------------------------------------------------------------------------------------

BAD_COUNTS = {
    f"{name}={value!r}": wrong(
        sample(**{name: value}), ArgumentError, f"{name}: wanted a whole number", repr(value)
    )
    for name, values in {
        "num_draws": (0, -1, 1.5, 10.0, True, "10", None),
        "num_warmup": (-1, 0.5, False),
        "num_chains": (0, -4, 2.0),
        "seed": (-1, 0.0, True, "a"),
        "num_rungs": (1, 0, -3, 4.0, True),
        "sweeps_per_draw": (0, 1.0),
    }.items()
    for value in values
}

BAD_OPTIONS = BAD_COUNTS | {
    "a seed beyond 64 bits": wrong(
        sample(seed=2**63), ArgumentError, "seed: wanted a whole number below 2**63"
    ),
    "method plian": wrong(
        sample(method="plian"), UnknownNameError, "unknown method 'plian'", "did you mean 'plain'?"
    ),
    "method nothing like it": wrong(
        sample(method="xyz"), UnknownNameError, "method 'xyz'", "known are", "plain", "stt"
    ),
    "method 3": wrong(sample(method=3), ArgumentError, "method", "ParallelTempering", "3"),
    "a method's class": wrong(
        sample(method=tp.ParallelTempering), ArgumentError, "method", "ParallelTempering(ladder"
    ),
    "move": wrong(
        sample(move="hcm"), UnknownNameError, "unknown move 'hcm'", "did you mean 'hmc'?", "slice"
    ),
    "move 3": wrong(sample(move=3), ArgumentError, "move", "hmc(num_steps=10)", "3"),
    "option": wrong(
        sample(num_rung=4), UnknownNameError, "option 'num_rung' of method 'auto'", "'num_rungs'?"
    ),
    "option of another method": wrong(
        sample(method="tt", scheme="deo"), UnknownNameError, "method 'tt'", "'scheme'"
    ),
    "option of plain": wrong(
        sample(method="plain", num_rungs=4), UnknownNameError, "method 'plain'", "num_rungs"
    ),
    "option of a sampler built by hand": wrong(
        lambda: tp.sample(make_problem(), by_hand(), num_rungs=4), ArgumentError, "num_rungs"
    ),
    "scheme": wrong(
        sample(scheme="doe"), UnknownNameError, "swap scheme 'doe'", "did you mean 'deo'?"
    ),
    "one beta": wrong(sample(betas=[1.0]), ArgumentError, "betas", "two rungs", "'plain'"),
    "betas decreasing": wrong(
        sample(betas=[0.0, 0.5, 0.3, 1.0]), ArgumentError, "betas", "increasing"
    ),
    "betas from the target down": wrong(
        sample(betas=[1.0, 0.5, 0.0]), ArgumentError, "betas", "rung 0 is hottest"
    ),
    "betas twice the same": wrong(sample(betas=[0.0, 0.5, 0.5, 1.0]), ArgumentError, "increasing"),
    "betas not up to 1": wrong(sample(betas=[0.0, 0.9]), ArgumentError, "betas", "end at 1"),
    "betas beyond 1": wrong(sample(betas=[0.0, 1.0, 2.0]), ArgumentError, "betas", "end at 1"),
    "negative betas": wrong(sample(betas=[-0.1, 1.0]), ArgumentError, "betas", "[0, 1]"),
    "betas not finite": wrong(sample(betas=[0.0, NAN, 1.0]), ArgumentError, "betas", "finite"),
    "betas in a matrix": wrong(sample(betas=[[0.0, 1.0]]), ArgumentError, "betas", "(1, 2)"),
    "betas in words": wrong(sample(betas=["hot", "cold"]), ArgumentError, "betas", "hot"),
    "betas and another number": wrong(
        sample(betas=[0.0, 0.5, 1.0], num_rungs=4), ArgumentError, "num_rungs is 4", "3 betas"
    ),
    "hottest is the target": wrong(sample(min_beta=1.0), ArgumentError, "min_beta", "[0, 1)"),
    "hottest is negative": wrong(sample(min_beta=-0.1), ArgumentError, "min_beta", "-0.1"),
    "hottest in words": wrong(sample(min_beta="prior"), ArgumentError, "min_beta", "'prior'"),
    "a transition that cannot be run backwards": wrong(
        sample(method="tt", move=tp.from_blackjax(blackjax.hmc, reversible=False)),
        MoveError, "run backwards", "hmc",
    ),
    "a target without rows": wrong(
        lambda: tp.sample(tp.Target(normal, tp.Gaussian(np.zeros(2), 1.0)), method="spt"),
        ArgumentError, "'spt' leaves rows out", "Target has none", "method='pt'",
    ),
    "powers of a subsample": wrong(
        sample(method="spt", betas=[0.0, 1.0]), UnknownNameError, "betas", "sizes"
    ),
    "sizes of a power": wrong(
        sample(method="pt", sizes=[2, 6]), UnknownNameError, "sizes", "known are"
    ),
    "sizes beyond the rows": wrong(
        sample(method="spt", sizes=[2, 7]), DataError, "sizes must end at all 6 rows"
    ),
    "sizes and a hottest": wrong(
        sample(method="stt", sizes=[2, 6], min_rows=2), ArgumentError, "min_rows and sizes"
    ),
    "all rows as the hottest": wrong(
        sample(method="spt", min_rows=6), ArgumentError, "min_rows", "fewer than 6 rows"
    ),
    "half a row as the hottest": wrong(
        sample(method="stt", min_rows=2.5), ArgumentError, "min_rows", "2.5"
    ),
    "labels for some rows": wrong(
        sample(method="spt", strata=[0, 1]), DataError, "strata", "each of the 6 rows"
    ),
    "more exchanges than rows": wrong(
        sample(method="spt", refresh=4), ArgumentError, "refresh: 4 pairs", "6"
    ),
    "evidence of changing rows": wrong(
        sample(method="spt", refresh=1, evidence=True), ArgumentError, "evidence and refresh"
    ),
    "evidence in words": wrong(
        sample(method="spt", evidence="yes"), ArgumentError, "evidence", "'yes'"
    ),
    "a particle alone": wrong(
        sample(method="smc", num_draws=1), ArgumentError, "num_draws", "2 or more", "got 1"
    ),
    "ancestors that do not divide the particles": wrong(
        sample(method="smc", waste_free=7), ArgumentError, "waste_free", "1000 particles", "7"
    ),
    "as many ancestors as particles": wrong(
        sample(method="smc", waste_free=1000), ArgumentError, "waste_free", "below the 1000"
    ),
    "moves of chains whose length is given": wrong(
        sample(method="smc", waste_free=50, num_moves=3), ArgumentError, "num_moves and waste_free"
    ),
    "a share of all particles": wrong(
        sample(method="smc", conditional_ess=1.0), ArgumentError, "conditional_ess", "0 and 1"
    ),
    "a share and betas": wrong(
        sample(method="smc", conditional_ess=0.9, betas=[0.0, 1.0]),
        ArgumentError, "conditional_ess", "leave it out",
    ),
    "particles that begin above the base": wrong(
        sample(method="smc", betas=[0.1, 1.0]), ArgumentError, "betas", "begin at 0", "0.1"
    ),
    "particles that begin with rows": wrong(
        sample(method="smc", sizes=[1, 6]), ArgumentError, "sizes", "0 rows", "got 1"
    ),
    "betas of growing rows": wrong(
        sample(method="smc", by_rows=True, betas=[0.0, 1.0]), ArgumentError, "betas", "powers"
    ),
    "particles that add rows of a target": wrong(
        lambda: tp.sample(
            tp.Target(normal, tp.Gaussian(np.zeros(2), 1.0)), "smc", by_rows=True, progress=False
        ),
        ArgumentError, "a Target has none", "write it as a Problem",
    ),
    "resampling": wrong(
        sample(method="smc", resampling="sistematic"),
        UnknownNameError, "resampling scheme", "did you mean 'systematic'?",
    ),
    "particles that read a few rows": wrong(
        sample(method="smc", move=tp.mint(batch_size=3)), MoveError, "few rows"
    ),
    "refreshed transitions": wrong(
        sample(method="stt", refresh=1), UnknownNameError, "refresh", "'stt'"
    ),
    "an integrator": wrong(
        lambda: tp.hmc(integrator="verlet"), UnknownNameError, "integrator", "position, velocity"
    ),
    "where it is single": wrong(
        lambda: tp.hmc(single="cold"), UnknownNameError, "single", "always, hot, never"
    ),
    "precision": wrong(
        sample(precision="half"), ArgumentError, "precision", "'double' or 'single'", "'half'"
    ),
    "negative time": wrong(sample(max_seconds=-1), ArgumentError, "max_seconds", "positive", "-1"),
    "no time": wrong(sample(max_seconds=0), ArgumentError, "max_seconds", "positive"),
    "time that is no number": wrong(sample(max_seconds=NAN), ArgumentError, "max_seconds", "nan"),
    "time in words": wrong(sample(max_seconds="1h"), ArgumentError, "max_seconds", "'1h'"),
    "time as a flag": wrong(sample(max_seconds=True), ArgumentError, "max_seconds", "True"),
    "negative ESS": wrong(sample(target_ess=-3.0), ArgumentError, "target_ess", "-3.0"),
    "no leapfrog steps": wrong(lambda: tp.hmc(num_steps=0), ArgumentError, "num_steps", "0"),
    "a negative scale": wrong(lambda: tp.metropolis(scale=-1.0), ArgumentError, "scale", "-1.0"),
    "a metric": wrong(lambda: tp.hmc(metric="full"), ArgumentError, "metric", "'dense'", "'full'"),
    "repeat never": wrong(lambda: tp.repeat(tp.hmc(), 0), ArgumentError, "times", "0"),
}  # fmt: skip


@check_all(BAD_OPTIONS)
def test_options(case: Wrong) -> None:
    check(case)


def test_every_error_is_ours_and_most_are_value_errors() -> None:
    for case in (BAD_MODELS | BAD_OPTIONS).values():
        assert issubclass(case.error, TemperanceError)
        assert issubclass(case.error, ValueError) or case.error is MoveError


# -- starting points -----------------------------------------------------------------------------


def nowhere(x: Any) -> Any:
    return jnp.log(-jnp.sum(x**2)) if isinstance(x, jax.Array) else nowhere(x["mean"])


def without_gradient(x: Any) -> Any:
    """Finite everywhere, and its gradient nowhere: 0 times the slope of a root at minus one."""
    return normal(x) + jnp.where(x[0] ** 2 >= 0, 0.0, jnp.sqrt(-1.0 - x[0] ** 2))


def third_is_impossible(x: Any, rows: Any) -> Any:
    return jnp.where(rows == ROWS[2], -jnp.inf, terms(x, rows))


BAD_STARTS = {
    "a term": wrong(
        sample_problem(terms=third_is_impossible),
        StartError, "chain 0", "100 draws", "terms[2] = -inf", "mean=[", "prior",
    ),
    "the prior": wrong(
        sample_problem(log_prior=nowhere), StartError, "chain 0", "100 draws", "log_prior = nan"
    ),
    "the density": wrong(
        sample_target(nowhere, example=np.zeros(2)),
        StartError, "chain 0", "100 draws", "log_density = nan", "example",
    ),
    "the gradient": wrong(
        sample_target(without_gradient, example=np.zeros(2)),
        StartError, "chain 0", "gradient in 100 draws", "the gradient is not finite",
    ),
    "a sampler built by hand": wrong(
        lambda: tp.sample(make_problem(), broken_by_hand(), progress=False),
        StartError, "chain 0", "100 draws", "component 1 of the ladder = nan",
    ),
}  # fmt: skip


def broken_by_hand() -> tp.ParallelTempering:
    whole = by_hand()
    ladder = tp.GeometricLadder(small_runs.log_prior, nowhere, [0.0, 1.0])
    params = jax.tree.map(lambda leaf: leaf[:2], whole.params)
    return tp.ParallelTempering(ladder, whole.move, params)


@check_all(BAD_STARTS)
def test_starts(case: Wrong) -> None:
    check(case)


def half_is_impossible(x: Any, rows: Any) -> Any:
    return jnp.where(jnp.sum(x["mean"]) > 0.0, terms(x, rows), -jnp.inf)


def starts_of(problem: tp.Problem, gradient: bool = True) -> np.ndarray:
    densities = densities_of(problem)
    ladder = SingleRung(densities.whole)
    key = jax.random.key(0)
    starts = starts_module.starting_points(
        ladder, problem, densities, key, (4, 3), gradient=gradient
    )
    return np.asarray(starts)


def test_where_some_draws_are_impossible_others_are_tried() -> None:
    starts = starts_of(make_problem(terms=half_is_impossible))
    assert starts.shape == (4, 3, small_runs.DIMENSION)
    assert (starts.sum(axis=-1) > 0.0).all()
    assert len(np.unique(starts)) == starts.size


def test_the_chain_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = starts_module._try_starts

    def third_fails(*args: Any) -> Any:
        vectors, good = honest(*args)
        return vectors, good.at[7].set(False)

    monkeypatch.setattr(starts_module, "_try_starts", third_fails)
    with pytest.raises(StartError, match="chain 2: no starting point"):
        starts_of(make_problem())


# -- files ---------------------------------------------------------------------------------------


def text(path: Path) -> None:
    path.write_text("chain,draw,x\n0,0,1.0\n")


def netcdf(path: Path) -> None:
    xr.Dataset({"x": ("t", np.arange(3.0))}).to_netcdf(path, engine="h5netcdf")


def cut_off(path: Path) -> None:
    netcdf(path)
    path.write_bytes(path.read_bytes()[:-200])


def foreign_zarr(path: Path) -> None:
    zarr.create_group(path).create_array("x", data=np.ones(3))


def other_dataset(path: Path) -> None:
    xr.Dataset({"x": ("t", np.arange(3.0))}).to_zarr(path, consolidated=False)


def nothing(_: Path) -> None: ...


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("run.nc", nothing, "no such file"),
        ("run.zarr", nothing, "no such file"),
        ("run.nc", text, "cannot be read"),
        ("run.nc", cut_off, "cannot be read"),
        ("run.nc", lambda path: path.write_bytes(b""), "cannot be read"),
        ("run.nc", netcdf, "not written by temperance"),
        ("run.nc", Path.mkdir, "cannot be read"),
        ("run.zarr", text, "cannot be read"),
        ("run.zarr", Path.mkdir, "cannot be read"),
        ("run.zarr", foreign_zarr, "cannot be read"),
        ("run.zarr", other_dataset, "not written by temperance"),
        ("run", text, "cannot be read"),
    ],
)
def test_files_to_load(name: str, make: Callable[[Path], Any], words: str, tmp_path: Path) -> None:
    make(tmp_path / name)
    message = check(wrong(lambda: tp.load(tmp_path / name), FileFormatError, words, name))
    assert len(message) < 700


@pytest.mark.parametrize("make", [text, netcdf, foreign_zarr])
def test_files_as_checkpoints(make: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "run.zarr"
    make(path)
    call = sample(checkpoint=path)
    check(wrong(call, CheckpointError, str(path), "not a temperance checkpoint", "another path"))


def test_a_checkpoint_where_nobody_can_write() -> None:
    check(wrong(sample(checkpoint="/proc/nowhere/run.zarr"), CheckpointError, "cannot write"))


# -- results -------------------------------------------------------------------------------------


def test_evidence_where_there_is_none() -> None:
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset()})
    tree.attrs["method"] = "plain"
    check(wrong(lambda: tp.log_evidence(tree), ResultError, "'plain'", "method='pt'"))


def test_an_estimator_that_nobody_knows() -> None:
    evidence = xr.Dataset(coords={"estimator": ["mbar", "stepping_stones"]})
    tree = xr.DataTree.from_dict({"evidence": evidence})
    check(wrong(lambda: tp.log_evidence(tree, "mabr"), ResultError, "'mbar'", "'mabr'"))
