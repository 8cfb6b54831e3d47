"""Wrong calls of `gaussian_process`, of the priors and of `predict`, and what each gets."""

from collections.abc import Callable, Iterator
from typing import Any

import jaxtyping
import numpy as np
import pytest
import xarray as xr

import temperance as tp
from temperance.errors import ArgumentError, DataError, ResultError, UnknownNameError

X = np.zeros((5, 2))
Y = np.zeros(5)


@pytest.fixture(autouse=True)
def as_a_user() -> Iterator[None]:
    """Without the types that tests check, and that users do not."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def made(inputs: Any = X, y: Any = Y, **options: Any) -> Callable[[], Any]:
    return lambda: tp.gaussian_process(inputs, y, **options)


def fast(inputs: Any = X, y: Any = Y, **options: Any) -> Callable[[], Any]:
    return lambda: tp.fast_gaussian_process(inputs, y, **options)


def correlated(*args: Any) -> Callable[[], Any]:
    return lambda: tp.CorrelatedLogNormal(*args)


def tree(num_inputs: int = 2) -> xr.DataTree:
    values = {
        "log_length": (["chain", "draw", "input"], np.zeros((1, 3, num_inputs))),
        "log_scale": (["chain", "draw"], np.zeros((1, 3))),
        "log_noise": (["chain", "draw"], np.zeros((1, 3))),
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(values)})


def predicted(*args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: tp.predict(tp.gaussian_process(X, Y), *args, **options)


def other_problem() -> tp.Problem:
    return tp.Problem(lambda _: 0.0, lambda _, rows: rows, Y, lambda _: Y)


EMPTY = xr.DataTree.from_dict({"posterior": xr.Dataset()})
BAD = {
    "ragged": (made(y=np.zeros(4)), DataError, ("y", "5 rows", "(4,)")),
    "y in a column": (made(y=np.zeros((5, 1))), DataError, ("y", "(5,)", "(5, 1)")),
    "three axes": (made(np.zeros((5, 2, 2))), DataError, ("inputs", "(n, D)", "(5, 2, 2)")),
    "no inputs": (made(np.zeros((5, 0))), DataError, ("inputs", "(5, 0)")),
    "one row": (made(X[:1], Y[:1]), DataError, ("1 row(s)",)),
    "missing input": (made(np.where(np.eye(5, 2) > 0, np.nan, X)), DataError, ("inputs", "row 0")),
    "missing y": (made(y=[0, 1, np.inf, 0, 0]), DataError, ("y", "row 2", "leave out")),
    "words": (made(y=["a"] * 5), DataError, ("inputs and y", "real numbers")),
    "misspelt kernel": (made(kernel="matern25"), UnknownNameError, ("did you mean 'matern",)),
    "no kernel": (made(kernel=tp.Matern32), ArgumentError, ("kernel", "Matern52()")),
    "misspelt prior": (made(priors={"lenght": tp.Gamma(1, 1)}), UnknownNameError, ("'length'",)),
    "no prior": (made(priors={"noise": 1.0}), ArgumentError, ("priors['noise']", "1.0")),
    "no mapping": (made(priors=tp.Gamma(1, 1)), ArgumentError, ("priors", "mapping")),
    "negative jitter": (made(jitter=-1.0), ArgumentError, ("jitter", "-1.0")),
    "no spread": (lambda: tp.LogNormal(0.0, 0.0), ArgumentError, ("sigma", "positive")),
    "no location": (lambda: tp.LogNormal(np.nan, 1.0), ArgumentError, ("mu", "finite")),
    "negative shape": (lambda: tp.Gamma(-1.0, 1.0), ArgumentError, ("shape", "positive")),
    "rate in words": (lambda: tp.InverseGamma(1.0, "2x"), ArgumentError, ("rate", "'2x'")),
    "no scale": (lambda: tp.HalfNormal(-2.0), ArgumentError, ("sigma", "-2.0")),
    "no route": (fast(route="eigen"), UnknownNameError, ("route", "'eigen'", "spectral")),
    "negative constant": (fast(constant=-1), ArgumentError, ("constant", "-1")),
    "endless nugget": (fast(nugget=np.inf), ArgumentError, ("nugget", "inf")),
    "ragged, fast": (fast(y=np.zeros(4)), DataError, ("y", "5 rows", "(4,)")),
    "misspelt fast prior": (fast(priors={"nois": tp.Gamma(1, 1)}), UnknownNameError, ("'noise'",)),
    "full correlation": (correlated(0, 1, 1.0), ArgumentError, ("correlation", "1.0")),
    "negative correlation": (correlated(0, 1, -0.1), ArgumentError, ("correlation", "-0.1")),
    "no spread at all": (correlated(0, 0, 0.5), ArgumentError, ("sigma", "positive")),
    "another model": (lambda: tp.predict(other_problem(), tree(), X), ArgumentError, ("problem",)),
    "too few columns": (predicted(tree(), X[:, :1]), DataError, ("new_inputs", "(m, 2)", "(5, 1)")),
    "new and missing": (predicted(tree(), X * np.nan), DataError, ("new_inputs", "finite")),
    "another tree": (predicted(EMPTY, X), ResultError, ("log_length", "posterior")),
    "no tree": (predicted(None, X), ResultError, ("log_length", "sample")),
    "another number of inputs": (predicted(tree(3), X), ResultError, ("(3,)", "2 input(s)")),
    "no draws": (predicted(tree(), X, num_draws=0), ArgumentError, ("num_draws", "0")),
    "half precision": (predicted(tree(), X, precision="half"), ArgumentError, ("precision",)),
}


@pytest.mark.parametrize(("call", "error", "words"), BAD.values(), ids=BAD.keys())
def test_wrong_calls(call: Callable[[], Any], error: type[Exception], words: tuple[str, ...]):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    for word in words:
        assert word in str(caught.value), str(caught.value)
