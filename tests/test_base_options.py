"""Which base a run is heated towards: by name, by fit, or one's own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.small_runs import ROWS, make_problem

import temperance as tp
from temperance.errors import ArgumentError

QUICK: dict[str, Any] = {"num_warmup": 100, "num_draws": 100, "progress": False}
# Of the small runs: x_1 + x_2 has variance 2 a priori, and rows have variance 1 about it.
COVARIANCE = np.eye(len(ROWS)) + 2.0
TRUTH = -0.5 * ROWS @ np.linalg.solve(COVARIANCE, ROWS)
TRUTH -= 0.5 * np.linalg.slogdet(2 * np.pi * COVARIANCE)[1]


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
