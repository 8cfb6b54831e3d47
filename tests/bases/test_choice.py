"""Which base a run is heated towards: by name, by fit, or one's own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.shared.small_runs import ROWS, assert_identical, make_problem, run, uninterrupted

import temperance as tp
from temperance.bases import choice as base_options
from temperance.errors import ArgumentError, MoveError, PositionError, UnknownNameError

QUICK: dict[str, Any] = {"num_warmup": 100, "num_draws": 100, "progress": False}
# Of the small runs: x_1 + x_2 has variance 2 a priori, and rows have variance 1 about it.
COVARIANCE = np.eye(len(ROWS)) + 2.0
TRUTH = -0.5 * ROWS @ np.linalg.solve(COVARIANCE, ROWS)
TRUTH -= 0.5 * np.linalg.slogdet(2 * np.pi * COVARIANCE)[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "base",
    [None, *(pytest.param(name, marks=pytest.mark.slow) for name in ("prior", "advi", "fits"))],
)
def test_log_evidence_does_not_depend_on_the_base(base: str | None):
    tree = tp.sample(make_problem(), method="gibbs-ct", base=base, **QUICK)
    value, error = tp.log_evidence(tree)
    assert abs(value - TRUTH) < 4.5 * error
    assert error < 0.3


def test_a_fit_is_used_again():
    problem = make_problem()
    fit = tp.advi(problem, family="dense", progress=False)
    assert fit.log_zeta == pytest.approx(TRUTH, abs=0.05)  # a normal posterior, fitted exactly
    tree = tp.sample(
        problem, method="joint-ct", base=fit, num_warmup=0, num_draws=5, progress=False
    )
    assert float(tree["tempering"]["log_zeta"]) == fit.log_zeta


class Laplace:
    """A base of one's own: a double exponential, with its draws."""

    def __call__(self, x: Any) -> Any:
        return -jnp.sum(jnp.abs(x)) - x.size * jnp.log(2.0)

    def draw(self, key: Any) -> Any:
        return jax.random.laplace(key, (2,))


@pytest.mark.slow
def test_a_base_of_ones_own():
    tree = tp.sample(make_problem(), method="st", base=Laplace(), **QUICK)
    value, error = tp.log_evidence(tree)
    assert abs(value - TRUTH) < 4.5 * error


@pytest.mark.slow
def test_a_target_without_a_base_gets_one():
    target = tp.Target(lambda x: -0.5 * jnp.sum((x - 1) ** 2), example=np.zeros(2))
    tree = tp.sample(target, method="ais", num_rungs=4, **QUICK)
    value, error = tp.log_evidence(tree)
    # One fit of a normal density is the density, and every weight the same.
    assert value == pytest.approx(np.log(2 * np.pi), abs=1e-2 + 4.5 * error)


def test_what_cannot_be_a_base():
    target = tp.Target(lambda x: -0.5 * jnp.sum(x**2), example=np.zeros(2))
    with pytest.raises(ArgumentError, match="has none of its own"):
        tp.sample(target, method="st", base="prior", **QUICK)
    with pytest.raises(ArgumentError, match="base: wanted a normalised log density"):
        tp.sample(target, method="st", base=3, **QUICK)
    with pytest.raises(ArgumentError, match="draws have shape"):
        tp.sample(target, method="st", base=tp.Gaussian(np.zeros(3), 1.0), **QUICK)


# -- what is wrong with a call is said before a base is fitted ------------------------------------

EXACT = {"mean": np.zeros(2)}
# The least that makes each method fit a base to a Problem.
FITS: dict[str, dict[str, Any]] = {
    "joint-ct": {},
    "gibbs-ct": {},
    "st": {"base": "fits"},
    "ais": {"base": "fits"},
    "bdmc": {"base": "advi", "exact": EXACT},
}


class FittedError(Exception):
    """A base was about to be fitted."""


@pytest.fixture
def nothing_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise FittedError

    for name in base_options.FITTED:
        monkeypatch.setitem(base_options.FITTED, name, refuse)


@pytest.mark.usefixtures("nothing_is_fitted")
@pytest.mark.parametrize("method", FITS)
def test_a_right_call_goes_on_to_its_fit(method: str):
    with pytest.raises(FittedError):
        tp.sample(make_problem(), method=method, **FITS[method], **QUICK)


Wrong = tuple[dict[str, Any], type[Exception], str]
EVERYWHERE: dict[str, Wrong] = {
    "option": ({"num_rung": 4}, UnknownNameError, "num_rung"),
    "move": ({"move": "hcm"}, UnknownNameError, "did you mean 'hmc'"),
    "a move that reads a few rows": ({"move": "mint"}, MoveError, "reads a few rows"),
    "a move that reads rows of a bridge": (
        {"move": tp.delayed(batch_size=2)}, MoveError, "has none to read"
    ),
    "base": ({"base": "fit"}, UnknownNameError, "did you mean 'fits'"),
    "base 3": ({"base": 3}, ArgumentError, "base: wanted a normalised log density"),
}  # fmt: skip
STEPS: dict[str, Wrong] = {
    "sweeps_per_draw": ({"sweeps_per_draw": 0}, ArgumentError, "sweeps_per_draw: wanted"),
}
CONTINUOUS = STEPS | {
    "log_zeta": ({"log_zeta": "big"}, ArgumentError, "log_zeta: wanted"),
    "log_zeta not finite": ({"log_zeta": float("inf")}, ArgumentError, "log_zeta: wanted"),
    "betas": ({"betas": [0.0, 1.0]}, UnknownNameError, "betas"),
}
LADDERS: dict[str, Wrong] = {
    "num_rungs": ({"num_rungs": 1}, ArgumentError, "num_rungs: wanted"),
    "betas decreasing": ({"betas": [0.0, 0.6, 0.5, 1.0]}, ArgumentError, "increasing"),
    "betas not from 0": ({"betas": [0.1, 1.0]}, ArgumentError, "at 0, the base"),
    "another number": ({"betas": [0.0, 1.0], "num_rungs": 3}, ArgumentError, "num_rungs is 3"),
}
ANNEALS = LADDERS | {
    "conditional_ess": ({"conditional_ess": 1.0}, ArgumentError, "conditional_ess: wanted"),
    "both": ({"conditional_ess": 0.9, "num_rungs": 5}, ArgumentError, "give it alone"),
    "rows": ({"by_rows": True}, ArgumentError, "base: it belongs to powers"),
    "sizes": ({"sizes": [0, 2, 7], "base": None}, tp.TemperanceError, "must end at all 6 rows"),
    "scheme": ({"scheme": "deo"}, UnknownNameError, "scheme"),
}
EXACTS: dict[str, Wrong] = {
    "no exact draws": ({"exact": None}, ArgumentError, "exact: a reverse anneal begins"),
    "another shape": (
        {"exact": lambda key: {"mean": jax.random.normal(key, (3,))}}, ArgumentError,
        "exact: its draws",
    ),
    "exact draws that fail": ({"exact": lambda: 0}, ArgumentError, "fails on a random key"),
    "another position": ({"exact": {"mean": np.zeros(3)}}, PositionError, "leaves of shapes"),
}  # fmt: skip
OF_EACH = {
    "joint-ct": CONTINUOUS,
    "gibbs-ct": CONTINUOUS,
    "st": STEPS | LADDERS,
    "ais": ANNEALS,
    "bdmc": ANNEALS | EXACTS,
}


@pytest.mark.usefixtures("nothing_is_fitted")
@pytest.mark.parametrize("method", FITS)
def test_wrong_calls_are_refused_before_a_fit(method: str):
    for options, error, words in (EVERYWHERE | OF_EACH[method]).values():
        with pytest.raises(error, match=words):
            tp.sample(make_problem(), method=method, **(FITS[method] | options), **QUICK)


@pytest.mark.usefixtures("nothing_is_fitted")
def test_a_target_without_a_base_is_not_fitted_for_a_wrong_call():
    target = tp.Target(lambda x: -0.5 * jnp.sum(x**2), example=np.zeros(2))
    for method, options in {"st": {"num_rungs": 1}, "gibbs-ct": {"log_zeta": "big"}}.items():
        with pytest.raises(FittedError):
            tp.sample(target, method=method, **QUICK)
        with pytest.raises(ArgumentError, match="wanted"):
            tp.sample(target, method=method, **options, **QUICK)


def test_joint_tempering_refuses_a_move_by_rows_before_its_pilot(monkeypatch: pytest.MonkeyPatch):
    """On the pilot's ladder such a move can do its work, and on the joint one it cannot."""
    monkeypatch.setattr(tp.ParallelTempering, "init_replicas", None)
    move = tp.delayed(batch_size=2)
    with pytest.raises(MoveError, match="JointLadder has none to read"):
        tp.sample(make_problem(), method="joint-ct", base="prior", move=move, **QUICK)


# -- by name ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["own", "prior"])
def test_ones_own_base_is_the_default_of_parallel_tempering(base: str):
    assert_identical(run("pt", base=base), uninterrupted("pt"))


@pytest.mark.slow
@pytest.mark.parametrize("base", ["modes", "fitted", "advi"])
def test_parallel_tempering_from_another_base(base: str):
    tree = tp.sample(make_problem(), method="pt", base=base, **QUICK)
    value, error = tp.log_evidence(tree)
    assert abs(value - TRUTH) < 4.5 * error < 0.3
    assert ("modes" in tree.children) == (base == "modes")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["st", "ais", "smc"])
def test_other_methods_heat_from_the_modes(method: str):
    tree = tp.sample(make_problem(), method=method, base="modes", **QUICK)
    value, error = tp.log_evidence(tree)
    assert abs(value - TRUTH) < 4.5 * error < 0.5
    share = tree["modes"]["share"].values
    np.testing.assert_allclose(share, [1.0])


@pytest.mark.slow
def test_a_reference_is_used_again():
    problem = make_problem()
    found = tp.modes(problem, progress=False)
    tree = run("pt from modes", base=found.reference)
    assert int(tree["modes"].attrs["num_draws"]) == found.num_draws
    assert float(tree["modes"]["reference_share"][0]) == found.shares[0]


BARE = tp.Target(lambda x: -0.5 * jnp.sum((x - 1) ** 2), example=np.zeros(2))


@pytest.mark.slow
@pytest.mark.parametrize("base", [None, "modes", "fitted"])
def test_a_target_without_a_base_can_be_heated(base: str | None):
    tree = tp.sample(BARE, method="pt", base=base, **QUICK)
    value, error = tp.log_evidence(tree)
    assert value == pytest.approx(np.log(2 * np.pi), abs=1e-2 + 4.5 * error)


def test_wrong_bases_of_parallel_tempering():
    with pytest.raises(UnknownNameError, match="did you mean 'modes'"):
        tp.sample(make_problem(), method="pt", base="mode", **QUICK)
    with pytest.raises(ArgumentError, match="base: wanted a normalised log density"):
        tp.sample(make_problem(), method="pt", base=3, **QUICK)
    with pytest.raises(ArgumentError, match=r"has none of its own.*base='modes'"):
        tp.sample(BARE, method="pt", base="own", **QUICK)
    move = tp.delayed("metropolis", batch_size=2)
    with pytest.raises(MoveError, match="has none to read"):
        tp.sample(make_problem(), method="pt", base="modes", move=move, **QUICK)
