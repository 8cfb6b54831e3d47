"""Wrong calls of exact mini-batch moves: each gets its error, before anything long is compiled."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from tests.moves.minibatch.tall_rows import DESIGN, make_problem

import temperance as tp
from temperance.engine.loop import traces
from temperance.errors import ArgumentError, MoveError, StartError, UnknownNameError
from temperance.ladders.row_sums import RowLadder

SHORT = {"num_draws": 20, "num_warmup": 20, "num_chains": 2, "progress": False}


@pytest.fixture(autouse=True)
def as_a_user() -> Iterator[None]:
    """Without the types that tests check and users do not; and with nothing long compiled."""
    before = dict(traces)
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
    assert traces == before


@cache
def mode() -> tp.Laplace:
    return tp.laplace(make_problem())


@cache
def about_the_mode() -> tp.Bounds:
    return tp.lipschitz(DESIGN, "logistic", around=mode())


def target() -> tp.Target:
    return tp.Target(lambda x: -0.5 * jnp.sum(x**2), example=np.zeros(2))


def run(problem: Any = None, move: Any = None, method: str = "plain") -> Any:
    return tp.sample(problem or make_problem(), method, move or tp.tuna(about_the_mode()), **SHORT)


BAD_CALLS = {
    "no bounds": (lambda: tp.tuna(DESIGN), ArgumentError, "bounds: wanted tp.lipschitz"),
    "chi of zero": (lambda: tp.tuna(about_the_mode(), chi=0.0), ArgumentError, "chi: wanted a pos"),
    "chi below zero": (lambda: tp.tuna(about_the_mode(), chi=-1), ArgumentError, "chi"),
    "chi in words": (lambda: tp.tuna(about_the_mode(), chi="auto"), ArgumentError, "'auto'"),
    "an empty chunk": (lambda: tp.tuna(about_the_mode(), chunk=0), ArgumentError, "chunk"),
    "half a row": (lambda: tp.tuna(about_the_mode(), most_rows=0.5), ArgumentError, "most_rows"),
    "a proposal": (lambda: tp.tuna(about_the_mode(), "hmc"), UnknownNameError, "'hmc'"),
    "a move": (lambda: tp.tuna(about_the_mode(), tp.hmc()), UnknownNameError, "autoregressive"),
    "no Gaussian to step about": (
        lambda: tp.tuna(tp.lipschitz(DESIGN, "logistic"), "autoregressive"),
        ArgumentError, "around=tp.laplace",
    ),
    "a step beyond one": (
        lambda: tp.tuna(about_the_mode(), step_size=1.5), ArgumentError, "(0, 1]"
    ),
    "two steps": (
        lambda: tp.tuna(about_the_mode(), tp.metropolis(0.3), step_size=0.5),
        ArgumentError, "its own scale",
    ),
    "scales in a matrix": (lambda: tp.Bounds(DESIGN, max), ArgumentError, "(9, 2)"),
    "scales below zero": (lambda: tp.Bounds([1.0, -1.0], max), ArgumentError, "below zero"),
    "scales that are not finite": (lambda: tp.Bounds([1.0, np.nan], max), ArgumentError, "finite"),
    "a distance that is none": (lambda: tp.Bounds([1.0], 3.0), ArgumentError, "distance"),
    "a tightness": (lambda: tp.Bounds([1.0], max, 2.0), ArgumentError, "tightness"),
    "a family": (lambda: tp.lipschitz(DESIGN, "logit"), UnknownNameError, "'logistic'"),
    "no family": (lambda: tp.lipschitz(DESIGN), ArgumentError, "slope="),
    "a family and a slope": (
        lambda: tp.lipschitz(DESIGN, "logistic", slope=2.0), ArgumentError, "its own"
    ),
    "a negative slope": (lambda: tp.lipschitz(DESIGN, slope=-2.0), ArgumentError, "slope"),
    "third alone": (lambda: tp.lipschitz(DESIGN, third=2.0), ArgumentError, "around="),
    "a design that is a vector": (
        lambda: tp.lipschitz(DESIGN[0], "logistic"), ArgumentError, "design: wanted a matrix"
    ),
    "a factor": (
        lambda: tp.lipschitz(DESIGN, "logistic", factor=np.ones(3)), ArgumentError, "(3,)"
    ),
    "a factor about a mode": (
        lambda: tp.lipschitz(DESIGN, "logistic", factor=np.ones(2), around=mode()),
        ArgumentError, "factor",
    ),
    "corners about a mode": (
        lambda: tp.lipschitz(DESIGN, "laplace", around=mode()), ArgumentError, "third derivative"
    ),
    "a mode that is a vector": (
        lambda: tp.lipschitz(DESIGN, "logistic", around=np.zeros(2)), ArgumentError, "tp.laplace"
    ),
    "a mode of another problem": (
        lambda: tp.lipschitz(np.ones((9, 3)), "logistic", around=mode()),
        ArgumentError, "3 columns",
    ),
    "a target": (lambda: run(target()), MoveError, "Problem"),
    "the mode of a target": (lambda: tp.laplace(target()), ArgumentError, "Problem"),
    "a start": (lambda: tp.laplace(make_problem(), np.zeros(3)), ArgumentError, "(3,)"),
    "no mode": (
        lambda: tp.laplace(replace(make_problem(), log_prior=lambda x: jnp.sum(jnp.exp(x)))),
        StartError, "no mode",
    ),
    "other rows": (
        lambda: run(move=tp.tuna(tp.lipschitz(DESIGN[:5], "logistic"))), MoveError, "5 rows"
    ),
    "under parallel tempering": (lambda: run(method="pt"), MoveError, "plain"),
    "batches of none": (lambda: tp.delayed(batch_size=0), ArgumentError, "batch_size"),
    "batches of half a row": (lambda: tp.delayed(batch_size=0.5), ArgumentError, "0.5"),
    "a first stage": (lambda: tp.delayed("nuts"), UnknownNameError, "known are hmc, mala"),
    "a first stage in an order": (
        lambda: tp.delayed(tp.alternate(tp.hmc(), tp.metropolis())), MoveError, "reversible"
    ),
    "a first stage of few rows": (lambda: tp.delayed(tp.mint()), MoveError, "knows its density"),
    "a first stage that is none": (lambda: tp.delayed(3), MoveError, "proposal"),
    "delayed about a vector": (
        lambda: tp.delayed(around=np.zeros(2)), ArgumentError, "tp.laplace"
    ),
    "larger batches than there are rows": (
        lambda: run(move=tp.delayed(batch_size=10)), MoveError, "at most 9"
    ),
    "delayed without rows": (lambda: run(target(), tp.delayed(batch_size=2)), MoveError, "Problem"),
    "delayed on subsamples": (
        lambda: run(move=tp.delayed(batch_size=2), method="spt"), MoveError, "PrefixLadder"
    ),
    "delayed where nobody reads all rows": (
        lambda: tp.sample(
            make_problem(),
            tp.Plain(
                RowLadder.of(make_problem()),
                tp.delayed(batch_size=2),
                tp.Params(jnp.ones((1, 1)), jnp.ones((1, 2))),
            ),
            **SHORT,
        ),
        MoveError, "RowLadder",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CALLS)
def test_wrong_calls(name: str):
    call, error, words = BAD_CALLS[name]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert words in str(caught.value)
