"""spt and stt end to end, on a posterior with two modes whose weights are known.

Most rows see the square of x and know nothing of its sign; a few see x itself, and with the prior
they make one sign somewhat more likely than the other. Between the modes is a wall of more than
twenty nats, of which half a dozen rows leave one.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import temperance as tp
from temperance.estimates.diagnostics import standard_error

pytestmark = pytest.mark.slow

SIGNED = np.array([2.1, -1.3, 0.9, -0.6])
NUM_ROWS, SPREAD, CENTRE = 160, 2.0, 0.1
# How many standard errors a right run may be off, and how large they may be for that to mean much.
LIMIT, LARGEST_ERROR = 4.0, 0.03


def rows() -> dict[str, np.ndarray]:
    squares = 1.4 + SPREAD * np.random.default_rng(5).normal(size=NUM_ROWS - len(SIGNED))
    values = np.concatenate([squares, SIGNED])
    return {"value": values, "signed": np.arange(NUM_ROWS) >= NUM_ROWS - len(SIGNED)}


def terms(x: Any, data: Any) -> Any:
    seen = jnp.where(data["signed"], x, x**2)
    return -0.5 * ((data["value"] - seen) / SPREAD) ** 2


def log_prior(x: Array) -> Array:
    return -0.5 * (x - CENTRE) ** 2 - 0.5 * np.log(2 * np.pi)


PROBLEM = tp.Problem(log_prior, terms, rows(), lambda key: CENTRE + jax.random.normal(key))


def quadrature() -> tuple[float, float, float, float]:
    """P(x > 0) a posteriori and a priori, the log evidence, and the wall between the modes."""
    x = np.linspace(-6, 6, 24_001)
    prior = np.asarray(jax.vmap(log_prior)(x))
    likelihood = jax.vmap(lambda one: jnp.sum(terms(one, PROBLEM.data)))(x)
    posterior = prior + np.asarray(likelihood)
    total, before = np.logaddexp.reduce(posterior), np.logaddexp.reduce(prior)
    up = float(np.exp(np.logaddexp.reduce(posterior[x > 0]) - total))
    up_before = float(np.exp(np.logaddexp.reduce(prior[x > 0]) - before))
    lower = min(posterior[x > 0].max(), posterior[x < 0].max())
    return up, up_before, float(total - before), float(lower - posterior[len(x) // 2])


UP, UP_BEFORE, LOG_EVIDENCE, WALL = quadrature()


def signs(seed: int, method: str, **options: Any) -> tuple[Any, np.ndarray]:
    """The tree, and for each draw whether x > 0."""
    tree = tp.sample(PROBLEM, method, seed=seed, progress=False, **options)
    return tree, (tree["posterior"]["x"].values > 0).astype(float)


def check_the_weight(up: np.ndarray) -> None:
    error = float(standard_error(up))
    assert error < LARGEST_ERROR
    assert abs(up.mean() - UP) < LIMIT * error
    # Every chain has seen both modes.
    assert (np.abs(up.mean(axis=1) - UP) < 0.2).all()


def test_the_question_is_one_that_can_be_got_wrong():
    assert WALL > 20
    assert 0.2 < UP_BEFORE < UP < 0.8
    # Neither one mode alone nor what the hottest rung believes would pass.
    assert min(1 - UP, UP, UP - UP_BEFORE) > LIMIT * LARGEST_ERROR


def test_spt_finds_the_weights_of_both_signs_and_the_evidence(seed: int):
    tree, up = signs(seed, "spt", num_draws=2000)
    check_the_weight(up)
    value, error = tp.log_evidence(tree)
    assert abs(value - LOG_EVIDENCE) < LIMIT * error < 0.5


def test_stt_finds_them_where_its_ladder_reaches(seed: int):
    tree, up = signs(seed, "stt", sizes=(6, 20, 60, NUM_ROWS), num_draws=4000)
    check_the_weight(up)
    assert float(tree["tempering"]["transition_rate"]) > 0.05
    assert not tree["tempering"]["left_behind"].any()


@pytest.mark.parametrize(
    ("method", "options"), [("plain", {}), ("stt", {"sizes": (100, NUM_ROWS)})]
)
def test_without_enough_heat_a_chain_stays_with_one_sign(
    method: str, options: dict[str, Any], seed: int
):
    _, up = signs(seed, method, **options)
    assert set(up.mean(axis=1)) <= {0.0, 1.0}


def test_too_little_heat_does_not_go_unsaid(seed: int):
    """With one chain R-hat is blind; the replicas of its warm-up are not."""
    sizes = tuple(range(100, NUM_ROWS + 1, 10))
    tree, up = signs(seed, "stt", sizes=sizes, num_chains=1, num_draws=400, num_warmup=200)
    assert up.mean() in (0.0, 1.0)
    assert tree["tempering"]["left_behind"].any()
    assert any("modes that the transitions do not reach" in w for w in tp.summary(tree).warnings)
