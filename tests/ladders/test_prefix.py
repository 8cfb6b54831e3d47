"""Prefix ladders: laws, and what is evaluated at which rung."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.shared.subsampled_rows import (
    Terms,
    log_prior,
    make_ladder,
    make_problem,
    make_rows,
)

from temperance._types import Data, Position
from temperance.ladders.prefix import PrefixLadder, depends_on_order
from temperance.problems.problem import Problem
from temperance.testing import check_ladder, check_vmap

SHARED = {"independent": 0.0, "looking back": 0.7}


@pytest.mark.parametrize("sizes", [(2, 3, 7), (0, 1, 4, 7)])
@pytest.mark.parametrize("kind", SHARED)
def test_the_laws_of_a_ladder(sizes: tuple[int, ...], kind: str, seed: int):
    positions = jnp.asarray(np.random.default_rng(seed).normal(size=(5, 2)))
    check_ladder(make_ladder(sizes, SHARED[kind]), positions)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARED)
def test_a_rung_is_its_own_prefix_and_lifting_adds_the_next_block(kind: str, seed: int):
    ladder = make_ladder((0, 2, 3, 7), SHARED[kind])
    whole = Terms(SHARED[kind])
    x = jnp.asarray(np.random.default_rng(seed).normal(size=2))
    for k, size in enumerate(ladder.sizes):
        wanted = log_prior(x) + jnp.sum(whole(x, ladder.data[:size]))
        rung = ladder.at(k)
        point = rung.evaluate(x, gradient=True)
        assert point.gradients is None
        np.testing.assert_allclose(rung.log_density(point), wanted, rtol=1e-13)
        np.testing.assert_allclose(rung(x), wanted, rtol=1e-13)
        slope = jax.grad(lambda v, n=size: log_prior(v) + jnp.sum(whole(v, ladder.data[:n])))(x)
        np.testing.assert_allclose(rung.slope(x), slope, rtol=1e-12)
        if k + 1 < ladder.num_rungs:
            lifted = ladder.lift(k, point)
            above = ladder.at(k + 1)
            np.testing.assert_allclose(above.log_density(lifted), above(x), rtol=1e-13)
            # What it knew of its own rung has not changed.
            np.testing.assert_array_equal(rung.log_density(lifted), rung.log_density(point))


def test_a_batch_equals_its_members(seed: int):
    ladder = make_ladder((1, 3, 6))
    positions = jnp.asarray(np.random.default_rng(seed).normal(size=(4, 2)))
    check_vmap(lambda x: ladder.lift(0, ladder.at(0).evaluate(x, gradient=False)), positions)


def test_gradients_come_from_the_log_likelihood_where_there_is_one():
    """A wrong one shows in the slope and nowhere in the values."""
    terms = Terms(0.0)
    ladder = PrefixLadder(
        log_prior, terms, make_rows(5), (2, 5), log_likelihood=lambda x, _: -jnp.sum(x**4)
    )
    x = jnp.array([0.3, -0.2])
    wanted = jax.grad(lambda v: log_prior(v) - jnp.sum(v**4))(x)
    np.testing.assert_allclose(ladder.at(0).slope(x), wanted, rtol=1e-13)
    point = ladder.at(1).evaluate(x, gradient=False)
    wanted = log_prior(x) + jnp.sum(terms(x, ladder.data))
    np.testing.assert_allclose(ladder.at(1).log_density(point), wanted, rtol=1e-13)


def test_rows_are_shuffled_by_the_seed_and_none_is_lost():
    problem = make_problem(50)
    one, two, again = (PrefixLadder.of(problem, (5, 50), seed=s) for s in (0, 1, 0))
    np.testing.assert_array_equal(one.data, again.data)
    assert not np.array_equal(one.data, two.data)
    for ladder in (one, two):
        np.testing.assert_array_equal(np.sort(ladder.data[:, 0]), np.sort(problem.data[:, 0]))


@pytest.mark.slow
def test_strata_have_their_share_in_every_rung():
    labels = np.repeat(["common", "rare", "one"], [80, 19, 1])
    problem = Problem(
        lambda x: -0.5 * x**2, lambda x, d: -x * d[:, 0], np.arange(100.0)[:, None],
        lambda key: jax.random.normal(key),
    )  # fmt: skip
    ladder = PrefixLadder.of(problem, (3, 10, 50, 100), strata=labels)
    for again in (ladder, eqx.filter_jit(PrefixLadder.reshuffled)(ladder, jax.random.key(3))):
        of_row = labels[np.asarray(again.data[:, 0]).astype(int)]
        for size in ladder.sizes:
            counts = {name: np.sum(of_row[:size] == name) for name in ("common", "rare", "one")}
            assert counts["one"] == 1
            assert counts["rare"] == pytest.approx(max(1, 0.19 * size), abs=1.5)
    plain = PrefixLadder.of(problem, (3, 10, 50, 100))
    assert labels[int(plain.data[0, 0])] != "one"


def test_a_time_series_keeps_its_order():
    """Its likelihood is another one when rows change places, and the target would be too."""

    def terms(x: Position, rows: Data) -> jax.Array:
        before = jnp.concatenate([jnp.zeros(1), rows[:-1]])
        return -0.5 * (rows - x * before) ** 2

    series = np.cumsum(make_rows(30)[:, 0])
    problem = Problem(
        lambda x: -0.5 * x**2, terms, series, lambda k: jax.random.normal(k), independent=False
    )
    assert depends_on_order(problem)
    assert not depends_on_order(make_problem(30, 0.7))
    ladder = PrefixLadder.of(problem, (10, 30), seed=4)
    np.testing.assert_array_equal(ladder.data, series)
    np.testing.assert_array_equal(ladder.reshuffled(jax.random.key(0)).data, series)
