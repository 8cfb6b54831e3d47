"""Parts of studies/minibatch_tempered that have an exact answer, and a little of all."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import gamma, norm
from tests.studies.study_parts import STUDIES, part_of

import temperance as tp

STUDY = STUDIES / "minibatch_tempered"
part = part_of(STUDY)


def test_nodes_keep_sums_of_smooth_functions(part):
    nodes_of = part("nodes").nodes_of
    rows = np.random.default_rng(0).normal(size=20_000)
    nodes, weights = nodes_of(rows, 0.02)
    assert nodes.size < rows.size / 10
    for k in range(4):
        assert np.sum(weights * nodes**k) == pytest.approx(np.sum(rows**k), abs=1e-7)
    # Fourth derivatives of sin(2 x) are 16 at most.
    error = abs(np.sum(weights * np.sin(2 * nodes)) - np.sum(np.sin(2 * rows)))
    assert error < rows.size * 0.02**4 * 16 / 384


def test_correction_makes_a_normal_logistic(part):
    _, weights, error = part("acceptance_tests").correction()
    assert np.all(weights >= 0)
    assert error < 1e-5
    # Without the correction a normal law of the logistic's variance is a hundredth off.
    y = np.linspace(-5, 5, 101)
    assert np.max(np.abs(norm.cdf(y * np.sqrt(3) / np.pi) - expit(y))) > 0.01


def test_conservative_looks_err_as_often_as_they_may(part):
    tests = part("acceptance_tests")
    error = tests.conservative_error(2000, 100, 0.05)
    assert error < 0.05 / 5
    generator = np.random.default_rng(1)
    d = generator.normal(size=2000)
    d -= d.mean()
    # The mean is a hair above the threshold: every early "no" is an error.
    for look, low, high in ((error, 0.02, 0.09), (0.05, 0.2, 0.5)):
        no = [not tests.austere(generator.permutation(d), -1e-9, look, 100)[0] for _ in range(600)]
        assert low < np.mean(no) < high


def test_tests_agree_with_all_rows_where_it_is_plain(part):
    tests = part("acceptance_tests")
    d = 0.1 + 0.01 * np.random.default_rng(2).uniform(-1, 1, size=5000)
    for psi in (0.0, 0.2):
        wanted = tests.exact(d, psi)[0]
        for found in (
            tests.austere(d, psi, 0.05, 100),
            tests.confident(d, psi, 0.02, 0.05, 100),
        ):
            assert found == (wanted, 100)
    # No bound can tell a mean from itself: all rows are looked at.
    assert tests.confident(d, float(d.mean()) - 1e-9, 0.02, 0.05, 100) == (True, 5000)


def test_tail_of_the_energies(part):
    log_tail = part("energy_noise").log_tail
    assert log_tail(60.0, 25) == pytest.approx(gamma.logsf(60.0, 25), rel=1e-12)
    assert log_tail(2125.5, 25) / np.log(10) == pytest.approx(-867, abs=1)


def test_fifty_modes_sum_their_terms(part):
    problem = part("fifty_problem").fifty_modes(2300)
    theta = 0.3 * jax.random.normal(jax.random.key(0), (50,))
    rows = jnp.asarray(problem.data)

    def total(theta):
        return jnp.sum(problem.terms(theta, rows))

    value, gradient = jax.value_and_grad(problem.log_likelihood)(theta, rows)
    assert value == pytest.approx(float(total(theta)), rel=1e-12)
    np.testing.assert_allclose(gradient, jax.grad(total)(theta), rtol=1e-9, atol=1e-9)
    direct = -0.5 * (rows[:, None] - theta[None]) ** 2 - 0.5 * jnp.log(2 * jnp.pi)
    wanted = jnp.sum(jax.nn.logsumexp(direct, axis=1) - jnp.log(50.0))
    assert value == pytest.approx(float(wanted), rel=1e-12)


def test_terms_of_the_mixture_have_the_gradient_that_they_say(part):
    mixture = part("fifty_problem")
    rng = np.random.default_rng(2)
    theta = jnp.asarray(0.3 * rng.normal(size=50))
    # More than a block, and less than two.
    rows, slopes = jnp.asarray(rng.normal(size=1300)), jnp.asarray(rng.normal(size=1300))
    found, wanted = (
        jax.grad(lambda x, terms=terms: jnp.sum(slopes * terms(x, rows)))(theta)
        for terms in (mixture.row_terms, mixture.block_terms)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)
    # Slopes that are all alike, as those of a sum, would not tell rows apart.
    alike = jax.grad(lambda x: jnp.sum(mixture.row_terms(x, rows)))(theta)
    assert np.abs(alike - wanted).max() > 1.0


def draws_in(labels: np.ndarray) -> np.ndarray:
    """Draws (chain, draw, 50) whose modes are `labels`."""
    draws = 0.05 * np.random.default_rng(3).normal(size=(*labels.shape, 50))
    np.put_along_axis(draws, labels[..., None], 2.0, axis=-1)
    return draws


def test_visits_of_equal_modes(part):
    visits = part("fifty_modes").visits
    labels = np.random.default_rng(4).integers(50, size=(8, 500))
    found = visits(draws_in(labels))
    assert found["num_modes"] == 50
    assert found["p_value"] > 1e-4
    # Independent draws are worth what they are, and those that stay for twenty a twentieth.
    assert found["label_ess"] == pytest.approx(4000, rel=0.3)
    stays = visits(draws_in(np.repeat(labels[:, :25], 20, axis=1)))
    assert stays["label_ess"] == pytest.approx(200, rel=0.3)
    assert stays["p_value"] > 1e-4


def test_visits_of_unequal_modes_and_of_one_chain(part):
    visits = part("fifty_modes").visits
    shares = np.where(np.arange(50) < 25, 1.5, 0.5) / 50
    labels = np.random.default_rng(5).choice(50, size=(8, 500), p=shares)
    assert visits(draws_in(labels))["p_value"] < 1e-4
    # One chain has nothing between chains to be judged by.
    assert np.isnan(visits(draws_in(labels[:1]))["p_value"])


def test_rows_are_those_that_steps_evaluate(part):
    walks, kernels = part("walks"), part("kernels")
    # Rows that vary so much that batches of ten must grow for steps of this size.
    rows = 5.0 * np.random.default_rng(1).normal(size=400)
    problem = tp.Problem(
        lambda x: -0.5 * jnp.sum(x**2),
        lambda x, rows: -0.5 * (rows - x[0]) ** 2,
        rows,
        lambda key: jax.random.normal(key, (1,)),
    )

    def rows_of(name: str, alpha: float) -> np.ndarray:
        sampler = kernels.walker(name, problem, 10, alpha)
        starts = jnp.zeros((2, 1))
        return next(walks.blocks(sampler, 400, 1.0, starts, 0, 0.0, 50, 2, 1))["rows"]

    assert rows_of("mcmc", 1.0).shape == (2, 50)
    np.testing.assert_array_equal(rows_of("mcmc", 1.0), 800.0)
    np.testing.assert_array_equal(rows_of("mint common", 1.0), 40.0)
    np.testing.assert_array_equal(rows_of("mint pseudo-marginal", 0.5), 20.0)
    grown = rows_of("mint penalty", 1.5)
    assert np.all(grown >= 40.0)
    assert grown.max() > 40.0


def test_machines_are_told_apart(part):
    machines = part("experiment").machines
    rows = [
        {"machine": "One.", "kind": "cost", "problem": "gp", "dimension": 18},
        {"machine": "One.", "kind": "cost", "problem": "gp", "dimension": 18},
    ]
    assert machines(rows) == "One."
    other = {"machine": "Other.", "kind": "draws", "problem": "normal", "dimension": 5}
    assert machines([*rows, other]) == (
        "One. Ran here: cost of gp, 18 dimensions (2).\n\n"
        "Other. Ran here: draws of normal, 5 dimensions (1)."
    )


@pytest.mark.slow
def test_a_little_of_everything(tmp_path):
    command = [sys.executable, str(STUDY / "run.py"), "--smoke", "--out", str(tmp_path)]
    subprocess.run([*command, "--cores", "1"], check=True, capture_output=True)
    text = (tmp_path / "tables.md").read_text()
    for title in ("Tied means: the laws", "Fifty modes", "Tall data"):
        assert title in text
